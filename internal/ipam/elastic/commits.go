package elastic

import (
	"bytes"
	"context"
	"iter"
	"net/netip"
	"slices"
	"sync"
	"time"

	"berth/internal/ipam"
	"berth/internal/ipam/ledger"
	"berth/store"
)

// bearing are the kinds of records of which what an edge is to have is made.
var bearing = []byte{ledger.LeaseKeys, ledger.ElasticKeys, ledger.ElasticRangeKeys, ledger.AccountKeys,
	ledger.NetworkKeys, ledger.SubnetKeys}

// waking are further kinds on whose commits somebody waits.
var waking = []byte{ledger.AppliedKeys, ledger.HostKeys}

// mostCommits is how many records are kept that were written and not looked at; more are looked at as if all had been.
const mostCommits = 1 << 15

// commits are the records that were written since somebody asked, of the kinds that bear on elastic addresses.
type commits struct {
	woken chan struct{} // has a token once something was committed that bears on them, or wakes
	ended sync.WaitGroup

	mu   sync.Mutex
	seen map[string][]byte // what was written last, by key; nil: it is gone
	all  bool              // some were missed
}

// watch collects what is committed from now on, until ctx ends.
func watch(ctx context.Context, st store.Store) *commits {
	w := &commits{woken: make(chan struct{}, 1), seen: map[string][]byte{}}
	for _, kind := range slices.Concat(bearing, waking) { // each by itself: events are most of what is written
		committed := st.Watch(ctx, []byte{kind})
		w.ended.Go(func() { w.collect(ctx, st, kind, committed) })
	}
	return w
}

// collect collects what is committed of one kind.
func (w *commits) collect(ctx context.Context, st store.Store, kind byte, committed iter.Seq2[store.Change, error]) {
	for {
		busy := pace{begun: time.Now()}
		for one, err := range committed {
			if err != nil {
				break
			}
			w.note(&one)
			busy.keep(ctx)
		}
		if ctx.Err() != nil || !rest(ctx, watchAgain, nil) {
			return
		}
		committed = st.Watch(ctx, []byte{kind})
		w.miss() // what was committed in between
	}
}

// watchAgain is how long after it has broken off a watch is begun anew.
const watchAgain = 100 * time.Millisecond

// Where so many records come within a window, it is rested behind it: to be woken for each of them would cost more than
// to look at what they bear on.
const (
	paced      = 16
	paceWindow = time.Millisecond
	paceRest   = 5 * time.Millisecond
)

// pace counts what was read in a window.
type pace struct {
	begun time.Time
	read  int
}

// keep counts a record, and rests where it is time to.
func (p *pace) keep(ctx context.Context) {
	p.read++
	if time.Since(p.begun) < paceWindow {
		return
	}
	if p.read >= paced {
		rest(ctx, paceRest, nil)
	}
	p.begun, p.read = time.Now(), 0
}

// wait returns once ctx has ended and nothing is collected any more.
func (w *commits) wait() { w.ended.Wait() }

func (w *commits) note(one *store.Change) {
	w.mu.Lock()
	if len(w.seen) >= mostCommits {
		clear(w.seen)
		w.all = true
	}
	if !w.all && slices.Contains(bearing, one.Key[0]) {
		w.seen[string(one.Key)] = one.Value
	}
	w.mu.Unlock()
	w.wake()
}

// miss notes that anything may have been committed.
func (w *commits) miss() {
	w.mu.Lock()
	clear(w.seen)
	w.all = true
	w.mu.Unlock()
	w.wake()
}

func (w *commits) wake() {
	select {
	case w.woken <- struct{}{}:
	default:
	}
}

// take hands out what there is; all tells that some were missed.
func (w *commits) take() (seen map[string][]byte, all bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	seen, all, w.seen, w.all = w.seen, w.all, map[string][]byte{}, false
	return seen, all
}

// touched marks the addresses that can lead elsewhere after some commits; all tells that any can.
func (t *tracker) touched(seen map[string][]byte, due map[netip.Addr]bool) (all bool) {
	networks := map[ipam.ID]bool{}
	var holders []holder
	for name, value := range seen {
		key := []byte(name)
		switch key[0] {
		case ledger.ElasticRangeKeys, ledger.AccountKeys:
			return true
		case ledger.ElasticKeys:
			if addr, ok := netip.AddrFromSlice(key[1:]); ok {
				due[addr] = true
			}
		case ledger.LeaseKeys:
			if has, ok := t.touchedBy(key, value, due); ok {
				holders = append(holders, has)
			}
		case ledger.NetworkKeys:
			networks[ipam.ID(key[1:])] = true
		case ledger.SubnetKeys:
			if sub, there := ledger.Decoded[ipam.Subnet](value); there {
				networks[sub.Value.Network] = true
			} else {
				t.gone(key, due)
			}
		}
	}
	t.room.ledger.Read(func(ix *ledger.Index) {
		for _, has := range holders {
			has.mark(ix, due)
		}
		if len(networks) == 0 {
			return
		}
		for addr, one := range ix.Elastics() {
			if one.Association != nil && networks[one.Association.Network] {
				due[addr] = true
			}
		}
	})
	return false
}

// gone marks the addresses that led to guests of a subnet which is there no more, nor another at its place.
func (t *tracker) gone(key []byte, due map[netip.Addr]bool) {
	for addr, l := range t.leads {
		if bytes.HasSuffix(key, l.Subnet.Addr().AsSlice()) {
			due[addr] = true
		}
	}
}

// touchedBy marks the addresses that led to a guest's, whose record was written, and tells who has that now.
func (t *tracker) touchedBy(key, value []byte, due map[netip.Addr]bool) (has holder, ok bool) {
	subnet, guest, ok := ledger.LeaseKeyParts(key)
	if !ok {
		return has, false
	}
	for _, addr := range t.guests[guest] {
		due[addr] = true
	}
	if value == nil {
		return has, false
	}
	l, err := ipam.DecodeLease(guest, value)
	if err != nil || !l.Held() && l.Reserved() == nil {
		return has, false // whoever reads it is refused; or nobody has it
	}
	return holder{subnet, l}, true
}

// holder is who has an address, or for whom it is reserved.
type holder struct {
	subnet ipam.ID
	lease  *ipam.Lease
}

// mark marks the addresses that are associated with him.
func (h holder) mark(ix *ledger.Index, due map[netip.Addr]bool) {
	sx := ix.Subnet(h.subnet)
	if sx == nil {
		return
	}
	n := ix.Network(sx.Record().Network)
	if n == nil || n.Elastic == ipam.ElasticOff {
		return
	}
	for _, addr := range ofHolder(ix, n, h.lease) {
		due[addr] = true
	}
}
