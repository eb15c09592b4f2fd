// Package background runs background work, such as page views and scrapes, without delaying the engine's requests. Such
// work keeps a processor for at most a few milliseconds at a time, and under load for at most one millisecond. Its
// pauses cost it little time.
//
// A caller has a Work for each long piece of work and calls its Pause between the parts, without holding a lock. Output
// passes through a Writer. Compressed answers pause by themselves (pack.go).
package background

import (
	"io"
	"time"
)

// Pauses must be sleeps. A goroutine that only yields (runtime.Gosched) does not make Go's runtime look at the network,
// so on a host with few processors a request would wait. While other goroutines run, a sleep takes about as long as
// rest. On an idle host it takes a millisecond, and delays nobody. The next slice is ten times as long as the sleep
// was, so that sleeping takes a tenth of the time at most.
const (
	slice = time.Millisecond
	rest  = 50 * time.Microsecond
	tenth = 10
)

// Work is one piece of work, done by one goroutine. The zero Work is ready to use.
type Work struct {
	start time.Time     // of the present slice
	slice time.Duration // its length
}

// Pause sleeps for a moment if the present slice is over.
func (w *Work) Pause() {
	now := time.Now()
	if w.start.IsZero() {
		w.start, w.slice = now, slice
		return
	}
	if now.Sub(w.start) < w.slice {
		return
	}
	time.Sleep(rest)
	w.start = time.Now()
	w.slice = max(slice, tenth*w.start.Sub(now))
}

// Writer passes on what is written to it, and pauses in between.
type Writer struct {
	To io.Writer

	work    Work
	written int // bytes since the last call of Pause
}

// pauseAfter is the number of bytes between two calls of Pause. Templates write only a few bytes at a time.
const pauseAfter = 4 << 10

// Write implements io.Writer.
func (w *Writer) Write(b []byte) (int, error) {
	if w.written += len(b); w.written >= pauseAfter {
		w.written = 0
		w.work.Pause()
	}
	return w.To.Write(b)
}
