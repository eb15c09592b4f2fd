package look

import (
	"fmt"
	"net/netip"

	"berth/internal/cli"
	"berth/internal/ipam"
)

// wholes asks for things as a whole.
type wholes struct {
	*cli.Run
	space string
}

// errGone is of what ended between the two questions.
func gone(f *ipam.Found) error {
	return fmt.Errorf("the %s %s was just removed; run the command again", f.Kind, f.What)
}

// whole is all that is known of what was found.
func (w *wholes) whole(f *ipam.Found) (any, error) {
	switch f.Kind {
	case ipam.FoundNetwork:
		return pointer(w.Network(w, f.ID.String()))
	case ipam.FoundSubnet:
		return pointer(w.Subnet(w, f.ID))
	case ipam.LeaseTenure:
		all, err := w.Leases(w, ipam.LeaseFilter{Space: f.Space, Subnet: f.Subnet, Address: f.Address,
			Remembered: true})
		return one(f, all, err, func(*ipam.LeaseInfo) bool { return true })
	case ipam.FoundAddress:
		all, err := w.Addresses(w, f.NetworkID.String(), f.Name)
		return one(f, all, err, func(a *ipam.TakenAddress) bool { return a.Address == f.Address })
	case ipam.ReservationTenure:
		all, err := w.Reservations(w, f.NetworkID.String(), f.Name)
		return one(f, all, err, func(r *ipam.ReservationInfo) bool {
			return r.Address == f.Address || f.Address == (netip.Addr{})
		})
	case ipam.FoundFree:
		return &ipam.FreeRange{Space: f.Space, Network: f.Network, NetworkID: f.NetworkID, Subnet: f.Subnet,
			Start: f.Address, End: f.Address, Addresses: ipam.NewCount(1)}, nil
	case ipam.FoundPool, ipam.FoundExclusion:
		return w.part(f)
	case ipam.ElasticTenure:
		return pointer(w.Elastic(w, f.Address))
	case ipam.FoundSpace:
		all, err := w.Spaces(w)
		return one(f, all, err, func(s *ipam.SpaceInfo) bool { return s.Name == f.What })
	case ipam.FoundAccount:
		all, err := w.Accounts(w)
		return one(f, all, err, func(a *ipam.AccountInfo) bool { return a.Name == f.What })
	case ipam.FoundRange:
		all, err := w.ElasticRanges(w)
		return one(f, all, err, func(r *ipam.ElasticRangeInfo) bool { return r.ID == f.ID })
	case ipam.FoundHost:
		return pointer(w.Host(w, f.What))
	}
	return f, nil
}

func pointer[T any](v T, err error) (any, error) { return &v, err }

// one is the first of a list that is meant.
func one[T any](f *ipam.Found, all []T, err error, is func(*T) bool) (any, error) {
	if err != nil {
		return nil, err
	}
	for i := range all {
		if is(&all[i]) {
			return &all[i], nil
		}
	}
	return nil, gone(f)
}

// part is a pool or an exclusion of a network.
func (w *wholes) part(f *ipam.Found) (any, error) {
	n, err := w.Network(w, f.NetworkID.String())
	if err != nil {
		return nil, err
	}
	for _, sub := range n.Subnets {
		if sub.CIDR != f.Subnet {
			continue
		}
		for _, p := range sub.Pools {
			if f.Kind == ipam.FoundPool && is(f, p.Start, p.End) {
				return whereOf(f, p), nil
			}
		}
		for _, x := range sub.Exclusions {
			if f.Kind == ipam.FoundExclusion && is(f, x.Start, x.End) {
				return whereOf(f, x), nil
			}
		}
	}
	return nil, gone(f)
}

// is tells whether a range is the one that was found.
func is(f *ipam.Found, start, end netip.Addr) bool {
	var r ipam.Range
	return r.UnmarshalText([]byte(f.What)) == nil && r.From() == start && r.To() == end
}

func whereOf[T any](f *ipam.Found, thing T) *part[T] {
	return &part[T]{Space: f.Space, Network: f.Network, NetworkID: f.NetworkID, Subnet: f.Subnet.String(), Range: f.What,
		Part: thing}
}
