package admin

import (
	"cmp"
	"context"
	"iter"
	"slices"

	"berth/internal/admin/api"
	"berth/internal/ipam"
)

// export sends the plan network by network: it need not be in memory as a whole here, nor there.
func (s *Server) export(ctx context.Context, req api.ExportRequest) (iter.Seq2[ipam.PlannedNetwork, error], error) {
	return s.cfg.Service.Export(ctx, req.Network), nil
}

// names tells whose which address is, of which names are made. It is refused where some of it cannot be seen: it is
// taken for the whole, and who writes a file of it would lose names.
func (s *Server) names(ctx context.Context, _ api.None) (known api.Names, err error) {
	if err := s.cfg.Service.Partial(); err != nil {
		return known, ipam.Refuse(err, "the names are in this host's own store and in that of the cluster, and the "+
			"latter cannot be asked: %s", err)
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
