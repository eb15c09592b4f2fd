package view

import (
	"context"
	"time"

	"berth/internal/ipam"
	"berth/internal/ipam/ledger"
)

// Totals counts all objects, except incomplete ones.
func (s Views) Totals(ctx context.Context) (t ipam.Totals, err error) {
	if err := ctx.Err(); err != nil {
		return t, err
	}
	for _, l := range s.homes.All() {
		spaces := ledger.Ask(l, func(ix *ledger.Index) []string {
			count(ix, l.Now(), &t)
			return ix.Spaces()
		})
		for _, name := range spaces {
			if s.homes.Has(l, name) {
				t.Spaces++
			}
		}
	}
	return t, nil
}

func count(ix *ledger.Index, now time.Time, t *ipam.Totals) {
	for _, nx := range ix.Networks() {
		if nx.Record() == nil || nx.Record().Stage != "" {
			continue
		}
		t.Networks++
		for _, id := range nx.Subnets() {
			sx := ix.Subnet(id)
			t.Subnets++
			t.Leases += sx.Held()
			all, idle := reservationsIn(sx, now)
			t.Reservations, t.Reserved = t.Reservations+all, t.Reserved+idle
			t.Docker += len(sx.Record().Attachments)
		}
	}
}

// EventCounts returns how many events were written here since the start, by verb.
func (s Views) EventCounts() map[ipam.Verb]uint64 {
	all := map[ipam.Verb]uint64{}
	for _, l := range s.homes.All() {
		for verb, n := range l.EventCounts() {
			all[verb] += n
		}
	}
	return all
}

// Partial returns why only the host's own records are visible, or nil if all are (ledger.Homes).
func (s Views) Partial() error { return s.homes.Partial() }
