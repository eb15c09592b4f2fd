package cluster

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"
)

// tenure is a time when a holder certainly had an address: from the answer that gave it to his request to release
// it.
type tenure struct {
	by          holder
	from, until time.Duration
}

// tenures are all tenures by address, ordered by start.
func (h history) tenures() map[netip.Addr][]tenure {
	all := map[netip.Addr][]tenure{}
	open := map[holder]*tenure{}
	at := map[holder]netip.Addr{}
	end := func(by holder, until time.Duration) {
		if t := open[by]; t != nil {
			t.until = until
			all[at[by]] = append(all[at[by]], *t)
			delete(open, by)
		}
	}
	for _, op := range h {
		switch {
		case op.give:
			end(op.by, op.called)
		case op.verdict == done && open[op.by] == nil:
			open[op.by], at[op.by] = &tenure{by: op.by, from: op.returned}, op.addr
		}
	}
	for by := range at {
		end(by, never)
	}
	for _, list := range all {
		slices.SortFunc(list, func(a, b tenure) int { return cmp.Compare(a.from, b.from) })
	}
	return all
}

// doubled are the addresses that two holders had at once, by their answers. It does not use the model.
func (h history) doubled() (found []string) {
	for addr, list := range h.tenures() {
		var last tenure
		for i, t := range list {
			if i > 0 && t.from < last.until && t.by != last.by {
				found = append(found, fmt.Sprintf("%s: %x from %s, and %x from %s on", addr, last.by, last.from, t.by,
					t.from))
			}
			if i == 0 || t.until > last.until {
				last = t
			}
		}
	}
	return found
}

// held is the address of each holder at the end.
func (h history) held() map[holder]netip.Addr {
	all := map[holder]netip.Addr{}
	for addr, list := range h.tenures() {
		for _, t := range list {
			if t.until == never {
				all[t.by] = addr
			}
		}
	}
	return all
}

// falselyFull are the refusals for lack of an address while certainly at least one of the addresses was free at
// every moment, though not always the same one.
//
// An address may be held from the call that may have taken it until its release must be in force. The same holds
// for one that a take has taken without an answer. A refusal was right if at one moment between its call and its
// return all addresses may have been held.
func (h history) falselyFull(addresses int) (found []operation) {
	type level struct {
		at    time.Duration
		delta int
	}
	var steps []level
	add := func(list []tenure) {
		for _, t := range list {
			steps = append(steps, level{t.from, 1})
			if t.until != never {
				steps = append(steps, level{t.until, -1})
			}
		}
	}
	for _, list := range h.maybeHeld() {
		add(list)
	}
	add(h.unnamed())
	// At equal times starts come first, in favour of the refusal.
	slices.SortFunc(steps, func(a,
		b level) int {
		return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(b.delta, a.delta))
	})
	levels, held := make([]int, len(steps)), 0
	for i, s := range steps {
		held += s.delta
		levels[i] = held
	}
	for _, op := range h {
		if op.give || op.verdict != full {
			continue
		}
		i, _ := slices.BinarySearchFunc(steps, op.called,
			func(s level, t time.Duration) int { return cmp.Compare(s.at, t) })
		right := i > 0 && levels[i-1] >= addresses
		for ; !right && i < len(steps) && steps[i].at <= op.returned; i++ {
			right = levels[i] >= addresses
		}
		if !right {
			found = append(found, op)
		}
	}
	return found
}

// maybeHeld is, by address, the time when it may have been held, as intervals that do not touch.
func (h history) maybeHeld() map[netip.Addr][]tenure {
	all := map[netip.Addr][]tenure{}
	gone := map[holder]time.Duration{} // when his address must have been free
	for _, op := range h {
		switch {
		case op.give || op.verdict == taken: // another holder has it, so he no longer has it
			gone[op.by] = op.returned
		case op.verdict == done:
			delete(gone, op.by)
		}
	}
	add := func(op *operation) {
		until, ok := gone[op.by]
		if !ok {
			until = never
		}
		all[op.addr] = append(all[op.addr], tenure{op.by, op.called, until})
	}
	for i := range h {
		if op := &h[i]; !op.give && op.verdict == done {
			add(op)
		}
	}
	for _, s := range h.strays() {
		if s.sure {
			all[s.addr] = append(all[s.addr], s.held())
		} else {
			add(s.op)
		}
	}
	for addr, list := range all {
		slices.SortFunc(list, func(a, b tenure) int { return cmp.Compare(a.from, b.from) })
		merged := list[:1]
		for _, t := range list[1:] {
			last := &merged[len(merged)-1]
			if t.from > last.until {
				merged = append(merged, t)
			} else {
				last.until = max(last.until, t.until)
			}
		}
		all[addr] = merged
	}
	return all
}

// TestLedgerNotices: the ledger finds an address that two had at once, but not one that two had one after the
// other. It finds a pool that is called full while an address is free.
func TestLedgerNotices(t *testing.T) {
	a, b := netip.MustParseAddr("10.77.0.9"), netip.MustParseAddr("10.77.0.10")
	take := func(by holder, addr netip.Addr, from, to time.Duration) operation {
		return operation{by: by, addr: addr, verdict: done, called: from, returned: to}
	}
	give := func(by holder, addr netip.Addr, from, to time.Duration) operation {
		return operation{give: true, by: by, asked: addr, addr: addr, verdict: done, called: from, returned: to}
	}
	sound := history{take(1, a, 0, 1), take(2, b, 2, 3), give(1, a, 4, 6), take(3, a, 5, 7)}
	if found := sound.doubled(); len(found) != 0 {
		t.Errorf("in turn: %v", found)
	}
	if found := append(sound, take(4, b, 8, 9)).doubled(); len(found) != 1 || !strings.Contains(found[0], b.String()) {
		t.Errorf("given twice: %v", found)
	}
	refusal := func(from, to time.Duration) operation {
		return operation{by: 9, verdict: full, called: from, returned: to}
	}
	for name, row := range map[string]struct {
		op   operation
		want int
	}{
		"all held":         {refusal(3, 4), 0},
		"held at its end":  {refusal(1, 2), 0},
		"one not yet":      {refusal(0, 1), 1},
		"freed, and taken": {refusal(5, 6), 0},
	} {
		if found := append(slices.Clone(sound), row.op).falselyFull(2); len(found) != row.want {
			t.Errorf("%s: %v", name, found)
		}
	}
	empty := history{take(1, a, 0, 1), take(2, b, 2, 3), give(1, a, 4, 6), refusal(7, 8), take(3, a, 9, 10)}
	if found := empty.falselyFull(2); len(found) != 1 {
		t.Errorf("refused while one was free: %v", found)
	}
	lostOne := operation{by: 5, addr: a, verdict: lost, called: 6, returned: 7, until: never}
	if found := append(empty, lostOne).falselyFull(2); len(found) != 0 {
		t.Errorf("one may have been taken: %v", found)
	}
}
