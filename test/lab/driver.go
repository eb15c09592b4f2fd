package lab

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"testing"
	"time"
)

// Over is a client for a unix socket. Each request uses a new connection.
func Over(socket string) *http.Client {
	return &http.Client{Timeout: Patient(time.Minute), Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", socket)
		},
	}}
}

// Between listens on a new unix socket, until the test ends, and gives each request to serve. Its pass passes the
// request on to the server at the socket to.
func Between(t testing.TB, socket, to string, serve func(r *http.Request, pass func())) {
	t.Helper()
	proxy := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: "berth"})
	proxy.Transport = Over(to).Transport
	l, err := net.Listen("unix", socket)
	Must(t, err)
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		serve(r, func() { proxy.ServeHTTP(w, r) })
	})}
	go func() { _ = server.Serve(l) }() // it fails only because the server is closed
	t.Cleanup(func() { server.Close() })
}

// Refused is the error in a driver's answer. Any other error of a call leaves its outcome open.
type Refused string

func (r Refused) Error() string { return string(r) }

// Call makes a call of Docker's IPAM protocol. If answer is not nil, it decodes the answer into it.
func Call(driver *http.Client, method string, message, answer any) error {
	body, err := json.Marshal(message)
	if err != nil {
		return err
	}
	res, err := driver.Post("http://berth/IpamDriver."+method, "application/json", bytes.NewReader(body))
	if err != nil {
		return err
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	switch {
	case err != nil:
		return err
	case res.StatusCode != http.StatusOK:
		var failed struct{ Err Refused }
		err = json.Unmarshal(text, &failed)
		return fmt.Errorf("%s: %s: %w", method, res.Status, cmp.Or(err, error(failed.Err)))
	case answer == nil:
		return nil
	}
	return json.Unmarshal(text, answer)
}
