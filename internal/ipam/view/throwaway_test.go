package view_test

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"berth/internal/ipam"
	"berth/internal/ipam/ipamtest"
	"berth/internal/ipam/ledger"
	"berth/internal/ipam/service"
	"berth/store"
	"berth/store/storetest"
)

// reader has read each event when it was written, and knows all events that can be read again.
type reader struct {
	store store.Store
	s     *service.Service
	clock *ipamtest.Clock
	pool  ipam.ID
	mark  ipam.EventMark
	all   []ipam.Event // in order
	held  []netip.Addr
	names int
}

// TestThrowAways compares each way of reading events with what a reader got when each event came. Events that
// share a record stay several, each in its place, wherever a reader continues.
func TestThrowAways(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := &reader{store: storetest.NewModel(), clock: ipamtest.NewClock()}
		r.open(t)
		grant, err := r.s.RequestPool(ctx, ipam.PoolRequest{Space: "local", CIDR: netip.MustParsePrefix("10.0.0.0/24")})
		must(t, err)
		r.pool = grant.ID
		r.listen(t)
		t.Repeat(map[string]func(*rapid.T){
			"throw away":       r.throwAway,
			"throw away again": r.throwAway,
			"throw many away":  func(t *rapid.T) { r.throwAway(t); r.throwAway(t); r.throwAway(t) },
			"take":             func(t *rapid.T) { r.take(t); r.listen(t) },
			"release":          r.release,
			"wait":             func(*rapid.T) { r.clock.Time = r.clock.Time.Add(time.Millisecond) },
			"wait long":        func(*rapid.T) { r.clock.Time = r.clock.Time.Add(time.Hour) },
			"from elsewhere":   r.put,
			"to elsewhere":     r.drop,
			"open":             r.open,
			"":                 r.check,
		})
	})
}

func (r *reader) open(t *rapid.T) {
	var was ledger.EventSum
	if r.s != nil {
		was = ledger.Ask(r.s.Ledger, (*ledger.Index).Events)
	}
	var err error
	if r.s, err = service.Open(ctx, service.Config{Store: r.store, Host: "h1", Now: r.clock.Now}); err != nil {
		t.Fatal(err)
	}
	if is := ledger.Ask(r.s.Ledger, (*ledger.Index).Events); was.Count > 0 && is != was {
		t.Fatalf("%+v are stored, and %+v were counted", is, was)
	}
}

// listen reads the new events, one per page.
func (r *reader) listen(t *rapid.T) {
	for more := true; more; {
		page, err := r.s.EventsBehind(ctx, r.mark, 1, func(*ipam.Event) bool { return true })
		must(t, err)
		r.all, r.mark, more = append(r.all, page.Events...), page.Next, page.More
	}
}

func (r *reader) take(t *rapid.T) {
	r.names++
	addr, err := r.s.RequestAddress(ctx, ipam.AddressRequest{Pool: r.pool, Name: fmt.Sprintf("job-%d", r.names)})
	if err != nil {
		t.Skip(err)
	}
	r.held = append(r.held, addr.Addr())
}

func (r *reader) release(t *rapid.T) {
	if len(r.held) == 0 {
		t.Skip()
	}
	n := rapid.IntRange(0, len(r.held)-1).Draw(t, "which")
	r.giveBack(t, n)
}

func (r *reader) giveBack(t *rapid.T, n int) {
	must(t, r.s.ReleaseAddress(ctx, r.pool, r.held[n]))
	r.held = slices.Delete(r.held, n, n+1)
	r.listen(t)
}

// throwAway takes an address and releases it. That leaves one more record, or none.
func (r *reader) throwAway(t *rapid.T) {
	before := r.records(t)
	r.take(t)
	if rapid.Bool().Draw(t, "the taking is heard by itself") {
		r.listen(t)
	}
	r.giveBack(t, len(r.held)-1)
	if left := r.records(t) - before; left > 1 {
		t.Fatalf("it leaves %d records", left)
	}
}

func (r *reader) records(t *rapid.T) (n int) {
	err := r.s.Ledger.View(ctx, func(tx store.Tx) error {
		for _, err := range tx.Scan(ledger.KindRange(ledger.EventKeys)) {
			if err != nil {
				return err
			}
			n++
		}
		return nil
	})
	must(t, err)
	return n
}

// put writes an event of another store between the others.
func (r *reader) put(t *rapid.T) {
	at := rapid.IntRange(0, len(r.all)-1).Draw(t, "before")
	id := r.all[at].ID - 1
	if at > 0 && r.all[at-1].ID == id {
		t.Skip("there is no room")
	}
	e := &ipam.Event{Verb: ipam.PolicyChanged, Space: "lab", Name: "net1"}
	if err := r.s.Ledger.Update(ctx, func(c *ledger.Change) error {
		return c.PutEvent(id, ipam.EncodeEvent(nil, e))
	}); err != nil {
		t.Fatal(err)
	}
	e.ID, e.Time = id, ipam.EventTime(id)
	r.all = slices.Insert(r.all, at, *e)
}

// drop removes an event, as if another store had it.
func (r *reader) drop(t *rapid.T) {
	if len(r.all) == 1 {
		t.Skip()
	}
	at := rapid.IntRange(0, len(r.all)-1).Draw(t, "at")
	id := r.all[at].ID
	var before []byte
	if err := r.s.Ledger.Update(ctx, func(c *ledger.Change) (err error) {
		if before, err = c.EventAlone(id); err != nil {
			return err
		}
		return c.DropEvent(id)
	}); err != nil {
		t.Fatal(err)
	}
	if e, err := ipam.DecodeEvent(id, before); err != nil || gocmp.Diff(*e, r.all[at], ipamtest.ShowOptions) != "" {
		t.Fatalf("%+v was there, and it was %+v (%v)", e, r.all[at], err)
	}
	r.all = slices.Delete(r.all, at, at+1)
	// A newly opened store does not know an id that went elsewhere, and would give it again in the same microsecond.
	r.clock.Time = r.clock.Time.Add(time.Millisecond)
}

// check reads the events in all ways.
func (r *reader) check(t *rapid.T) {
	same := func(what string, got []ipam.Event, err error, want []ipam.Event) {
		t.Helper()
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		if diff := gocmp.Diff(append([]ipam.Event{}, want...), append([]ipam.Event{}, got...),
			ipamtest.ShowOptions); diff != "" {
			t.Fatalf("%s:\n%s", what, diff)
		}
	}
	from := rapid.IntRange(0, len(r.all)-1).Draw(t, "from")
	to := rapid.IntRange(from, len(r.all)-1).Draw(t, "to")
	first, last := r.all[from], r.all[to]

	mark := ipam.EventMark{Own: ipam.StoreMark{After: first.ID}}
	page, err := r.s.EventsBehind(ctx, mark, to-from, func(*ipam.Event) bool { return true })
	same("behind a mark", page.Events, err, r.all[from+1:to+1])
	if more := to < len(r.all)-1; page.More != more || page.Next.Own.After != last.ID {
		t.Fatalf("there are more: %t, behind %d of %d", page.More, page.Next.Own.After, last.ID)
	}
	n := to - from + 1
	for what, c := range map[string]struct {
		filter ipam.EventFilter
		want   []ipam.Event
	}{
		"all":       {ipam.EventFilter{}, r.all},
		"after":     {ipam.EventFilter{After: first.ID, First: n}, r.all[from+1 : min(to+2, len(r.all))]},
		"between":   {ipam.EventFilter{Since: first.Time, Before: last.Time}, r.all[from:to]},
		"backwards": {ipam.EventFilter{Since: first.Time, Before: last.Time, Last: n}, r.all[from:to]},
		"the last":  {ipam.EventFilter{Last: n}, r.all[len(r.all)-n:]},
		"before":    {ipam.EventFilter{Before: last.Time, Last: 1}, r.all[max(to-1, 0):to]},
		"until":     {ipam.EventFilter{Until: &mark, Last: n}, r.all[max(from+1-n, 0) : from+1]},
	} {
		got, err := r.s.Events(ctx, c.filter)
		same(what, got, err, c.want)
	}
	if lacks, err := r.s.MayLack(ctx, mark, time.Time{}); err != nil || lacks {
		t.Fatalf("events may lack behind one that is there: %t, %v", lacks, err)
	}
	if end, err := r.s.LastEvent(ctx); err != nil || end.Own.After != r.all[len(r.all)-1].ID {
		t.Fatalf("the last one is %d, %v", end.Own.After, err)
	}
	r.one(t, rapid.Uint64Range(first.ID, last.ID).Draw(t, "id"))
	r.one(t, first.ID)
	if problems, err := r.s.Check(ctx); err != nil || len(problems) > 0 {
		t.Fatalf("%q, %v", problems, err)
	}
}

// one finds an event by its id, or none.
func (r *reader) one(t *rapid.T, id uint64) {
	at, is := slices.BinarySearchFunc(r.all, id, func(e ipam.Event, id uint64) int { return cmp.Compare(e.ID, id) })
	err := r.s.Ledger.View(ctx, func(tx store.Tx) error {
		e, err := ledger.FindEvent(tx, id)
		if (e != nil) != is || is && gocmp.Diff(*e, r.all[at], ipamtest.ShowOptions) != "" {
			t.Fatalf("%d: %+v", id, e)
		}
		return err
	})
	must(t, err)
}
