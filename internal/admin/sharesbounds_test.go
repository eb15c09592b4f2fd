package admin

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"berth/internal/connlimit"

	"github.com/sirupsen/logrus"
	"github.com/sirupsen/logrus/hooks/test"
)

// TestSharesBounds: each caller gets a quarter of the connections, all callers but root together three quarters. A
// refused caller is logged once, until it has no open connections.
func TestSharesBounds(t *testing.T) {
	logger, logged := test.NewNullLogger()
	s := newShares(16, logrus.NewEntry(logger))
	take := func(name string, n int, refused string) {
		t.Helper()
		for i := range n {
			if reason := s.take(name); (reason == "") != (refused == "") || !strings.Contains(reason, refused) {
				t.Errorf("%s's connection %d: %q, want %q", name, i+1, reason, refused)
			}
		}
	}
	wantLogged := func(n int) {
		t.Helper()
		if got := len(logged.AllEntries()); got != n {
			t.Errorf("%d lines are in the log, want %d", got, n)
		}
	}
	take("a", 4, "")
	take("a", 3, "a has 4 connections open")
	wantLogged(1)
	take("b", 4, "")
	take("c", 4, "")
	take("d", 2, "all 12 connections for users other than root are in use")
	wantLogged(2)
	for range 4 {
		s.give("a")
	}
	take("a", 4, "")
	take("a", 1, "a has 4 connections open")
	wantLogged(3)
}

// TestSharesYield: when all places are taken, a newcomer gets the place of the oldest connection of the caller
// with the most. A recognized caller has a place of another kind, and these are shared out, too.
func TestSharesYield(t *testing.T) {
	s := newShares(16, logrus.NewEntry(logrus.New()))
	come := func(from string) *sharedConn {
		t.Helper()
		here, there := net.Pipe()
		t.Cleanup(func() { here.Close(); there.Close() })
		if reason := s.take(from); reason != "" {
			return nil
		}
		c := &sharedConn{Conn: here, of: s, from: from}
		c.give = func() { s.ended(c) }
		s.comes(c)
		return c
	}
	ended := func(c *sharedConn) bool { return c.SetDeadline(time.Time{}) != nil }
	var all []*sharedConn
	for _, from := range []string{"a", "a", "a", "a", "b", "b", "b", "c", "c", "c", "d", "d"} {
		all = append(all, come(from))
	}
	newcomer := come("e")
	if newcomer == nil || !ended(all[0]) || ended(all[1]) || s.sum != 12 {
		t.Fatalf("the newcomer is %v, and %d places are taken", newcomer, s.sum)
	}
	if come("d") == nil || come("d") != nil {
		t.Error("who has as many as anybody yields to himself alone")
	}
	s.recognized(newcomer, "token ops")
	if s.sum != 11 || s.knows != 1 || s.open["e"] != 0 {
		t.Errorf("%d strangers and %d others: %v", s.sum, s.knows, s.open)
	}
	for range 4 { // f's share is four; it has one
		c := come("f")
		s.recognized(c, "token ops")
		if c == nil || s.knows > 4 {
			t.Fatalf("%d have a place of those who are known", s.knows)
		}
	}
	if s.open["f"] != 1 {
		t.Errorf("beyond its share f has %d places of strangers", s.open["f"])
	}
	must(t, newcomer.Close())
	must(t, newcomer.Close())
	for _, c := range all {
		_ = c.Close()
	}
	if s.knows != 3 || len(s.queue["a"]) > 0 || s.open["a"] > 0 {
		t.Errorf("afterwards %d are known, and of strangers there are %v", s.knows, s.open)
	}
}

// TestSharesOfRoot: root can use all connections of the listener, apart from those of others. A new connection of
// root's replaces one that is not being answered. If there is none, it is refused with a reason.
func TestSharesOfRoot(t *testing.T) {
	const most = 3
	logger, logged := test.NewNullLogger()
	s := newShares(most, logrus.NewEntry(logger))
	s.who = func(net.Conn) (string, bool) { return "root", true }
	l := &sharedListener{shares: s}
	come := func() (net.Conn, string) {
		here, there := net.Pipe()
		t.Cleanup(func() { here.Close(); there.Close() })
		return l.admit(here)
	}
	ended := func(c net.Conn) bool { return c.SetDeadline(time.Time{}) != nil }
	var open []net.Conn
	for range most {
		c, reason := come()
		if c == nil {
			t.Fatal(reason)
		}
		open = append(open, c)
	}
	if c, reason := come(); c == nil || !ended(open[0]) || ended(open[1]) {
		t.Errorf("a newcomer: %v %s", c, reason)
	} else {
		open[0] = c
	}
	var answered []func()
	for _, c := range open {
		answered = append(answered, connlimit.Answering(connlimit.Context(t.Context(), c)))
	}
	for range 2 {
		if c, reason := come(); c != nil || !strings.Contains(reason, "all 3 connections for root") {
			t.Errorf("where on all something is answered: %v %s", c, reason)
		}
	}
	if n := len(logged.AllEntries()); n != 1 {
		t.Errorf("that is logged %d times", n)
	}
	answered[1]()
	if c, reason := come(); c == nil || !ended(open[1]) || ended(open[2]) {
		t.Errorf("when one is answered: %v %s", c, reason)
	}
}

// TestSharesRefused: only a limited number of refusals at a time are explained, and only to callers that ask soon.
func TestSharesRefused(t *testing.T) { synctest.Test(t, testSharesRefused) }

func testSharesRefused(t *testing.T) {
	refuse := refusing()
	refused := func() net.Conn {
		here, there := net.Pipe()
		t.Cleanup(func() { there.Close() })
		refuse(here, "too many")
		return there
	}
	begun := time.Now()
	var silent []net.Conn
	for range maxRefusals {
		silent = append(silent, refused())
	}
	if _, err := fmt.Fprint(refused(), "GET / HTTP/1.1\r\n"); !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("beyond the bound: %v", err)
	}
	for _, conn := range silent {
		if text, err := io.ReadAll(conn); err != nil || len(text) > 0 {
			t.Errorf("who asks nothing is told %q, %v", text, err)
		}
	}
	if took := time.Since(begun); took != refusalTime {
		t.Errorf("who asks nothing was heard for %s", took)
	}
	synctest.Wait() // the places are freed after the connections end
	if status, body := asks(refused(), "/"); status != http.StatusServiceUnavailable ||
		!strings.Contains(body, "too many") {
		t.Errorf("afterwards: %d %s", status, body)
	}
}
