package admin

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"berth/internal/ipam"
)

// Client asks a Server over its socket. Refusals come back as *Problem.
type Client struct {
	socket string
	http   *http.Client
	away   func(Away)
}

// continueTimeout is how long a Client that sends a large body waits for a refusal before it sends it.
const continueTimeout = 5 * time.Second

// NewClient returns a Client of the server on a unix socket. It connects with its first call.
func NewClient(socket string) *Client {
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "unix", socket)
	}
	return &Client{socket: socket, http: &http.Client{Transport: &http.Transport{DialContext: dial, ExpectContinueTimeout: continueTimeout}}}
}

// Socket is the path of the socket.
func (c *Client) Socket() string { return c.socket }

// OnAway has fn called with each answer that tells that the shared store is out of reach. It is set before the first call.
func (c *Client) OnAway(fn func(Away)) { c.away = fn }

// Close gives back the connections.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// Version asks which Berth answers.
func (c *Client) Version(ctx context.Context) (v Version, err error) {
	return v, c.call(ctx, http.MethodGet, versionPath, nil, nil, &v)
}

// Spaces lists the spaces by name.
func (c *Client) Spaces(ctx context.Context) ([]ipam.SpaceInfo, error) {
	var list SpaceList
	err := c.call(ctx, http.MethodGet, "/v1/spaces", nil, nil, &list)
	return list.Spaces, err
}

// Subnets lists the subnets of a space, or of all where it is empty, by space and address.
func (c *Client) Subnets(ctx context.Context, space string) ([]ipam.SubnetInfo, error) {
	var list SubnetList
	err := c.call(ctx, http.MethodGet, "/v1/subnets", params{"space": space}, nil, &list)
	return list.Subnets, err
}

// Leases lists leases by space, subnet and address.
func (c *Client) Leases(ctx context.Context, f ipam.LeaseFilter) ([]ipam.LeaseInfo, error) {
	q := params{"space": f.Space}
	if f.Subnet.IsValid() {
		q["subnet"] = f.Subnet.String()
	}
	if f.Remembered {
		q["remembered"] = "true"
	}
	var list LeaseList
	err := c.call(ctx, http.MethodGet, "/v1/leases", q, nil, &list)
	return list.Leases, err
}

// Events lists the last events that f chooses, the oldest first. f.Last is taken as it is: 0 chooses none.
func (c *Client) Events(ctx context.Context, f ipam.EventFilter) (EventList, error) {
	var list EventList
	err := c.call(ctx, http.MethodGet, "/v1/events", eventParams(f), nil, &list)
	return list, err
}

// Follow yields the events that Events lists and then each that comes, until ctx ends or an error is yielded, which is the last.
// A server that ends is an error.
func (c *Client) Follow(ctx context.Context, f ipam.EventFilter) iter.Seq2[ipam.Event, error] {
	return func(yield func(ipam.Event, error) bool) {
		q := eventParams(f)
		q["follow"] = "true"
		res, err := c.do(ctx, request{method: http.MethodGet, path: "/v1/events", query: q})
		if err != nil {
			yield(ipam.Event{}, err)
			return
		}
		defer res.Body.Close()
		d := json.NewDecoder(bufio.NewReader(res.Body))
		for {
			var e ipam.Event
			if err := d.Decode(&e); err != nil {
				if ctx.Err() == nil {
					yield(ipam.Event{}, fmt.Errorf("the daemon on %s stopped sending events: %w", c.socket, sentence(err)))
				}
				return
			}
			if !yield(e, nil) {
				return
			}
		}
	}
}

// Backup copies the state of the server, as it is at one moment, to w: that of the host's own store, or of the one that it shares.
// It returns the number of bytes and the id of the store. After an error what w has is not a backup.
func (c *Client) Backup(ctx context.Context, w io.Writer, shared bool) (size int64, storeID string, err error) {
	q := params{}
	if shared {
		q["store"] = "shared"
	}
	res, err := c.do(ctx, request{method: http.MethodPost, path: "/v1/backup", query: q})
	if err != nil {
		return 0, "", err
	}
	defer res.Body.Close()
	size, err = io.Copy(w, res.Body)
	if err != nil {
		return size, "", fmt.Errorf("the backup broke off after %d of %d bytes: %w", size, res.ContentLength, sentence(err))
	}
	return size, res.Header.Get(storeIDHeader), nil
}

// Fsck has the server check its file and its records.
func (c *Client) Fsck(ctx context.Context) (report FsckReport, err error) {
	return report, c.call(ctx, http.MethodPost, "/v1/fsck", nil, nil, &report)
}

// params are the parameters of a request; empty ones are not sent.
type params map[string]string

func eventParams(f ipam.EventFilter) params {
	q := params{"last": strconv.Itoa(f.Last)}
	if !f.Since.IsZero() {
		q["since"] = f.Since.UTC().Format(time.RFC3339Nano)
	}
	if f.After > 0 {
		q["after"] = strconv.FormatUint(f.After, 10)
	}
	return q
}

// request is what a Client sends.
type request struct {
	method string
	path   string // of the segments that come from outside each with url.PathEscape
	query  params
	header map[string]string // empty ones are not sent
	body   any               // an io.Reader is sent as it is, whose type the header tells; anything else as JSON; nil: none
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
	req, err := r.build(ctx)
	if err != nil {
		return nil, err
	}
	res, err := c.http.Do(req)
	if err != nil {
		var u *url.Error
		if errors.As(err, &u) {
			err = u.Err // without the made-up URL
		}
		return nil, fmt.Errorf("no Berth answers on %s: %w", c.socket, err)
	}
	if a, ok := awayIn(res.Header); ok && c.away != nil {
		c.away(a)
	}
	if res.StatusCode == http.StatusOK {
		return res, nil
	}
	defer res.Body.Close()
	return nil, c.problem(res)
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
		req.Header.Set("Content-Type", jsonType)
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
	body, err := io.ReadAll(io.LimitReader(res.Body, maxBody))
	p := new(Problem)
	if err == nil {
		err = json.Unmarshal(body, p)
	}
	if err != nil || p.Code == "" {
		return fmt.Errorf("what answers on %s is not this Berth: %s %q", c.socket, res.Status, bytes.TrimSpace(body[:min(len(body), 200)]))
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
