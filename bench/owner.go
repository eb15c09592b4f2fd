package main

import (
	"context"
	"fmt"
	"net/netip"
	"path/filepath"
	"time"

	"github.com/sirupsen/logrus"

	"berth/internal/docker"
	"berth/internal/ipam"
	"berth/internal/ipam/service"
)

// measureOwner times what owners cost: the choice of whom a name means, and the comparison of all leases with what
// runs.
func measureOwner(e env) ([]row, error) {
	var rows []row
	for _, dir := range e.media() {
		for _, callers := range []int{1, 16} {
			r, err := rulesRow(e, dir, callers)
			if err != nil {
				return nil, err
			}
			rows = append(rows, r)
		}
	}
	r, err := checkRow(e)
	return append(rows, r), err
}

// ruled is how many rules a network has that is measured with rules; the last of them is the one that counts.
const ruled = 8

// rulesRow takes addresses in turn on a network without rules and on one that is the same but for its rules, by names
// as Compose gives them.
func rulesRow(e env, dir medium, callers int) (row, error) {
	ctx := context.Background()
	s, closeStore, err := openService(ctx, filepath.Join(dir.path, fmt.Sprintf("rules-%d", callers)), false)
	if err != nil {
		return row{}, err
	}
	defer closeStore()
	var rules []ipam.OwnerRule
	for i := range ruled {
		rules = append(rules, ipam.OwnerRule{Pattern: fmt.Sprintf("other%d-*", i), Owner: "other/*"})
	}
	rules[ruled-1] = ipam.OwnerRule{Pattern: "shop-web-*", Owner: "shop/web/*", Pool: "web"}
	plain, err := namedCaller(ctx, s, "plain", netip.MustParsePrefix("10.0.0.0/8"), nil, callers)
	if err != nil {
		return row{}, err
	}
	withRules, err := namedCaller(ctx, s, "ruled", netip.MustParsePrefix("11.0.0.0/8"), rules, callers)
	if err != nil {
		return row{}, err
	}
	without, with, ratio, err := alternate(
		func() (float64, error) { return load(callers, e.round, plain) },
		func() (float64, error) { return load(callers, e.round, withRules) })
	if err != nil {
		return row{}, err
	}
	return row{fmt.Sprintf("RequestAddress by name with %d owner rules, callers: %d, time against none: %s", ruled,
		callers, dir.name), "1.10x",
		fmt.Sprintf("%.2fx (%.1fk/s against %.1fk/s)", ratio, with/1000, without/1000), verdict(ratio <= 1.1)}, nil
}

// namedCaller plans a network and returns what takes one address of it by a new name. One address is reserved, so that
// it is looked for whose each name is.
func namedCaller(ctx context.Context, s *service.Service, name string, cidr netip.Prefix, rules []ipam.OwnerRule,
	callers int) (func(int) error, error) {
	_, err := s.Edit(ctx, ipam.EditOptions{},
		&ipam.CreateNetwork{Name: name, OwnerRules: rules, Subnets: []ipam.SubnetSpec{{CIDR: cidr}}},
		&ipam.AddPool{Network: name, Subnet: cidr.String(), Name: "web"},
		&ipam.AddReservation{Network: name, Owner: "shop/db/1"})
	if err != nil {
		return nil, err
	}
	grant, err := s.RequestPool(ctx, ipam.PoolRequest{Network: name})
	if err != nil {
		return nil, err
	}
	mac, counts := make(macs, callers), make([]int, callers)
	return func(caller int) error {
		counts[caller]++
		_, err := s.RequestAddress(ctx,
			ipam.AddressRequest{Pool: grant.ID, MAC: mac.next(caller),
				Name: fmt.Sprintf("shop-web-%d", counts[caller]*callers+caller)})
		return err
	}, nil
}

// checked is how many leases are compared with what runs.
const checked = 10_000

// checkRow times a check of leases all of which are in use, from the view of an engine to the report.
func checkRow(e env) (row, error) {
	ctx := context.Background()
	s, closeStore, err := openService(ctx, filepath.Join(e.dir, "check"), true)
	if err != nil {
		return row{}, err
	}
	defer closeStore()
	view, err := running(ctx, s)
	if err != nil {
		return row{}, err
	}
	log := logrus.New()
	log.SetLevel(logrus.ErrorLevel)
	w := docker.New(docker.Config{Service: s, Host: "bench", Drivers: []string{"berth"}, Log: logrus.NewEntry(log)})
	var took []time.Duration
	for range rounds {
		view.Taken = time.Now()
		start := time.Now()
		report, err := w.Check(ctx, ipam.CheckRequest{View: &view})
		if err != nil {
			return row{}, err
		}
		if len(report.Findings) > 0 {
			return row{}, fmt.Errorf("the check found %+v", report.Findings[0])
		}
		took = append(took, time.Since(start))
	}
	return row{fmt.Sprintf("`berth check` over %d leases, without the time of the engine", checked), "1 s",
		fmt.Sprintf("%.0f ms", milliseconds(median(took))), verdict(median(took) < time.Second)}, nil
}

// running takes the addresses, and returns what an engine says that has them.
func running(ctx context.Context, s *service.Service) (ipam.EngineView, error) {
	cidr := netip.MustParsePrefix("10.2.0.0/16")
	view := ipam.EngineView{Host: "bench", Engine: "bench", Networks: []ipam.EngineNetwork{
		{ID: "n", Name: "front", Driver: "berth", Subnets: []ipam.EngineSubnet{{CIDR: cidr}}}}}
	grant, err := s.RequestPool(ctx, ipam.PoolRequest{Space: ipam.LocalSpace, CIDR: cidr})
	if err != nil {
		return view, err
	}
	mac := make(macs, 1)
	for i := range checked {
		m := mac.next(0)
		given, err := s.RequestAddress(ctx, ipam.AddressRequest{Pool: grant.ID, MAC: m, Name: fmt.Sprintf("c%d", i)})
		if err != nil {
			return view, err
		}
		view.Containers = append(view.Containers,
			ipam.EngineContainer{ID: fmt.Sprint(i), Name: fmt.Sprintf("c%d", i), State: "running",
				Endpoints: []ipam.EngineEndpoint{{Network: "n", ID: fmt.Sprint(i), MAC: m,
					Addresses: []netip.Addr{given.Addr()}}}})
	}
	return view, nil
}
