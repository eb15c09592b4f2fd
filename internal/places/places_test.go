package places

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

// pair is a connection whose other end sends what a test wants.
type pair struct {
	net.Conn // as the server has it
	far      net.Conn
}

// comes connects; nil: it was given no place.
func comes(t *testing.T, p *Places) *pair {
	t.Helper()
	near, far := net.Pipe()
	t.Cleanup(func() { near.Close(); far.Close() })
	c := p.Take(near)
	if c == nil {
		return nil
	}
	return &pair{c, far}
}

// sends has so many bytes come.
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

// wantOpen fails the test unless exactly these connections are open, of those that it knows.
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

// TestYield: a newcomer has a place of the kind of which there are more, the oldest of that kind, and never one of a
// connection on which something is being answered.
func TestYield(t *testing.T) {
	p := New(4, 1000)
	var all []*pair
	more := func() bool {
		t.Helper()
		c := comes(t, p)
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
	wantOpen(t, "the oldest silent one yields", all, 1, 2, 3, 4)
	all[3].answering(t)()
	all[1].answering(t)()
	more()
	wantOpen(t, "the one that is idle longest yields", all, 1, 2, 4, 5)
	all[4].answering(t)
	more()
	wantOpen(t, "where there are as many of either kind, the silent one", all, 1, 2, 4, 6)
	all[6].answering(t)
	more()
	wantOpen(t, "the last that is idle", all, 2, 4, 6, 7)
	last := all[7].answering(t)
	if more() {
		t.Error("a newcomer has the place of one that is being answered")
	}
	last()
	answered()
	if !more() {
		t.Error("a newcomer has no place though two are answered")
	}
	wantOpen(t, "what was answered first yields", all, 2, 4, 6, 8)
	if p.open != 4 || p.silent.Len() != 1 || p.idle.Len() != 1 {
		t.Errorf("%d are open, %d silent, %d idle", p.open, p.silent.Len(), p.idle.Len())
	}
	for _, c := range all {
		_ = c.Close()
	}
	answered() // the connection is gone
	if p.open != 0 || p.silent.Len() != 0 || p.idle.Len() != 0 || p.bytes != 0 {
		t.Errorf("in the end %d are open, %d silent, %d idle, and %d bytes wait", p.open, p.silent.Len(), p.idle.Len(),
			p.bytes)
	}
}

// TestKinds: those on which something was answered keep no newcomer out, however many they are, nor do silent ones cost
// them their places.
func TestKinds(t *testing.T) {
	p := New(10, 1000)
	var idle, silent []*pair
	for range 10 {
		c := comes(t, p)
		c.answering(t)()
		idle = append(idle, c)
	}
	for range 100 {
		silent = append(silent, comes(t, p))
	}
	wantOpen(t, "half of those that are idle stay", idle, 5, 6, 7, 8, 9)
	wantOpen(t, "the others are the last that came", silent, 95, 96, 97, 98, 99)
}

// TestBytes: where too much waits, the connection ends on which the most does. What belongs to a request counts until
// that is answered, and what comes meanwhile does not.
func TestBytes(t *testing.T) {
	p := New(10, 1000)
	all := []*pair{comes(t, p), comes(t, p), comes(t, p), comes(t, p)}
	all[0].sends(t, 300)
	answered := all[0].answering(t)
	all[0].sends(t, 5000)
	all[1].sends(t, 100)
	all[2].sends(t, 400)
	all[1].sends(t, 200)
	wantOpen(t, "so much may wait", all, 0, 1, 2, 3)
	all[3].sends(t, 1)
	wantOpen(t, "one byte more", all, 0, 1, 3)
	all[1].answering(t)()
	all[3].sends(t, 699)
	wantOpen(t, "what was answered does not wait", all, 0, 1, 3)
	answered()
	all[1].sends(t, 300)
	all[0].sends(t, 1)
	wantOpen(t, "the largest of all", all, 0, 1)
	all[0].sends(t, 999)
	wantOpen(t, "the one that sends", all, 1)
}

// queue is a listener that hands out what a test puts into it.
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

// TestListener: while all are being answered, or have just come, whoever connects waits, and no longer than the listener
// is there.
func TestListener(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := New(1, 1000)
		q := make(queue, 10)
		l := p.Over(q)
		accepted := make(chan net.Conn, 10)
		go func() {
			defer close(accepted)
			for {
				c, err := l.Accept()
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
			t.Fatal("there are more connections than places")
		}
		answered()
		begun := time.Now()
		second := <-accepted
		if took := time.Since(begun); took != moment {
			t.Errorf("whoever waits is let in after %s", took)
		}
		connect()
		if len(accepted) != 0 {
			t.Fatal("one that has just come was cut off")
		}
		third := <-accepted
		if took := time.Since(begun); took != 2*moment || second.SetDeadline(time.Time{}) == nil {
			t.Errorf("the next is let in after %s", took)
		}
		_ = Answering(Context(t.Context(), third))
		waits := connect()
		if err := l.Close(); err != nil {
			t.Error(err)
		}
		if _, open := <-accepted; open {
			t.Error("one is let in after the end")
		}
		if _, err := waits.Write([]byte("a")); err == nil {
			t.Error("whoever waited at the end is not cut off")
		}
	})
}

// TestFiles: where the process may open no more files, a connection yields; where none does, that is an error.
func TestFiles(t *testing.T) {
	p := New(10, 1000)
	q := make(queue, 10)
	l := p.Over(q)
	silent := comes(t, p)
	near, far := net.Pipe()
	t.Cleanup(func() { near.Close(); far.Close() })
	q <- error(syscall.EMFILE)
	q <- near
	c, err := l.Accept()
	if err != nil || c == nil {
		t.Fatalf("a newcomer: %v %v", c, err)
	}
	wantOpen(t, "the silent one yields", []*pair{silent})
	defer Answering(Context(t.Context(), c))()
	q <- error(syscall.ENFILE)
	if c, err := l.Accept(); !errors.Is(err, syscall.ENFILE) {
		t.Errorf("without any that yields: %v %v", c, err)
	}
}
