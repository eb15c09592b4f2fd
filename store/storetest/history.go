package storetest

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"berth/store"
)

// step is one operation of a history on one key: read it, or write next if it holds expect (any: whatever it holds).
type step struct {
	key          string
	write, any   bool
	expect, next string
}

// outcome is the result of a step.
type outcome struct {
	value   string // read, or found by a write
	wrote   bool
	unknown bool
}

// History is a record of concurrent operations on a store. Check searches it for a serial order that explains it.
type History struct {
	mu    sync.Mutex
	begin time.Time
	ops   []porcupine.Operation
}

// NewHistory returns an empty History.
func NewHistory() *History { return &History{begin: time.Now()} }

// do runs one operation on s and records it. An operation with an unknown outcome may take effect at any later time, so
// its end is infinite. One that failed otherwise did not happen and is omitted.
func (h *History) do(s store.Store, client int, in step) error {
	var out outcome
	call := time.Since(h.begin).Nanoseconds()
	err := in.run(s, &out)
	back := time.Since(h.begin).Nanoseconds()
	switch {
	case errors.Is(err, store.ErrUnknown):
		out, back = outcome{unknown: true}, math.MaxInt64
	case err != nil:
		return err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.ops = append(h.ops, porcupine.Operation{ClientId: client, Input: in, Call: call, Output: out, Return: back})
	return err
}

func (in step) run(s store.Store, out *outcome) error {
	if !in.write {
		return s.View(context.Background(), func(tx store.Tx) error {
			v, err := tx.Get([]byte(in.key))
			out.value = string(v)
			return err
		})
	}
	return s.Update(context.Background(), func(tx store.Tx) error {
		v, err := tx.Get([]byte(in.key))
		if err != nil {
			return err
		}
		*out = outcome{value: string(v), wrote: in.any || string(v) == in.expect}
		if !out.wrote {
			return nil
		}
		if in.next == "" {
			return tx.Delete([]byte(in.key))
		}
		return tx.Put([]byte(in.key), []byte(in.next))
	})
}

// register is the model of one key.
func register() porcupine.Model {
	return porcupine.Model{
		Partition: func(ops []porcupine.Operation) [][]porcupine.Operation {
			by := map[string][]porcupine.Operation{}
			for _, o := range ops {
				key := o.Input.(step).key
				by[key] = append(by[key], o)
			}
			var parts [][]porcupine.Operation
			for _, p := range by {
				parts = append(parts, p)
			}
			return parts
		},
		Init: func() any { return "" },
		Step: func(state, input, output any) (bool, any) {
			in, out, now := input.(step), output.(outcome), state.(string)
			may := in.write && (in.any || now == in.expect)
			switch {
			case !out.unknown && (out.value != now || out.wrote != may):
				return false, now
			case may:
				return true, in.next
			}
			return true, now
		},
		DescribeOperation: func(input, output any) string { return fmt.Sprintf("%+v -> %+v", input, output) },
	}
}

// Check searches for a serial order that agrees with the times of all operations.
func (h *History) Check(t testing.TB) {
	t.Helper()
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.ops) == 0 {
		t.Fatal("the history is empty")
	}
	const patience = 20 * time.Second
	if r := porcupine.CheckOperationsTimeout(register(), h.ops, patience); r != porcupine.Ok {
		t.Errorf("no serial order explains the %d operations: %v", len(h.ops), r)
	}
}

// Drive runs concurrent clients on a few keys of s and records their operations. It ends when each client has made n
// operations, or when stop returns true for an error.
func (h *History) Drive(s store.Store, clients, n int, stop func(error) bool) {
	var wg sync.WaitGroup
	for c := range clients {
		wg.Go(func() {
			last := map[string]string{}
			for i := range n {
				key := fmt.Sprintf("key%d", (c+i)%3)
				in := step{key: key}
				switch (c*31 + i*17) % 5 {
				case 0, 1:
					in.write, in.expect, in.next = true, last[key], fmt.Sprintf("%d.%d", c, i)
				case 2:
					in.write, in.any, in.next = true, true, fmt.Sprintf("%d.%d", c, i)
				case 3:
					in.write, in.any = i%4 == 0, true
				}
				if err := h.do(s, c, in); err != nil && stop(err) {
					return
				}
				if in.write {
					last[key] = in.next
				}
			}
		})
	}
	wg.Wait()
}

func testHistory(t *testing.T, s store.Store) {
	h := NewHistory()
	h.Drive(s, workers, 2*rounds(), func(err error) bool { t.Error(err); return true })
	h.Check(t)
}
