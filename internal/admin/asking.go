package admin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"sync"

	"berth/internal/admin/api"
	"berth/internal/ipam"
)

// asking sends questions about an engine to the sender of its news. The questions are lines of the response; the news
// are the body of the request. It is an ipam.Onlooker.
type asking struct {
	w       http.ResponseWriter
	control *http.ResponseController
	gone    <-chan struct{} // closed when the sender is gone

	mu     sync.Mutex
	last   uint64                            // question
	open   map[uint64]chan ipam.EngineAnswer // each of one place
	closed bool
}

func newAsking(w http.ResponseWriter, control *http.ResponseController, gone <-chan struct{}) *asking {
	return &asking{w: w, control: control, gone: gone, open: map[uint64]chan ipam.EngineAnswer{}}
}

// Locked implements ipam.Onlooker.
func (a *asking) Locked(ctx context.Context, q ipam.Question) ipam.Locked {
	ctx, cancel := context.WithTimeout(ctx, api.QuestionTime)
	defer cancel()
	answer, err := a.ask(ctx, ipam.EngineQuestion{Locked: &q})
	if err != nil || answer.Locked == nil {
		return ipam.Locked{}
	}
	return *answer.Locked
}

// Move implements ipam.Onlooker.
func (a *asking) Move(ctx context.Context, order ipam.MoveOrder) (ipam.MoveAnswer, error) {
	ctx, cancel := context.WithTimeout(ctx, api.MoveTime)
	defer cancel()
	answer, err := a.ask(ctx, ipam.EngineQuestion{Move: &order})
	if err != nil {
		return ipam.MoveAnswer{}, err
	}
	if answer.Move == nil {
		return ipam.MoveAnswer{},
			errors.New("berth witness cannot move a container: its version differs from the daemon's; " +
				"install the same version and restart it")
	}
	return *answer.Move, nil
}

// ask sends one question and waits for its answer until ctx ends.
func (a *asking) ask(ctx context.Context, q ipam.EngineQuestion) (ipam.EngineAnswer, error) {
	id, answer := a.send(q)
	if answer == nil {
		return ipam.EngineAnswer{}, errAway
	}
	defer a.forget(id)
	select {
	case got := <-answer:
		return got, nil
	case <-a.gone:
		return ipam.EngineAnswer{}, errAway
	case <-ctx.Done():
		return ipam.EngineAnswer{}, fmt.Errorf("berth witness does not answer: %w", ctx.Err())
	}
}

var errAway = errors.New("berth witness is no longer connected")

// send writes a question. It returns a nil channel if that fails.
func (a *asking) send(q ipam.EngineQuestion) (uint64, chan ipam.EngineAnswer) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.closed {
		return 0, nil
	}
	if a.last == 0 { // the client reads the response while it sends the news
		_ = a.control.EnableFullDuplex() // HTTP/2 needs no such call
		a.w.Header().Set("Content-Type", api.LinesType)
	}
	a.last++
	q.ID = a.last
	line, err := json.Marshal(q)
	if err != nil {
		return 0, nil
	}
	if _, err := a.w.Write(append(line, '\n')); err != nil || a.control.Flush() != nil {
		return 0, nil
	}
	answer := make(chan ipam.EngineAnswer, 1)
	a.open[a.last] = answer
	return a.last, answer
}

// answered passes an answer to the goroutine that waits for it, if one still does.
func (a *asking) answered(got *ipam.EngineAnswer) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if answer := a.open[got.ID]; answer != nil {
		answer <- *got
		delete(a.open, got.ID)
	}
}

func (a *asking) forget(id uint64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.open, id)
}

// close stops further questions, so that the response can end.
func (a *asking) close() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.closed = true
}
