package cluster

import (
	"context"
	"strings"

	"go4.org/netipx"

	"berth/internal/ipam"
	"berth/internal/ipam/service"
)

// indexProblem compares the index of a Service with one that is loaded from what it sees of the store; empty: they say
// the same.
func indexProblem(ctx context.Context, s *service.Service) string {
	wrong, err := s.Ledger.Verify(ctx)
	if err != nil {
		return err.Error()
	}
	if len(wrong) == 0 {
		return ""
	}
	return "the index (-) and the records (+) differ:\n  " + strings.Join(wrong, "\n  ")
}

// rangeOf reads "from-to".
func rangeOf(s string) ipam.Range { return ipam.Range{IPRange: netipx.MustParseIPRange(s)} }
