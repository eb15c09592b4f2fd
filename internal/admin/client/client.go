// Package client calls the admin API of a running daemon. Call runs any operation; the other methods are shorthands. A
// refusal returns the daemon's *api.Problem, and a stream that breaks off returns an error. A daemon that accepts
// connections but never answers causes a timeout. A token is sent only to the host that it belongs to.
//
// A call becomes the HTTP request of an operation in package api. It is sent over the unix socket (client.go) or over
// TLS (remote.go). The methods are grouped by noun: current state (look.go), events (events.go), edits (plan.go), whole
// plans (import.go, export.go), the engine (witness.go), the daemon (state.go) and tokens (token.go).
package client

import (
	"bytes"
	"context"
	"encoding"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"reflect"
	"strings"
	"syscall"
	"time"

	"berth/internal/admin/api"
)

// Client calls a daemon over its socket or over TLS. Refusals are returned as *api.Problem.
type Client struct {
	socket string
	http   *http.Client
	away   func(api.Away)
	late   time.Duration // the maximum wait for an answer to begin, unless the operation may last; 0: no limit
}

// lateTimeout is longer than the server's limit for its answers (api.AnswerTimeout).
const lateTimeout = api.AnswerTimeout + 15*time.Second

// errLate is the error of a request that gets no answer.
var errLate = errors.New("the daemon accepts connections but does not answer: it is stopped, or very busy; check its " +
	"log and its connections (ss -xp), then restart it")

// continueTimeout is how long a Client waits for a refusal before it sends a large body.
const continueTimeout = 5 * time.Second

// New returns a Client of the server on a unix socket. It connects at its first call.
func New(socket string) *Client {
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		d := net.Dialer{Timeout: dialTimeout}
		return d.DialContext(ctx, "unix", socket)
	}
	transport := &http.Transport{DialContext: dial, ExpectContinueTimeout: continueTimeout}
	return &Client{socket: socket, http: &http.Client{Transport: transport}, late: lateTimeout}
}

// Socket returns the path of the socket.
func (c *Client) Socket() string { return c.socket }

// OnAway sets a function that is called with each answer that reports an unreachable shared store. Set it before the
// first call.
func (c *Client) OnAway(fn func(api.Away)) { c.away = fn }

// Close closes idle connections.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// request is an HTTP request of a Client.
type request struct {
	method string
	path   string // segments from outside are escaped with url.PathEscape
	query  url.Values
	header map[string]string // empty ones are not sent
	// an io.Reader is sent as it is, and the header has its type; anything else is sent as JSON; nil: none
	body any
	// the answer begins when the work is done
	lasts bool
}

// requestOf returns the request for a row. It omits zero fields, except numbers that may be zero.
func requestOf[Req, Resp any](e api.Endpoint[Req, Resp], req Req) request {
	r := request{method: e.Spec().Method, path: e.Path, query: url.Values{}, header: map[string]string{},
		lasts: e.Pace == api.Lasts}
	if e.MaxBody > 0 && e.MaxBody != api.Endless {
		r.header["Expect"] = "100-continue" // a large body is sent only if it is not refused
	}
	v := reflect.ValueOf(req)
	for _, f := range api.FieldsOf(v.Type()) {
		value := v.FieldByIndex(f.Index)
		if f.In == "body" {
			r.body = value.Interface()
			continue
		}
		if value.IsZero() && (f.In == "query" && (!f.Bounded || f.Min > 0) || f.In == "header") {
			continue
		}
		text := textOf(value)
		switch f.In {
		case "path":
			r.path = strings.Replace(r.path, "{"+f.Name+"}", url.PathEscape(text), 1)
		case "query":
			r.query.Set(f.Name, text)
		case "header":
			r.header[f.Name] = text
		}
	}
	return r
}

// textOf returns a parameter as text.
func textOf(v reflect.Value) string {
	switch one := v.Interface().(type) {
	case []string:
		return strings.Join(one, ",")
	case time.Time:
		return one.UTC().Format(time.RFC3339Nano)
	case encoding.TextMarshaler:
		text, _ := one.MarshalText() // the types of parameters never fail
		return string(text)
	}
	return fmt.Sprint(v.Interface())
}

// call calls the operation of a row. Refusals are returned as *api.Problem.
func call[Req, Resp any](ctx context.Context, c *Client, e api.Endpoint[Req, Resp], req Req) (Resp, error) {
	var resp Resp
	err := c.fetch(ctx, requestOf(e, req), &resp)
	return resp, err
}

// ask is call for a row without parameters.
func ask[Resp any](ctx context.Context, c *Client, e api.Endpoint[api.None, Resp]) (Resp, error) {
	return call(ctx, c, e, api.None{})
}

// all collects a list page by page. items returns the items of a page.
func all[Req any, Resp interface{ NextPage() string }, T any](ctx context.Context, c *Client,
	e api.Endpoint[Req, Resp], req Req, items func(Resp) []T) (list []T, err error) {
	for r := requestOf(e, req); ; {
		var page Resp
		if err := c.fetch(ctx, r, &page); err != nil {
			return nil, err
		}
		list = append(list, items(page)...)
		if page.NextPage() == "" {
			return list, nil
		}
		r.query.Set("after", page.NextPage())
	}
}

// fetch sends a request and decodes its JSON answer.
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

// do sends a request and returns its answer if that is a success. The caller closes the body.
func (c *Client) do(ctx context.Context, r request) (*http.Response, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	if c.late > 0 && !r.lasts {
		defer time.AfterFunc(c.late, func() { cancel(errLate) }).Stop() // an answer that has begun may last
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
		if errors.Is(err, syscall.EAGAIN) { // connect(2): the kernel's queue is full
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

// endingBody cancels the context of its request when it is closed.
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
	target := "http://berth" + r.path
	if len(r.query) > 0 {
		target += "?" + r.query.Encode()
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
		return fmt.Errorf("the program that answers on %s is not this Berth: %s %q", c.socket, res.Status,
			bytes.TrimSpace(body[:min(len(body), 200)]))
	}
	return p
}

// sentence describes the end of a stream in words.
func sentence(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return errors.New("the daemon closed the connection")
	}
	return err
}
