package doors

import (
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"berth/test/lab"
)

// TestReceivers: a webhook receiver may answer anything, for any time: the daemon stays small and serves the
// engine.
func TestReceivers(t *testing.T) {
	const ok = "HTTP/1.1 200 OK\r\n"
	long := strings.Repeat("x", 1<<20)
	for _, c := range sample(t, []struct {
		name   string
		answer func(net.Conn)
	}{
		{"silent", func(net.Conn) {}},
		{"slow", func(c net.Conn) { drip(c, ok+"X-Slow: ") }},
		{"slow body", func(c net.Conn) { drip(c, ok+"Content-Length: 1000000\r\n\r\na") }},
		{"1 GB", func(c net.Conn) { endless(c, ok+"\r\n", long) }},
		{"1 GB of a status", func(c net.Conn) { endless(c, "HTTP/1.1 500 ", long) }},
		{"1 GB of a header", func(c net.Conn) { endless(c, ok+"X-Long: ", long) }},
		{"1 GB of headers", func(c net.Conn) { endless(c, ok, strings.Repeat("X-Y: z\r\n", 1<<17)) }},
		{"1 GB of hints", func(c net.Conn) { endless(c, "", strings.Repeat("HTTP/1.1 103 Early\r\n\r\n", 1<<15)) }},
		{"1 GB refused", func(c net.Conn) { endless(c, "HTTP/1.1 400 No\r\n\r\n", long) }},
	}) {
		t.Run(c.name, func(t *testing.T) {
			r := receive(t, c.answer)
			d := start(t, "--webhook", "http://"+r.l.Addr().String()+"/"+long[:1000])
			t.Logf("a receiver: %-17s %s", c.name, d.suffers(r.await, r.end))
			d.staysSmall()
		})
	}
}

// receiver accepts connections and answers every request.
type receiver struct {
	t     *testing.T
	l     net.Listener
	asked chan struct{} // closed at the first request
	wg    sync.WaitGroup

	mu    sync.Mutex
	conns []net.Conn
}

func receive(t *testing.T, answer func(net.Conn)) *receiver {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	lab.Must(t, err)
	r := &receiver{t: t, l: l, asked: make(chan struct{})}
	first := sync.OnceFunc(func() { close(r.asked) })
	r.wg.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			first()
			r.mu.Lock()
			r.conns = append(r.conns, c)
			r.mu.Unlock()
			r.wg.Go(func() { _, _ = io.Copy(io.Discard, c) })
			r.wg.Go(func() { answer(c) })
		}
	})
	t.Cleanup(r.end)
	return r
}

// await waits for the first request.
func (r *receiver) await() {
	select {
	case <-r.asked:
	case <-time.After(patience):
		r.t.Error("no event was sent")
	}
}

func (r *receiver) end() {
	_ = r.l.Close()
	r.mu.Lock()
	conns := r.conns
	r.conns = nil
	r.mu.Unlock()
	for _, c := range conns {
		_ = c.Close()
	}
	r.wg.Wait()
}

// endless sends a beginning and then 1 GB, until it is cut off.
func endless(c net.Conn, begin, again string) {
	_, err := fmt.Fprint(c, begin)
	for sent := 0; err == nil && sent < oneGB; sent += len(again) {
		_, err = io.WriteString(c, again)
	}
}
