package main

import (
	"io"
	"net"
	"strconv"

	"github.com/rogpeppe/go-internal/testscript"
)

// crowd SOCKET N opens N connections and keeps them to the end of the script. Each sends the beginning of a
// request.
func crowd(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: crowd SOCKET N")
	}
	n, err := strconv.Atoi(args[1])
	ts.Check(err)
	for range n {
		c, err := net.Dial("unix", ts.MkAbs(args[0]))
		ts.Check(err)
		ts.Defer(func() { c.Close() })
		_, err = io.WriteString(c, "GET /healthz HTTP/1.1\r\nHost: berth\r\n")
		ts.Check(err)
	}
}
