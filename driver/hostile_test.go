package driver

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"berth/store"

	api "github.com/docker/go-plugins-helpers/ipam"
	"go.uber.org/goleak"
)

// patience is much longer than any test here takes. It only ends a test that hangs.
const patience = 60 * time.Second

// served is a Driver on a unix socket.
type served struct {
	*bench
	socket string
	stop   func() error // ends Serve and returns its error

	mu     sync.Mutex
	opened []func() // closed by hangUp
}

// serveBench serves with shorter timeouts than the daemon's.
func serveBench(t *testing.T, b *bench) *served {
	t.Helper()
	dir, err := os.MkdirTemp("", "berth") // the path of a socket must be short
	must(t, err)
	s := &served{bench: b, socket: filepath.Join(dir, "berth.sock")}
	l, err := net.Listen("unix", s.socket)
	must(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	answer := make(chan error, 1)
	d := New(b.config(b.service))
	d.headerTimeout, d.bodyTimeout = time.Second, 2*time.Second
	go func() { answer <- d.Serve(ctx, l) }()
	s.stop = sync.OnceValue(func() error {
		cancel()
		select {
		case err := <-answer:
			return err
		case <-time.After(patience):
			return errors.New("Serve did not end")
		}
	})
	t.Cleanup(func() {
		if err := s.stop(); err != nil {
			t.Error(err)
		}
		os.RemoveAll(dir)
	})
	return s
}

// dial opens a connection that stays open until hangUp.
func (s *served) dial() (net.Conn, error) {
	conn, err := net.Dial("unix", s.socket)
	if err != nil {
		return nil, err
	}
	s.later(func() { conn.Close() })
	return conn, conn.SetDeadline(time.Now().Add(patience))
}

func (s *served) later(close func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.opened = append(s.opened, close)
}

// hangUp closes all connections of clients.
func (s *served) hangUp() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, close := range s.opened {
		close()
	}
	s.opened = nil
}

// client returns a well-behaved client.
func (s *served) client() *http.Client {
	transport := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", s.socket)
	}}
	s.later(transport.CloseIdleConnections)
	return &http.Client{Transport: transport, Timeout: patience}
}

// ask makes one call as a well-behaved client.
func ask(c *http.Client, method, body string) (status int, reply string, err error) {
	res, err := c.Post("http://berth/IpamDriver."+method, "application/json", strings.NewReader(body))
	if err != nil {
		return 0, "", err
	}
	defer res.Body.Close()
	raw, err := io.ReadAll(res.Body)
	return res.StatusCode, string(raw), err
}

// TestHostile tests that everything that attackers send is answered with an error or cut off, and that a well-behaved
// client is answered all the time.
func TestHostile(t *testing.T) {
	before := goleak.IgnoreCurrent()
	s := serveBench(t, newBench(t))
	pool := s.pool("local", "10.0.0.0/16", "", nil).PoolID
	others := wellBehaved(t, s, pool)
	var wg sync.WaitGroup
	for name, attack := range attacks(pool) {
		wg.Go(func() { // all at the same time
			if err := attack(s); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		})
	}
	wg.Wait()
	others()
	s.hangUp()
	s.check()
	if err := s.stop(); err != nil {
		t.Error(err)
	}
	if _, err := net.Dial("unix", s.socket); err == nil {
		t.Error("the socket still answers after Serve has ended")
	}
	s.close()
	goleak.VerifyNone(t, before)
}

// wellBehaved takes and releases addresses until stop is called. stop fails the test if a call got a wrong answer, or
// if none was made.
func wellBehaved(t *testing.T, s *served, pool string) (stop func()) {
	c := s.client()
	done, ended := make(chan struct{}), make(chan error, 1)
	calls := 0
	go func() {
		for n := 0; ; n++ {
			select {
			case <-done:
				ended <- nil
				return
			default:
			}
			status, reply, err := ask(c, "RequestAddress",
				fmt.Sprintf(`{"PoolID":%q,"Options":{%q:%q}}`, pool, optMAC, macText(n%100)))
			var got api.RequestAddressResponse
			if err == nil && status == http.StatusOK {
				err = json.Unmarshal([]byte(reply), &got)
			}
			if err != nil || got.Address == "" {
				ended <- fmt.Errorf("call %d: %d %q %v", n, status, reply, err)
				return
			}
			calls++
			time.Sleep(time.Millisecond) // leaves the processor to the attacks
		}
	}()
	return func() {
		close(done)
		if err := <-ended; err != nil {
			t.Errorf("a well-behaved client was not answered: %v", err)
		}
		if calls == 0 {
			t.Error("the well-behaved client never got to ask")
		}
	}
}

// attacks are those of a hostile or broken client. Each returns an error if it is neither refused nor cut off.
func attacks(pool string) map[string]func(*served) error {
	const post = "POST /IpamDriver.RequestAddress HTTP/1.1\r\nHost: x\r\n"
	noise := make([]byte, 1<<20)
	rand.Read(noise)
	all := map[string]func(*served) error{
		"huge body":   func(s *served) error { return hugeBody(s, pool) },
		"slow header": func(s *served) error { return drip(s, post+"X-Slow: ") },
		"slow body":   func(s *served) error { return drip(s, post+"Content-Length: 100000\r\n\r\n{") },
		"slow chunks": func(s *served) error {
			return drip(s, post+
				"Transfer-Encoding: chunked\r\n\r\n1\r\n{\r\n5\r\n")
		},
		"silence":      func(s *served) error { return send(s, "") },
		"half a call":  func(s *served) error { return halfACall(s, pool) },
		"a crowd":      func(s *served) error { return idle(s, maxConnections+100) },
		"many at once": manyAtOnce,
	}
	for name, raw := range map[string]string{
		"noise":               string(noise),
		"zeros":               strings.Repeat("\x00", 4096),
		"TLS":                 "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
		"no HTTP":             "hello\r\n\r\n",
		"other protocol":      "GET / SMTP/1.0\r\n\r\n",
		"HTTP/2":              "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
		"long line":           "POST /" + strings.Repeat("a", 1<<18) + " HTTP/1.1\r\n\r\n",
		"many headers":        post + strings.Repeat("X-Y: z\r\n", 1<<15) + "\r\n",
		"negative length":     post + "Content-Length: -5\r\n\r\n",
		"two lengths":         post + "Content-Length: 5\r\nContent-Length: 6\r\n\r\n{}",
		"length and chunks":   post + "Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
		"no chunk":            post + "Transfer-Encoding: chunked\r\n\r\nzzz\r\n",
		"empty body":          post + "Content-Length: 0\r\n\r\n",
		"GET":                 "GET /IpamDriver.RequestPool HTTP/1.1\r\nHost: x\r\n\r\n",
		"body of another":     post + "Content-Length: 4\r\n\r\n[{}]",
		"garbage body":        post + "Content-Length: 8\r\n\r\n\xde\xad\xbe\xef\xde\xad\xbe\xef",
		"deep JSON":           post + "Content-Length: 60000\r\n\r\n" + strings.Repeat(`{"a":[`, 10000),
		"unknown call":        "POST /IpamDriver.Shutdown HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}",
		"other path":          "POST /../../etc/passwd HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}",
		"absolute URL":        "POST http://elsewhere/ HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}",
		"expects, then lies":  post + "Expect: 100-continue\r\nContent-Length: 2\r\n\r\n[]",
		"unknown expectation": post + "Expect: miracles\r\nContent-Length: 2\r\n\r\n{}",
	} {
		all[name] = func(s *served) error { return send(s, raw) }
	}
	return all
}

// send sends the text of one client, which may be cut off before the end.
func send(s *served, raw string) error {
	conn, err := s.dial()
	if err != nil {
		return err
	}
	go io.WriteString(conn, raw)
	return refusedOrClosed(conn)
}

// refusedOrClosed waits for an answer, which must be an error, or for the end of the connection.
func refusedOrClosed(conn net.Conn) error {
	r := bufio.NewReader(conn)
	res, err := http.ReadResponse(r, nil)
	if err == nil && res.StatusCode == http.StatusContinue {
		res, err = http.ReadResponse(r, nil)
	}
	var timeout net.Error
	switch {
	case errors.As(err, &timeout) && timeout.Timeout():
		return fmt.Errorf("neither answered nor cut off within %s", patience)
	case err == nil && res.StatusCode < 300:
		body, _ := io.ReadAll(res.Body)
		return fmt.Errorf("answered with %s: %s", res.Status, body)
	}
	return nil
}

// drip sends a beginning at once, and then one byte at a time without end.
func drip(s *served, begin string) error {
	conn, err := s.dial()
	if err != nil {
		return err
	}
	go func() {
		for text := begin; ; text = "a" {
			if _, err := io.WriteString(conn, text); err != nil {
				return
			}
			time.Sleep(50 * time.Millisecond) // this is the speed of the attack; nothing waits for it
		}
	}()
	defer conn.Close()
	return refusedOrClosed(conn)
}

// hugeBody sends a message that is valid except for its size.
func hugeBody(s *served, pool string) error {
	for _, size := range []int{maxBody + 1, 8 * maxBody} {
		body := append(bytes.Repeat([]byte(" "), size), fmt.Sprintf(`{"PoolID":%q}`, pool)...)
		status, reply, err := ask(s.client(), "RequestAddress", string(body))
		if err == nil && status < 300 { // an error: cut off while it was still being sent
			return fmt.Errorf("%d bytes were answered with %d %s", len(body), status, reply)
		}
	}
	return nil
}

// halfACall hangs up in the middle of a body, many times.
func halfACall(s *served, pool string) error {
	for range 50 {
		conn, err := s.dial()
		if err != nil {
			return err
		}
		fmt.Fprintf(conn, "POST /IpamDriver.RequestAddress HTTP/1.1\r\nHost: x\r\nContent-Length: "+
			"200\r\n\r\n{\"PoolID\":%q", pool)
		conn.Close()
	}
	return nil
}

// idle opens more silent connections than the server allows. One more client must still be answered.
func idle(s *served, n int) error {
	for range n {
		if _, err := s.dial(); err != nil {
			return err
		}
	}
	status, reply, err := ask(s.client(), "GetCapabilities", "")
	if err != nil || status != http.StatusOK {
		return fmt.Errorf("beside %d idle connections: %d %q %v", n, status, reply, err)
	}
	return nil
}

// manyAtOnce sends invalid requests for pools over many connections at the same time.
func manyAtOnce(s *served) error {
	errs := make([]error, 100)
	var wg sync.WaitGroup
	for n := range errs {
		wg.Go(func() {
			status, reply, err := ask(s.client(), "RequestPool",
				fmt.Sprintf(`{"AddressSpace":"local","Pool":"10.0.%d.1/24"}`, n))
			if err != nil || status < 400 || !strings.Contains(reply, `"Err"`) {
				errs[n] = fmt.Errorf("%d %q %v", status, reply, err)
			}
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

// panicking is a store whose updates panic.
type panicking struct{ store.Store }

func (panicking) Update(context.Context, func(store.Tx) error) error { panic("a defect") }

// TestPanic tests that a panic affects only the call that causes it.
func TestPanic(t *testing.T) {
	before := goleak.IgnoreCurrent()
	b := newBench(t)
	p := b.pool("local", "10.0.0.0/24", "", nil).PoolID
	broken := &switchable{Store: b.store}
	b.use(broken)
	s := serveBench(t, b)
	c := s.client()
	broken.set(panicking{b.store})
	for _, method := range withBody {
		status, reply, err := ask(c, method,
			fmt.Sprintf(`{"AddressSpace":"local","PoolID":%q,"Address":"10.0.0.9"}`, p))
		if err != nil || status != http.StatusInternalServerError ||
			!strings.Contains(reply, method+" failed inside Berth") || strings.Contains(reply, "goroutine") {
			t.Errorf("%s: %d %q %v", method, status, reply, err)
		}
	}
	broken.set(nil)
	if got := b.take(p, "10.0.0.9", mac(1)); got != "10.0.0.9" {
		t.Errorf("afterwards: %s", got)
	}
	s.hangUp()
	if err := s.stop(); err != nil {
		t.Error(err)
	}
	b.close()
	goleak.VerifyNone(t, before)
}

// switchable is a store that can be exchanged while it is in use.
type switchable struct {
	store.Store
	mu  sync.Mutex
	now store.Store
}

func (s *switchable) set(st store.Store) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.now = st
}

func (s *switchable) Update(ctx context.Context, fn func(store.Tx) error) error {
	s.mu.Lock()
	st := s.now
	s.mu.Unlock()
	if st == nil {
		st = s.Store
	}
	return st.Update(ctx, fn)
}
