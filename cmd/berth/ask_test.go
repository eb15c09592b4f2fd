package main

import (
	"bytes"
	"io"
	"net/http"
	"strings"

	"berth/test/lab"

	"github.com/rogpeppe/go-internal/testscript"
)

// ask METHOD PATH [JSON] calls the admin API, for requests that no command makes.
func ask(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) < 2 || len(args) > 3 {
		ts.Fatalf("usage: [!] ask METHOD PATH [JSON]")
	}
	status, _ := asksAPI(ts, args[0], args[1], strings.Join(args[2:], ""))
	if (status < http.StatusBadRequest) == neg {
		ts.Fatalf("%s %s was answered with %d", args[0], args[1], status)
	}
}

// asksAPI calls the admin API, and returns the status and the body of the answer.
func asksAPI(ts *testscript.TestScript, method, path, body string) (int, string) {
	req, err := http.NewRequest(method, "http://berth"+path, strings.NewReader(body))
	ts.Check(err)
	req.Header.Set("Content-Type", "application/json")
	res, err := lab.Over(ts.Getenv("BERTH_ADMIN_SOCKET")).Do(req)
	ts.Check(err)
	defer res.Body.Close()
	answer, err := io.ReadAll(res.Body)
	ts.Check(err)
	ts.Logf("%s: %s", res.Status, bytes.TrimSpace(answer))
	return res.StatusCode, string(answer)
}
