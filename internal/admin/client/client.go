// Package client asks a running Berth over its admin API, one method for each thing that can be asked. It promises that
// a refusal comes back as the *api.Problem that the daemon sent, that a daemon which takes connections and answers
// nothing is not waited for without end, that a stream which breaks off is an error, and that a token goes to the host
// that it was given for and to no other.
//
// A call makes a request of a path and headers of the room api, and do sends it, over the socket (this file) or over
// TLS (remote.go). What is asked stands by nouns: what is there (look.go) and what was (events.go), the plan and its
// edits (plan.go), plans as a whole (import.go, export.go), what runs (witness.go), the daemon and its state
// (state.go), who may ask (token.go).
package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"syscall"
	"time"

	"berth/internal/admin/api"
)

// Client asks a daemon over its socket, or over TLS. Refusals come back as *api.Problem.
type Client struct {
	socket string
	http   *http.Client
	away   func(api.Away)
	late   time.Duration // for the beginning of an answer that takes no time of its own; 0: any
}

// lateTimeout is more than the server gives itself for the answers that it bounds (api.AnswerTimeout).
const lateTimeout = api.AnswerTimeout + 15*time.Second

// lasting are the operations that take as long as there is to do before they begin to answer.
var lasting = []string{"/v1/backup", "/v1/fsck", api.SavePath, api.CheckPath, api.ImportPath}

// errLate is the end of a request that nobody answers.
var errLate = errors.New("it takes connections and does not answer: it is stopped, or very busy; " +
	"look at its log and at who is connected (ss -xp), then start it again")

// continueTimeout is how long a Client that sends a large body waits for a refusal before it sends it.
const continueTimeout = 5 * time.Second

// New returns a Client of the server on a unix socket. It connects with its first call.
func New(socket string) *Client {
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		d := net.Dialer{Timeout: dialTimeout}
		return d.DialContext(ctx, "unix", socket)
	}
	transport := &http.Transport{DialContext: dial, ExpectContinueTimeout: continueTimeout}
	return &Client{socket: socket, http: &http.Client{Transport: transport}, late: lateTimeout}
}

// Socket is the path of the socket.
func (c *Client) Socket() string { return c.socket }

// OnAway has fn called with each answer that tells that the shared store is out of reach. It is set before the first
// call.
func (c *Client) OnAway(fn func(api.Away)) { c.away = fn }

// Close gives back the connections.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// params are the parameters of a request; empty ones are not sent.
type params map[string]string

// request is what a Client sends.
type request struct {
	method string
	path   string // of the segments that come from outside each with url.PathEscape
	query  params
	header map[string]string // empty ones are not sent
	// an io.Reader is sent as it is, whose type the header tells; anything else as JSON; nil: none
	body any
}

// call asks for one JSON answer. The body is JSON, or nil.
func (c *Client) call(ctx context.Context, method, path string, q params, body, answer any) error {
	return c.fetch(ctx, request{method: method, path: path, query: q, body: body}, answer)
}

// fetch is call for a request with headers of its own.
func (c *Client) fetch(ctx context.Context, r request, answer any) error {
	res, err := c.do(ctx, r)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if err := json.NewDecoder(res.Body).Decode(answer); err != nil {
		return fmt.Errorf("the answer of Berth on %s to %s cannot be read: %w", c.socket, r.path, sentence(err))
	}
	return nil
}

// do sends a request and returns the answer if it is one of success; its body is the caller's to close.
func (c *Client) do(ctx context.Context, r request) (*http.Response, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	if c.late > 0 && !slices.Contains(lasting, r.path) {
		defer time.AfterFunc(c.late, func() { cancel(errLate) }).Stop() // what has begun may last
	}
	req, err := r.build(ctx)
	if err != nil {
		cancel(err)
		return nil, err
	}
	res, err := c.http.Do(req)
	if err != nil {
		late := context.Cause(ctx)
		cancel(err)
		if errors.Is(late, errLate) {
			return nil, fmt.Errorf("no Berth answers on %s within %s: %w", c.socket, c.late, errLate)
		}
		if IsDenied(err) && !strings.Contains(c.socket, "://") {
			return nil, Denied(c.socket)
		}
		if errors.Is(err, syscall.EAGAIN) { // connect(2): more wait than the kernel keeps
			err = errLate
		}
		var u *url.Error
		if errors.As(err, &u) {
			err = u.Err // without the made-up URL
		}
		return nil, fmt.Errorf("no Berth answers on %s: %w", c.socket, err)
	}
	res.Body = &endingBody{res.Body, cancel}
	if a, ok := api.AwayIn(res.Header); ok && c.away != nil {
		c.away(a)
	}
	if res.StatusCode == http.StatusOK {
		return res, nil
	}
	defer res.Body.Close()
	return nil, c.problem(res)
}

// endingBody ends the context of its request when it is closed.
type endingBody struct {
	io.ReadCloser
	end context.CancelCauseFunc
}

// Close implements io.Closer.
func (b *endingBody) Close() error {
	defer b.end(context.Canceled)
	return b.ReadCloser.Close()
}

func (r request) build(ctx context.Context) (*http.Request, error) {
	values := url.Values{}
	for name, value := range r.query {
		if value != "" {
			values.Set(name, value)
		}
	}
	target := "http://berth" + r.path
	if len(values) > 0 {
		target += "?" + values.Encode()
	}
	var body io.Reader = http.NoBody
	isJSON := false
	switch b := r.body.(type) {
	case nil:
	case io.Reader:
		body = b
	default:
		text, err := json.Marshal(b)
		if err != nil {
			return nil, err
		}
		body, isJSON = bytes.NewReader(text), true
	}
	req, err := http.NewRequestWithContext(ctx, r.method, target, body)
	if err != nil {
		return nil, err
	}
	if isJSON {
		req.Header.Set("Content-Type", api.JSONType)
	}
	for name, value := range r.header {
		if value != "" {
			req.Header.Set(name, value)
		}
	}
	return req, nil
}

// problem reads a refusal.
func (c *Client) problem(res *http.Response) error {
	body, err := io.ReadAll(io.LimitReader(res.Body, api.MaxBody))
	p := new(api.Problem)
	if err == nil {
		err = json.Unmarshal(body, p)
	}
	if err != nil || p.Code == "" {
		return fmt.Errorf("what answers on %s is not this Berth: %s %q", c.socket, res.Status,
			bytes.TrimSpace(body[:min(len(body), 200)]))
	}
	return p
}

// sentence says what the end of a stream means.
func sentence(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return errors.New("it closed the connection")
	}
	return err
}
