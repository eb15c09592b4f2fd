// Package aside runs background work, such as page views and scrapes, without delaying the engine's requests. Such work
// keeps a processor for at most a few milliseconds at a time, and under load for at most one millisecond. Its pauses
// cost it little time.
//
// A caller has a Work for each long piece of work and calls its Pause between the parts, without holding a lock. Output
// passes through a Writer. Compressed answers pause by themselves (pack.go).
package aside

import (
	"io"
	"time"
)

// The runtime of Go looks for what else there is to do when whoever runs sleeps, and not where he only says that others
// may go first: what the network brings would wait else, with as many processors as a small host has. Where something
// runs all the time a sleep ends when it should; where nothing does, only after a millisecond, and nobody needs it. So
// the slice that follows is as long as makes sleeping a tenth.
const (
	slice = time.Millisecond
	rest  = 50 * time.Microsecond
	tenth = 10
)

// Work is one piece of work, of one goroutine. The zero Work has not begun.
type Work struct {
	since time.Time     // the slice began then
	long  time.Duration // as it is
}

// Pause rests where a slice is over.
func (w *Work) Pause() {
	now := time.Now()
	if w.since.IsZero() {
		w.since, w.long = now, slice
		return
	}
	if now.Sub(w.since) < w.long {
		return
	}
	time.Sleep(rest)
	w.since = time.Now()
	w.long = max(slice, tenth*w.since.Sub(now))
}

// Writer pauses between pieces of what is written through it.
type Writer struct {
	To io.Writer

	work    Work
	written int // since it was last seen whether it is time for a pause
}

// often is after how many bytes that is seen: templates write a few at a time.
const often = 4 << 10

// Write implements io.Writer.
func (w *Writer) Write(b []byte) (int, error) {
	if w.written += len(b); w.written >= often {
		w.written = 0
		w.work.Pause()
	}
	return w.To.Write(b)
}
