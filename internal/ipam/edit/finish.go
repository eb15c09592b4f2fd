package edit

import (
	"context"

	"berth/internal/allocator"
	"berth/internal/ipam"
	"berth/internal/ipam/elastic"
	"berth/internal/ipam/ledger"
)

// Finish completes interrupted removals of attachments, networks and subnets. It also forgets reports of edges that no
// longer exist.
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
		if err := allocator.ReleasePool(ctx, s, id); err != nil {
			return err
		}
	}
	if err := Withdraw(ctx, s); err != nil {
		return err
	}
	return SweepElastic(ctx, s)
}

// SweepElastic forgets edge reports of hosts that are gone or cut off, so that released addresses become free.
func SweepElastic(ctx context.Context, s *ledger.Ledger) error {
	return elastic.Sweep(ipam.WithActor(ctx, allocator.EndingActor), s)
}

// finishes reports whether this service must complete what a host began. Hosts that share a store each complete their
// own work, and that of removed hosts.
func finishes(s *ledger.Ledger, ix *ledger.Index, host string) bool {
	if s.Member() == nil || host == s.Host() {
		return true
	}
	h := ix.Host(host)
	return h == nil || h.State == ipam.HostRemoved
}
