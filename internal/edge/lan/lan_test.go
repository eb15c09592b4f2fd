package lan

import (
	"context"
	"errors"
	"io"
	"iter"
	"testing"
	"testing/synctest"
	"time"

	"berth/internal/ipam"

	"github.com/sirupsen/logrus"
)

// harness is a daemon that asks, with the answers that it gets.
type harness struct {
	asks    chan ipam.LANAsk
	breaks  chan error
	answers chan ipam.LANAnswer
	calls   chan struct{}
}

func newHarness() *harness {
	return &harness{make(chan ipam.LANAsk), make(chan error), make(chan ipam.LANAnswer, 100), make(chan struct{}, 100)}
}

func (h *harness) config(do func(context.Context, ipam.LANAsk) ipam.LANAnswer) Config {
	quiet := logrus.New()
	quiet.SetOutput(io.Discard)
	return Config{Log: logrus.NewEntry(quiet), Do: do,
		Answer: func(_ context.Context, a ipam.LANAnswer) error { h.answers <- a; return nil },
		Asks: func(ctx context.Context) iter.Seq2[ipam.LANAsk, error] {
			return func(yield func(ipam.LANAsk, error) bool) {
				h.calls <- struct{}{}
				for {
					select {
					case q := <-h.asks:
						if !yield(q, nil) {
							return
						}
					case err := <-h.breaks:
						yield(ipam.LANAsk{}, err)
						return
					case <-ctx.Done():
						return
					}
				}
			}
		}}
}

func question(id uint64, within time.Duration) ipam.LANAsk {
	return ipam.LANAsk{ID: id, Verb: ipam.LANTake, Parent: "eth0", Within: ipam.Duration(within)}
}

// TestBeside: one question does not wait for another. Each has its own time limit.
func TestBeside(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHarness()
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() {
			ended <- Run(ctx, h.config(func(ctx context.Context, q ipam.LANAsk) ipam.LANAnswer {
				if q.ID == 1 {
					<-ctx.Done()
					return ipam.LANAnswer{Failure: ipam.LANSilent}
				}
				return ipam.LANAnswer{ID: 99}
			}))
		}()
		begun := time.Now()
		h.asks <- question(1, 10*time.Second)
		h.asks <- question(2, 10*time.Second)
		if a := <-h.answers; a.ID != 2 || a.Failure != "" || time.Since(begun) != 0 {
			t.Errorf("answered %+v after %s", a, time.Since(begun))
		}
		if a := <-h.answers; a.ID != 1 || a.Failure != ipam.LANSilent || time.Since(begun) != 10*time.Second {
			t.Errorf("answered %+v after %s", a, time.Since(begun))
		}
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

// TestAgain: the edge reconnects to a restarted daemon, and cancels the previous daemon's questions.
func TestAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHarness()
		go func() {
			_ = Run(t.Context(), h.config(func(ctx context.Context, q ipam.LANAsk) ipam.LANAnswer {
				if q.ID == 1 {
					<-ctx.Done()
				}
				return ipam.LANAnswer{}
			}))
		}()
		h.asks <- question(1, time.Hour)
		for range 20 {
			h.breaks <- errors.New("it has ended")
		}
		h.asks <- question(2, time.Second)
		if a := <-h.answers; a.ID != 2 {
			t.Errorf("answered %+v", a)
		}
		if len(h.calls) != 21 || len(h.answers) > 0 {
			t.Errorf("%d connections, %d answers more", len(h.calls), len(h.answers))
		}
	})
}
