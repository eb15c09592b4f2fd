package admin

import (
	"context"
	"encoding/json"
	"net/http"
	"sync"

	"berth/internal/admin/api"
	"berth/internal/ipam"
)

// asking sends questions about an engine to whoever tells its news, in the answer to the request of which the news are
// the body.
type asking struct {
	w       http.ResponseWriter
	control *http.ResponseController

	mu     sync.Mutex
	last   uint64                      // question
	open   map[uint64]chan ipam.Locked // each of one place
	closed bool
}

func newAsking(w http.ResponseWriter, control *http.ResponseController) *asking {
	return &asking{w: w, control: control, open: map[uint64]chan ipam.Locked{}}
}

// ask asks one question, and waits for its answer as long as ctx lasts.
func (a *asking) ask(ctx context.Context, q ipam.Question) ipam.Locked {
	ctx, cancel := context.WithTimeout(ctx, api.QuestionTime)
	defer cancel()
	id, answer := a.send(q)
	if answer == nil {
		return ipam.Locked{}
	}
	defer a.forget(id)
	select {
	case got := <-answer:
		return got
	case <-ctx.Done():
		return ipam.Locked{}
	}
}

// send writes a question; a nil channel: that cannot be done.
func (a *asking) send(q ipam.Question) (uint64, chan ipam.Locked) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.closed {
		return 0, nil
	}
	if a.last == 0 { // who sends the news reads the answer while he does
		_ = a.control.EnableFullDuplex() // over HTTP/2 it is so anyhow
		a.w.Header().Set("Content-Type", "application/x-ndjson")
	}
	a.last++
	line, err := json.Marshal(ipam.EngineQuestion{ID: a.last, Question: q})
	if err != nil {
		return 0, nil
	}
	if _, err := a.w.Write(append(line, '\n')); err != nil || a.control.Flush() != nil {
		return 0, nil
	}
	answer := make(chan ipam.Locked, 1)
	a.open[a.last] = answer
	return a.last, answer
}

// answered gives an answer to who waits for it, if anybody does still.
func (a *asking) answered(got *ipam.EngineAnswer) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if answer := a.open[got.ID]; answer != nil {
		answer <- got.Locked
		delete(a.open, got.ID)
	}
}

func (a *asking) forget(id uint64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.open, id)
}

// close ends the questions, so that the answer may be ended.
func (a *asking) close() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.closed = true
}
