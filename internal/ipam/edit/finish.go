package edit

import (
	"context"

	"berth/internal/allocator"
	"berth/internal/ipam"
	"berth/internal/ipam/elastic"
	"berth/internal/ipam/ledger"
)

// Finish ends the attachments, networks and subnets whose end was cut off, and forgets what edges have said that are no
// more.
func Finish(ctx context.Context, s *ledger.Ledger) error {
	var ended []ipam.ID
	s.Read(func(ix *ledger.Index) {
		for id, a := range ix.Attachments() {
			if a.Ended && finishes(s, ix, a.Host) {
				ended = append(ended, id)
			}
		}
	})
	for _, id := range ended {
		if err := allocator.Of(ledger.Alone(s)).ReleasePool(ctx, id); err != nil {
			return err
		}
	}
	if err := Withdraw(ctx, s); err != nil {
		return err
	}
	return SweepElastic(ctx, s)
}

// SweepElastic forgets what edges have said of hosts that are gone, or cut off, so that released addresses become free.
func SweepElastic(ctx context.Context, s *ledger.Ledger) error {
	return elastic.Sweep(ipam.WithActor(ctx, allocator.EndingActor), s)
}

// finishes tells whether what a host has begun is for this Service to finish: of hosts that share a store each finishes
// its own, and all those of one that was removed.
func finishes(s *ledger.Ledger, ix *ledger.Index, host string) bool {
	if s.Member() == nil || host == s.Host() {
		return true
	}
	h := ix.Host(host)
	return h == nil || h.State == ipam.HostRemoved
}
