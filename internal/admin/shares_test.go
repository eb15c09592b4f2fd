package admin

import (
	"bufio"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"berth/internal/admin/api"

	"golang.org/x/sys/unix"
)

// connectAs connects to the socket as a user: the kernel notes the user of the thread.
func (h *harness) connectAs(t *testing.T, uid int) net.Conn {
	t.Helper()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	become := func(uid int) {
		t.Helper()
		if _, _, errno := unix.RawSyscall(unix.SYS_SETRESUID, ^uintptr(0), uintptr(uid), ^uintptr(0)); errno != 0 {
			t.Fatal(errno)
		}
	}
	become(uid)
	defer become(0)
	conn, err := net.Dial("unix", h.socket)
	must(t, err)
	t.Cleanup(func() { conn.Close() })
	return conn
}

// asks sends a request and reads the status and the beginning of the answer. Status 0 means it was cut off.
func asks(conn net.Conn, path string) (status int, body string) {
	_ = conn.SetDeadline(time.Now().Add(20 * time.Second))
	fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: berth\r\n\r\n", path)
	res, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		return 0, err.Error()
	}
	defer res.Body.Close()
	text, _ := io.ReadAll(io.LimitReader(res.Body, 4096))
	return res.StatusCode, string(text)
}

// TestShares: each user has a share of the socket's connections and no more. The others keep theirs, and root is
// never locked out.
func TestShares(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Fatal("only root can become others")
	}
	const most, one, two, group = 16, 65533, 65534, 4711
	h := start(t, func(s *Server) { s.maxConnections, s.cfg.ReadGID = most, group })
	must(t, os.Chmod(h.socket, 0o666))
	for _, dir := range []string{filepath.Dir(h.socket), filepath.Dir(filepath.Dir(h.socket))} { // those of t.TempDir
		must(t, os.Chmod(dir, 0o755))
	}
	var held []net.Conn
	crowd := func(uid, n int) {
		t.Helper()
		for range n {
			conn := h.connectAs(t, uid)
			fmt.Fprint(conn, "GET /healthz HTTP/1.1\r\nHost") // and then nothing more
			held = append(held, conn)
		}
	}
	crowd(one, most/4)
	status, body := asks(h.connectAs(t, one), api.GetHealth.Path)
	if status != http.StatusServiceUnavailable || !strings.Contains(body, "user 65533 has 4 connections open") ||
		!strings.Contains(body, api.CodeBusy) {
		t.Errorf("beyond his share somebody is answered with %d %s", status, body)
	}
	if status, body := asks(h.connectAs(t, two), api.GetHealth.Path); status != http.StatusOK {
		t.Errorf("another is answered with %d %s", status, body)
	}
	for uid := range 3 { // more than all places for users other than root
		crowd(70000+uid, most/4)
	}
	if status, body := asks(h.connectAs(t, two), api.GetHealth.Path); status != http.StatusOK {
		t.Errorf("where silent ones have all somebody is answered with %d %s", status, body)
	}
	begun := time.Now()
	for range 3 {
		if _, err := h.client.Version(t.Context()); err != nil {
			t.Errorf("root is locked out: %v", err)
		}
	}
	if waited := time.Since(begun); waited > headerTimeout/2 {
		t.Errorf("root waited %s, until others were cut off", waited)
	}
	for _, conn := range held {
		conn.Close()
	}
	for deadline := time.Now().Add(20 * time.Second); ; { // the server notices the ends after a while
		if status, body = asks(h.connectAs(t, one), api.GetHealth.Path); status == http.StatusOK {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("his share is not given back: %d %s", status, body)
		}
	}
}

// TestSharesOfAddresses: strangers at one network address cannot use up the share of the others.
func TestSharesOfAddresses(t *testing.T) {
	const most = 16
	w := startTLS(t, func(s *Server) { s.maxConnections = most })
	as := who{header: bearer(w.token(t, "ops", api.RoleAdmin, 0))}
	from := func(last byte) *net.Dialer {
		return &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, last)}, Timeout: 20 * time.Second}
	}
	refused := 0
	for range 2 * most {
		raw, err := from(9).Dial("tcp", w.addr)
		must(t, err)
		t.Cleanup(func() { raw.Close() })
		config := w.config(who{})
		config.ServerName = "127.0.0.1"
		conn := tls.Client(raw, config)
		if conn.HandshakeContext(t.Context()) != nil {
			refused++
			continue
		}
		fmt.Fprint(conn, "GET /healthz HTTP/1.1\r\nHost")
	}
	if refused != 2*most-most/4 {
		t.Errorf("%d of %d connections of one address were refused", refused, 2*most)
	}
	begun := time.Now()
	w.over(t, as).plays(t, `GET /v1/spaces -> 200`) // another address is not locked out
	w.plays(t, `GET /v1/version -> 200`)            // nor is the socket
	if waited := time.Since(begun); waited > headerTimeout/2 {
		t.Errorf("somebody else waited %s", waited)
	}
}

// TestSilentSources: silent strangers at as many addresses as there are places lock nobody out, neither newcomers
// nor those who were connected before.
func TestSilentSources(t *testing.T) {
	const most = 16
	w := startTLS(t, func(s *Server) { s.maxConnections, s.headerTimeout = most, time.Minute })
	as := who{header: bearer(w.token(t, "ops", api.RoleAdmin, 0))}
	raw, err := net.Dial("tcp", w.addr)
	must(t, err)
	config := w.config(as)
	config.ServerName = "127.0.0.1"
	before := tls.Client(raw, config)
	defer before.Close()
	asked := func(when string) {
		t.Helper()
		_ = before.SetDeadline(time.Now().Add(20 * time.Second))
		fmt.Fprintf(before, "GET /v1/spaces HTTP/1.1\r\nHost: berth\r\nAuthorization: %s\r\n\r\n", as.header[0])
		res, err := http.ReadResponse(bufio.NewReader(before), nil)
		if err != nil || res.StatusCode != http.StatusOK {
			t.Fatalf("%s: %v, %v", when, res, err)
		}
		_, _ = io.Copy(io.Discard, res.Body)
	}
	asked("at first")
	for i := range 4 * most {
		d := &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 1, byte(i))}}
		silent, err := d.Dial("tcp", w.addr)
		must(t, err)
		t.Cleanup(func() { silent.Close() })
	}
	w.over(t, as).plays(t, `GET /v1/spaces -> 200`)
	asked("beside silent ones")
}

// TestWhoHasAShare: a machine with many IPv6 addresses has one share.
func TestWhoHasAShare(t *testing.T) {
	for text, want := range map[string]string{
		"192.0.2.7:80": "192.0.2.7", "[::ffff:192.0.2.7]:80": "192.0.2.7", "[2001:db8::1:2:3:4]:9": "2001:db8::/64",
		"[fe80::1%eth0]:9": "fe80::/64",
	} {
		if got, root := networkOf(addressed{addr: address(text)}); got != want || root {
			t.Errorf("%s is %q, %v; want %q", text, got, root, want)
		}
	}
	if name, root := userOf(addressed{addr: &peer{err: errors.New("unknown")}}); root {
		t.Errorf("%s is root", name)
	}
}

// addressed is a connection with only a remote address.
type addressed struct {
	net.Conn
	addr net.Addr
}

func (a addressed) RemoteAddr() net.Addr { return a.addr }

// address is an address as text.
type address string

// Network implements net.Addr.
func (a address) Network() string { return "tcp" }

func (a address) String() string { return string(a) }

// TestProbeEndsItsConnection: a connection serves one probe.
func TestProbeEndsItsConnection(t *testing.T) {
	h := start(t, nil)
	for _, path := range []string{api.GetHealth.Path, api.GetReady.Path} {
		conn := h.dial(t)
		if status, body := asks(conn, path); status != http.StatusOK {
			t.Errorf("%s: %d %s", path, status, body)
		}
		if rest, err := io.ReadAll(conn); err != nil || len(rest) > 0 {
			t.Errorf("%s keeps its connection: %q, %v", path, rest, err)
		}
		conn.Close()
	}
}
