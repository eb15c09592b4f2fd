package elastic

import (
	"bytes"
	"context"
	"net/netip"
	"slices"
	"sync"

	"berth/internal/ipam"
	"berth/internal/ipam/ledger"
	"berth/store"
)

// bearing are the kinds of records of which what an edge is to have is made.
var bearing = []byte{ledger.LeaseKeys, ledger.ElasticKeys, ledger.ElasticRangeKeys, ledger.AccountKeys,
	ledger.NetworkKeys, ledger.SubnetKeys}

// mostCommits is how many records of commits are kept to be looked at; more are looked at as if all had changed.
const mostCommits = 4096

// commits are the records that were written since somebody asked, of the kinds that bear on elastic addresses.
type commits struct {
	woken chan struct{} // has a token once something was committed, of whatever kind
	ended chan struct{}

	mu   sync.Mutex
	seen []store.Change
	all  bool // some were missed
}

// watch collects what is committed from now on, until ctx ends.
func watch(ctx context.Context, st store.Store) *commits {
	w := &commits{woken: make(chan struct{}, 1), ended: make(chan struct{})}
	committed := st.Watch(ctx, nil)
	go func() {
		defer close(w.ended)
		for again := true; again && ctx.Err() == nil; {
			again = false
			for one, err := range committed {
				again = err != nil
				w.note(one, err)
			}
			if again {
				again = rest(ctx, lookAgain, nil)
				committed = st.Watch(ctx, nil)
				w.note(store.Change{}, store.ErrLagged) // what was committed in between was missed
			}
		}
	}()
	return w
}

// wait returns once ctx has ended and nothing is collected any more.
func (w *commits) wait() { <-w.ended }

func (w *commits) note(one store.Change, err error) {
	w.mu.Lock()
	switch {
	case err != nil || len(w.seen) >= mostCommits:
		w.seen, w.all = nil, true
	case !w.all && slices.Contains(bearing, one.Key[0]):
		w.seen = append(w.seen, one)
	}
	w.mu.Unlock()
	select {
	case w.woken <- struct{}{}:
	default:
	}
}

// take hands out what there is; all tells that some were missed.
func (w *commits) take() (seen []store.Change, all bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	seen, all, w.seen, w.all = w.seen, w.all, nil, false
	return seen, all
}

func anyOf(seen []store.Change, kinds ...byte) bool {
	return slices.ContainsFunc(seen, func(one store.Change) bool { return bytes.IndexByte(kinds, one.Key[0]) >= 0 })
}

// touched marks the addresses that can lead elsewhere after some commits; all tells that any can.
func (t *tracker) touched(ix *ledger.Index, seen []store.Change, due map[netip.Addr]bool) (all bool) {
	if anyOf(seen, ledger.ElasticRangeKeys, ledger.AccountKeys) {
		return true
	}
	networks := map[ipam.ID]bool{}
	for i := range seen {
		key, value := seen[i].Key, seen[i].Value
		switch key[0] {
		case ledger.ElasticKeys:
			if addr, ok := netip.AddrFromSlice(key[1:]); ok {
				due[addr] = true
			}
		case ledger.LeaseKeys:
			t.touchedBy(ix, key, value, due)
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
	if len(networks) == 0 {
		return false
	}
	for addr, one := range ix.Elastics() {
		if one.Association != nil && networks[one.Association.Network] {
			due[addr] = true
		}
	}
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

// touchedBy marks what the record of a guest's address bears on: the addresses that led there, and those that are
// associated with whoever has it now, or for whom it is reserved.
func (t *tracker) touchedBy(ix *ledger.Index, key, value []byte, due map[netip.Addr]bool) {
	subnet, guest, ok := ledger.LeaseKeyParts(key)
	if !ok {
		return
	}
	for _, addr := range t.guests[guest] {
		due[addr] = true
	}
	sx := ix.Subnet(subnet)
	if sx == nil || value == nil {
		return
	}
	n := ix.Network(sx.Record().Network)
	if n == nil || n.Elastic == ipam.ElasticOff {
		return
	}
	l, err := ipam.DecodeLease(guest, value)
	if err != nil {
		return // whoever reads it is refused
	}
	for _, addr := range ofHolder(ix, n, l) {
		due[addr] = true
	}
}
