package connlimit

import (
	"errors"
	"net"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// pair is a connection and its other end.
type pair struct {
	net.Conn // the server's end
	far      net.Conn
}

// connect returns nil if the connection was not admitted.
func connect(t *testing.T, l *Limit) *pair {
	t.Helper()
	near, far := net.Pipe()
	t.Cleanup(func() { near.Close(); far.Close() })
	c := l.Admit(near)
	if c == nil {
		return nil
	}
	return &pair{c, far}
}

// sends sends n bytes.
func (c *pair) sends(t *testing.T, n int) {
	t.Helper()
	go func() { _, _ = c.far.Write(make([]byte, n)) }()
	if got, err := c.Read(make([]byte, n)); got != n || err != nil {
		t.Fatalf("%d of %d bytes were read: %v", got, n, err)
	}
}

func (c *pair) answering(t *testing.T) (answered func()) {
	return Answering(Context(t.Context(), c.Conn))
}

// wantOpen fails the test unless, of all connections, exactly the listed ones are open.
func wantOpen(t *testing.T, what string, all []*pair, open ...int) {
	t.Helper()
	is := map[int]bool{}
	for _, i := range open {
		is[i] = true
	}
	for i, c := range all {
		if closed := c.SetDeadline(time.Time{}) != nil; closed == is[i] {
			t.Errorf("%s: connection %d is closed: %v", what, i, closed)
		}
	}
}

// TestAdmit: a new connection replaces the oldest of the larger group, and never one with a request in progress.
func TestAdmit(t *testing.T) {
	l := New(4, 1000)
	var all []*pair
	more := func() bool {
		t.Helper()
		c := connect(t, l)
		if c != nil {
			all = append(all, c)
		}
		return c != nil
	}
	for range 4 {
		more()
	}
	all[1].answering(t)()
	answered := all[2].answering(t)
	wantOpen(t, "so far", all, 0, 1, 2, 3)
	more()
	wantOpen(t, "the oldest silent one is closed", all, 1, 2, 3, 4)
	all[3].answering(t)()
	all[1].answering(t)()
	more()
	wantOpen(t, "the one that is idle longest is closed", all, 1, 2, 4, 5)
	all[4].answering(t)
	more()
	wantOpen(t, "of two equal groups, a silent one is closed", all, 1, 2, 4, 6)
	all[6].answering(t)
	more()
	wantOpen(t, "the last idle one is closed", all, 2, 4, 6, 7)
	last := all[7].answering(t)
	if more() {
		t.Error("a connection with a request in progress was closed")
	}
	last()
	answered()
	if !more() {
		t.Error("a new connection was refused, though two may be closed")
	}
	wantOpen(t, "the one that was answered first is closed", all, 2, 4, 6, 8)
	if l.open != 4 || l.silent.Len() != 1 || l.idle.Len() != 1 {
		t.Errorf("%d are open, %d silent, %d idle", l.open, l.silent.Len(), l.idle.Len())
	}
	for _, c := range all {
		_ = c.Close()
	}
	answered() // after the end of the connection
	if l.open != 0 || l.silent.Len() != 0 || l.idle.Len() != 0 || l.bytes != 0 {
		t.Errorf("in the end %d are open, %d silent, %d idle, and %d bytes wait", l.open, l.silent.Len(), l.idle.Len(),
			l.bytes)
	}
}

// TestGroups: any number of silent connections closes only half of the idle ones.
func TestGroups(t *testing.T) {
	l := New(10, 1000)
	var idle, silent []*pair
	for range 10 {
		c := connect(t, l)
		c.answering(t)()
		idle = append(idle, c)
	}
	for range 100 {
		silent = append(silent, connect(t, l))
	}
	wantOpen(t, "half of the idle ones stay", idle, 5, 6, 7, 8, 9)
	wantOpen(t, "the others are the newest silent ones", silent, 95, 96, 97, 98, 99)
}

// TestBytes: if too many bytes wait, the connection with the most is closed. The bytes of a request count until it is
// answered. Bytes received while it is in progress do not count.
func TestBytes(t *testing.T) {
	l := New(10, 1000)
	all := []*pair{connect(t, l), connect(t, l), connect(t, l), connect(t, l)}
	all[0].sends(t, 300)
	answered := all[0].answering(t)
	all[0].sends(t, 5000)
	all[1].sends(t, 100)
	all[2].sends(t, 400)
	all[1].sends(t, 200)
	wantOpen(t, "at the limit", all, 0, 1, 2, 3)
	all[3].sends(t, 1)
	wantOpen(t, "one byte more", all, 0, 1, 3)
	all[1].answering(t)()
	all[3].sends(t, 699)
	wantOpen(t, "bytes of an answered request do not wait", all, 0, 1, 3)
	answered()
	all[1].sends(t, 300)
	all[0].sends(t, 1)
	wantOpen(t, "the one with the most is closed", all, 0, 1)
	all[0].sends(t, 999)
	wantOpen(t, "the sender is closed", all, 1)
}

// queue is a listener that accepts what a test puts into it.
type queue chan any // a net.Conn or an error

func (q queue) Accept() (net.Conn, error) {
	switch next := (<-q).(type) {
	case net.Conn:
		return next, nil
	case error:
		return nil, next
	}
	return nil, net.ErrClosed
}

func (q queue) Close() error   { close(q); return nil }
func (q queue) Addr() net.Addr { return nil }

// TestListener: while all connections are new or have requests in progress, the next one waits, until the listener is
// closed at the latest.
func TestListener(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := New(1, 1000)
		q := make(queue, 10)
		in := l.Listener(q)
		accepted := make(chan net.Conn, 10)
		go func() {
			defer close(accepted)
			for {
				c, err := in.Accept()
				if err != nil {
					return
				}
				accepted <- c
			}
		}()
		connect := func() (far net.Conn) {
			near, far := net.Pipe()
			q <- near
			synctest.Wait()
			return far
		}
		connect()
		answered := Answering(Context(t.Context(), <-accepted))
		connect()
		if len(accepted) != 0 {
			t.Fatal("more connections than the limit were accepted")
		}
		answered()
		begun := time.Now()
		second := <-accepted
		if took := time.Since(begun); took != grace {
			t.Errorf("the waiting connection was accepted after %s", took)
		}
		connect()
		if len(accepted) != 0 {
			t.Fatal("a new connection was closed")
		}
		third := <-accepted
		if took := time.Since(begun); took != 2*grace || second.SetDeadline(time.Time{}) == nil {
			t.Errorf("the next one was accepted after %s", took)
		}
		_ = Answering(Context(t.Context(), third))
		waits := connect()
		if err := in.Close(); err != nil {
			t.Error(err)
		}
		if _, open := <-accepted; open {
			t.Error("a connection was accepted after the end")
		}
		if _, err := waits.Write([]byte("a")); err == nil {
			t.Error("the connection that waited at the end is still open")
		}
	})
}

// TestFiles: if no file descriptor is left, a connection is closed. If none may be closed, Accept fails.
func TestFiles(t *testing.T) {
	l := New(10, 1000)
	q := make(queue, 10)
	in := l.Listener(q)
	silent := connect(t, l)
	near, far := net.Pipe()
	t.Cleanup(func() { near.Close(); far.Close() })
	q <- error(syscall.EMFILE)
	q <- near
	c, err := in.Accept()
	if err != nil || c == nil {
		t.Fatalf("got %v, %v", c, err)
	}
	wantOpen(t, "the silent one is closed", []*pair{silent})
	defer Answering(Context(t.Context(), c))()
	q <- error(syscall.ENFILE)
	if c, err := in.Accept(); !errors.Is(err, syscall.ENFILE) {
		t.Errorf("with none to close: %v, %v", c, err)
	}
}
