package main

import (
	"context"
	"fmt"
	"net/netip"
	"path/filepath"

	"go4.org/netipx"

	"berth/internal/ipam"
	"berth/internal/ipam/service"
)

// mappedAddresses is how many elastic addresses are associated while requests are timed.
const mappedAddresses = 10_000

// measureElastic times the driver's requests with many elastic addresses associated and an edge that listens, against
// a store that has none of them.
func measureElastic(e env) ([]row, error) {
	var rows []row
	for _, dir := range e.media() {
		for _, callers := range []int{1, 16} {
			r, err := elasticRow(e, dir, callers)
			if err != nil {
				return nil, err
			}
			rows = append(rows, r)
		}
	}
	return rows, nil
}

// elasticRow takes and releases addresses in turn on two services with the same reservations, of which one has the
// elastic addresses and the edge.
func elasticRow(e env, dir medium, callers int) (row, error) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	plain, closePlain, err := elasticCaller(ctx, filepath.Join(dir.path, fmt.Sprintf("plain-%d", callers)), callers, false)
	if err != nil {
		return row{}, err
	}
	defer closePlain()
	full, closeFull, err := elasticCaller(ctx, filepath.Join(dir.path, fmt.Sprintf("full-%d", callers)), callers, true)
	if err != nil {
		return row{}, err
	}
	defer closeFull()
	without, with, ratio, err := alternate(
		func() (float64, error) { return load(callers, e.round, plain) },
		func() (float64, error) { return load(callers, e.round, full) })
	if err != nil {
		return row{}, err
	}
	return row{fmt.Sprintf("RequestAddress and ReleaseAddress with %d elastic addresses associated and an edge that "+
		"listens, callers: %d, time against none of it: %s", mappedAddresses, callers, dir.name), "1.05x",
		fmt.Sprintf("%.2fx (%.1fk/s against %.1fk/s)", ratio, with/1000, without/1000), verdict(ratio <= 1.05)}, nil
}

// elasticCaller opens a service with many owners, that have elastic addresses or have none, and returns what takes an
// address on their network by a new name, and gives it back.
func elasticCaller(ctx context.Context, dir string, callers int, associated bool) (func(int) error, func() error,
	error) {
	s, closeStore, err := openService(ctx, dir, false)
	if err != nil {
		return nil, nil, err
	}
	on := "on"
	cidr := netip.MustParsePrefix("10.0.0.0/8")
	_, err = s.Edit(ctx, ipam.EditOptions{}, &ipam.CreateNetwork{Name: "front",
		Subnets: []ipam.SubnetSpec{{CIDR: cidr, Pool: true}}}, &ipam.ModifyNetwork{Network: "front", Elastic: &on})
	if err != nil {
		return nil, nil, err
	}
	grant, err := s.RequestPool(ctx, ipam.PoolRequest{Network: "front"})
	if err != nil {
		return nil, nil, err
	}
	if err := manyOwners(ctx, s, mappedAddresses, associated); err != nil {
		return nil, nil, err
	}
	if associated {
		if err := listen(ctx, s, mappedAddresses); err != nil {
			return nil, nil, err
		}
	}
	counts := make([]int, callers)
	return func(caller int) error {
		counts[caller]++
		name := fmt.Sprintf("job-%d", counts[caller]*callers+caller)
		given, err := s.RequestAddress(ctx, ipam.AddressRequest{Pool: grant.ID, Name: name})
		if err != nil {
			return err
		}
		return s.ReleaseAddress(ctx, grant.ID, given.Addr())
	}, closeStore, nil
}

// manyOwners gives so many owners a reservation each and, where they are to be associated, an elastic address.
func manyOwners(ctx context.Context, s *service.Service, n int, associated bool) error {
	// 10.200.0.0 and 198.18.0.0, which is kept for measurements, are far from what callers are given
	guest, one := netip.MustParseAddr("10.200.0.0"), netip.MustParseAddr("198.18.0.0")
	all := netipx.IPRangeFrom(one, netip.MustParseAddr("198.19.255.254"))
	edits := []ipam.Edit{&ipam.AddElasticRange{Range: ipam.Range{IPRange: all}}}
	for i := range n {
		guest, one = guest.Next(), one.Next()
		owner := fmt.Sprintf("shop/web/%d", i+1)
		edits = append(edits, &ipam.AddReservation{Network: "front", Owner: owner,
			Wishes: []ipam.Wish{{Address: guest}}})
		if associated {
			edits = append(edits, &ipam.AllocateElastic{Address: one},
				&ipam.AssociateElastic{Address: one, Instance: owner})
		}
		if len(edits) > ipam.MaxEdits-3 || i == n-1 {
			if _, err := s.Edit(ctx, ipam.EditOptions{}, edits...); err != nil {
				return err
			}
			edits = edits[:0]
		}
	}
	return nil
}

// listen has an edge listen until ctx ends, and returns once it was told of all.
func listen(ctx context.Context, s *service.Service, n int) error {
	told := make(chan error)
	go func() {
		for news, err := range s.EdgeNews(ctx, false) {
			if err == nil && news.Whole && len(news.Set) != n {
				err = fmt.Errorf("an edge is told of %d addresses, and not of %d", len(news.Set), n)
			}
			if news.Whole || err != nil {
				told <- err
			}
		}
	}()
	return <-told
}
