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

// A history treats three records as one object, because a scan reads all of them.

// cells are the values of the records; empty: no record.
type cells [3]string

func cellKey(i int) []byte { return fmt.Appendf(nil, "cell/%d", i) }

// deed is one operation on cells.
type deed struct {
	kind   string // get, put, delete, swap, scan
	cell   int
	expect string // for swap
	next   string // for put and swap
	view   bool   // a get or scan in a View
}

// yield is the result of a deed.
type yield struct {
	saw     cells // of a scan, or the one cell of any other deed
	wrote   bool
	unknown bool
}

func (d deed) run(s store.Store) (y yield, err error) {
	fn := func(tx store.Tx) error {
		y = yield{}
		if d.kind == "scan" {
			return scanCells(tx, &y.saw)
		}
		v, err := tx.Get(cellKey(d.cell))
		if err != nil {
			return err
		}
		y.saw[d.cell] = string(v)
		if y.wrote = d.writes(string(v)); !y.wrote {
			return nil
		}
		if d.kind == "delete" {
			return tx.Delete(cellKey(d.cell))
		}
		return tx.Put(cellKey(d.cell), []byte(d.next))
	}
	if d.view {
		return y, s.View(context.Background(), fn)
	}
	err = s.Update(context.Background(), fn)
	return y, err
}

// writes reports whether the deed changes a cell with the value now.
func (d deed) writes(now string) bool {
	return d.kind == "put" || d.kind == "delete" || d.kind == "swap" && now == d.expect
}

func scanCells(tx store.Tx, all *cells) error {
	for rec, err := range tx.Scan(store.Prefix([]byte("cell/"))) {
		if err != nil {
			return err
		}
		all[rec.Key[len(rec.Key)-1]-'0'] = string(rec.Value)
	}
	return nil
}

// allCells is the model.
func allCells() porcupine.Model {
	return porcupine.Model{
		Init: func() any { return cells{} },
		Step: func(state, input, output any) (bool, any) {
			now, d, y := state.(cells), input.(deed), output.(yield)
			if d.kind == "scan" {
				return y.saw == now, now
			}
			writes := d.writes(now[d.cell])
			if !y.unknown && (y.saw[d.cell] != now[d.cell] || y.wrote != writes) {
				return false, now
			}
			if writes {
				now[d.cell] = d.next
			}
			return true, now
		},
		DescribeOperation: func(input, output any) string { return fmt.Sprintf("%+v -> %+v", input, output) },
	}
}

// History is a record of concurrent operations on a store, or on a shared one through several handles, including views.
// Check searches it for a serial order that explains it.
type History struct {
	mu    sync.Mutex
	begin time.Time
	ops   []porcupine.Operation
	calls int
}

// NewHistory returns an empty History.
func NewHistory() *History { return &History{begin: time.Now()} }

// Drive runs several clients with n operations each through each of the handles, on three records, and records the
// operations. Failed ones did not happen and are omitted. One with an unknown outcome may take effect at any later
// time. failed is called with each error, and ends the client by returning true.
func Drive[S store.Store](h *History, all []S, clients, n int, failed func(error) bool) {
	h.mu.Lock()
	h.calls++
	run := h.calls
	h.mu.Unlock()
	var wg sync.WaitGroup
	for i, s := range all {
		for c := range clients {
			wg.Go(func() { h.drive(s, run, i*clients+c, n, failed) })
		}
	}
	wg.Wait()
}

func (h *History) drive(s store.Store, run, client, n int, failed func(error) bool) {
	var last cells
	for i := range n {
		d := deed{cell: (client + i) % len(cells{}), next: fmt.Sprintf("%d.%d.%d", run, client, i)}
		switch (client*31 + i*17) % 9 {
		case 0, 1, 2:
			d.kind, d.expect = "swap", last[d.cell]
		case 3, 4:
			d.kind = "put"
		case 5:
			d.kind, d.next = "delete", ""
		case 6:
			d.kind, d.view = "get", i%2 == 0
		default:
			d.kind, d.view = "scan", i%2 == 0
		}
		call := time.Since(h.begin).Nanoseconds()
		y, err := d.run(s)
		back := time.Since(h.begin).Nanoseconds()
		ends := err != nil && failed(err)
		switch {
		case errors.Is(err, store.ErrUnknown) && !d.view && d.writing():
			y, back, err = yield{unknown: true}, math.MaxInt64, nil
		case err != nil:
		case d.kind == "scan":
			last = y.saw
		case y.wrote:
			last[d.cell] = d.next
		default:
			last[d.cell] = y.saw[d.cell]
		}
		if err == nil {
			h.mu.Lock()
			h.ops = append(h.ops, porcupine.Operation{ClientId: client, Input: d, Call: call, Output: y, Return: back})
			h.mu.Unlock()
		}
		if ends {
			return
		}
	}
}

func (d deed) writing() bool { return d.kind != "get" && d.kind != "scan" }

// Check searches for a serial order that agrees with the times of all operations.
func (h *History) Check(t testing.TB) {
	t.Helper()
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.ops) == 0 {
		t.Fatal("the history is empty")
	}
	const patience = time.Minute
	if r := porcupine.CheckOperationsTimeout(allCells(), h.ops, patience); r != porcupine.Ok {
		t.Errorf("no serial order explains the %d operations: %v", len(h.ops), r)
	}
}

func testHistory(t *testing.T, s store.Store) { histories(t, []store.Store{s}, workers) }

func testSharedHistory(t *testing.T, h *handles) { histories(t, h.three(), callers) }

func histories[S store.Store](t *testing.T, all []S, clients int) {
	for range few(5) { // each starts with an empty store, which keeps the search short
		wipe(t, all[0])
		h := NewHistory()
		Drive(h, all, clients, few(20), func(err error) bool { t.Error(err); return true })
		h.Check(t)
	}
}
