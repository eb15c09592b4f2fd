package ipam

import "context"

// Totals counts what there is.
type Totals struct {
	Spaces   int    `json:"spaces"`
	Networks int    `json:"networks"`
	Subnets  int    `json:"subnets"`
	Leases   uint64 `json:"leases"`   // addresses held, gateways among them
	Reserved uint64 `json:"reserved"` // addresses that are reserved
	Docker   int    `json:"docker"`   // Docker networks
}

// Totals counts what there is, without what is not there as a whole.
func (s *Service) Totals(ctx context.Context) (t Totals, err error) {
	if err := ctx.Err(); err != nil {
		return t, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	t.Spaces = len(s.ix.spaces)
	for _, nx := range s.ix.networks {
		if nx.record.value == nil || nx.record.value.Stage != "" {
			continue
		}
		t.Networks++
		for _, id := range nx.subnets {
			sx := s.ix.subnets[id]
			t.Subnets++
			t.Leases += sx.held()
			t.Reserved += uint64(sx.reserved)
			t.Docker += len(sx.record.value.Attachments)
		}
	}
	return t, nil
}
