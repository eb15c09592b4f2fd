package view

import (
	"context"

	"berth/internal/ipam"
	"berth/internal/ipam/ledger"
)

// Totals counts what there is, without what is not there as a whole.
func (s Views) Totals(ctx context.Context) (t ipam.Totals, err error) {
	if err := ctx.Err(); err != nil {
		return t, err
	}
	return ledger.Ask(s.ledger, totals), nil
}

func totals(ix *ledger.Index) (t ipam.Totals) {
	t.Spaces = len(ix.Spaces())
	for _, nx := range ix.Networks() {
		if nx.Record() == nil || nx.Record().Stage != "" {
			continue
		}
		t.Networks++
		for _, id := range nx.Subnets() {
			sx := ix.Subnet(id)
			t.Subnets++
			t.Leases += sx.Held()
			t.Reserved += uint64(sx.Reserved())
			t.Docker += len(sx.Record().Attachments)
		}
	}
	return t
}

// Told is how many events were written here since the start, by verb.
func (s Views) Told() map[ipam.Verb]uint64 { return s.ledger.Told() }

// Partial is nil: one store is there or not.
func (s Views) Partial() error { return nil }
