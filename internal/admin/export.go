package admin

import (
	"cmp"
	"context"
	"iter"
	"slices"

	"berth/internal/admin/api"
	"berth/internal/ipam"
)

// export sends the plan network by network, so neither end needs it in memory as a whole.
func (s *Server) export(ctx context.Context, req api.ExportRequest) (iter.Seq2[ipam.PlannedNetwork, error], error) {
	return s.cfg.Service.Export(ctx, req.Network), nil
}

// names returns the owners of addresses, from which names are made. It refuses an incomplete answer, because a client
// that writes a file from it would lose names.
func (s *Server) names(ctx context.Context, _ api.None) (known api.Names, err error) {
	if err := s.cfg.Service.Partial(); err != nil {
		return known, ipam.Refuse(err, "some names are in the store of the cluster, which Berth cannot "+
			"read now: %s", err)
	}
	all, err := s.cfg.Service.Names(ctx)
	if err != nil {
		return known, err
	}
	byID := func(a, b ipam.NamedRange) int {
		return cmp.Or(a.Range.From().Compare(b.Range.From()), slices.Compare(a.ID[:], b.ID[:]))
	}
	slices.SortFunc(all.Ranges, byID)
	slices.SortFunc(all.Set, func(a, b ipam.NamedAddress) int {
		return cmp.Or(a.Address.Compare(b.Address), slices.Compare(a.In[:], b.In[:]))
	})
	return api.Names{Zone: s.cfg.Zone, Ranges: all.Ranges, Addresses: all.Set}, nil
}
