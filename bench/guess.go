package main

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"path/filepath"
	"time"

	"berth/internal/docker"
	"berth/internal/ipam"
)

// guessed is the network of these measurements, in each of two stores.
var guessed = netip.MustParsePrefix("10.0.0.0/8")

// Who is on that network and holds nothing.
const (
	idleContainers    = 8
	stoppedContainers = 1000
)

// besideTakers are the callers on another network than the one whose request hangs.
const besideTakers = 64

// measureGuess times what a witness costs a request that says no name, and those beside it.
func measureGuess(e env) ([]row, error) {
	var rows []row
	for _, dir := range e.media() {
		for _, callers := range []int{1, 16} {
			r, err := guessRow(e, dir, callers)
			if err != nil {
				return nil, err
			}
			rows = append(rows, r)
		}
		r, err := hangingRow(e, dir)
		if err != nil {
			return nil, err
		}
		rows = append(rows, r)
	}
	return rows, nil
}

// hangingRow takes addresses by names in turn beside nothing and beside one caller on another network, for whose every
// request the engine is asked and says nothing as long as it is waited for.
func hangingRow(e env, dir medium) (row, error) {
	ctx := context.Background()
	hang := func(ctx context.Context, _ ipam.Question) ipam.Hint {
		select {
		case <-ctx.Done():
		case <-time.After(130 * time.Millisecond):
		}
		return ipam.Hint{}
	}
	s, closeStore, err := openKnowing(ctx, filepath.Join(dir.path, "hanging"), false, ipam.Known{Ask: hang})
	if err != nil {
		return row{}, err
	}
	defer closeStore()
	grant, err := s.RequestPool(ctx, ipam.PoolRequest{Space: ipam.LocalSpace, CIDR: guessed})
	if err != nil {
		return row{}, err
	}
	other, err := s.RequestPool(ctx, ipam.PoolRequest{Space: ipam.LocalSpace, CIDR: netip.MustParsePrefix("172.16.0.0/12")})
	if err != nil {
		return row{}, err
	}
	mac := make(macs, besideTakers)
	takers := func() (float64, error) {
		return load(besideTakers, e.round, func(caller int) error {
			m := mac.next(caller)
			_, err := s.RequestAddress(ctx, ipam.AddressRequest{Pool: grant.ID, MAC: m, Name: fmt.Sprintf("c%x", m[:])})
			return err
		})
	}
	beside := func() (rate float64, err error) {
		asking, stop := context.WithCancel(ctx)
		hung := make(chan error, 1)
		go func() {
			var err error
			for err == nil && asking.Err() == nil {
				_, err = s.RequestAddress(ctx, ipam.AddressRequest{Pool: other.ID})
			}
			hung <- err
		}()
		rate, err = takers()
		stop()
		return rate, errors.Join(err, <-hung)
	}
	with, alone, ratio, err := alternate(beside, takers)
	if err != nil {
		return row{}, err
	}
	return row{fmt.Sprintf("RequestAddress by %d callers, while a question to the engine hangs for another network: %s",
		besideTakers, dir.name), "0.95x", fmt.Sprintf("%.2fx (%.1fk/s against %.1fk/s)", ratio, with/1000, alone/1000),
		verdict(ratio >= 0.95)}, nil
}

// guessRow takes addresses in turn from a service without a witness and from one that has one.
func guessRow(e env, dir medium, callers int) (row, error) {
	alone, closeAlone, err := namelessCaller(filepath.Join(dir.path, fmt.Sprintf("alone-%d", callers)), callers,
		ipam.Known{})
	if err != nil {
		return row{}, err
	}
	defer closeAlone()
	path := filepath.Join(dir.path, fmt.Sprintf("witnessed-%d", callers))
	witnessed, closeWitnessed, err := namelessCaller(path, callers, crowd().Known())
	if err != nil {
		return row{}, err
	}
	defer closeWitnessed()
	without, with, ratio, err := alternate(
		func() (float64, error) { return load(callers, e.round, alone) },
		func() (float64, error) { return load(callers, e.round, witnessed) })
	if err != nil {
		return row{}, err
	}
	return row{fmt.Sprintf("RequestAddress without a name, a witness of %d idle and %d stopped containers, callers: "+
		"%d, time against no witness: %s",
		idleContainers, stoppedContainers, callers, dir.name), "1.05x",
		fmt.Sprintf("%.2fx (%.1fk/s against %.1fk/s)", ratio, with/1000, without/1000), verdict(ratio <= 1.05)}, nil
}

// namelessCaller opens a service and returns what takes one address.
func namelessCaller(dir string, callers int, known ipam.Known) (func(int) error, func() error, error) {
	ctx := context.Background()
	s, closeStore, err := openKnowing(ctx, dir, false, known)
	if err != nil {
		return nil, nil, err
	}
	grant, err := s.RequestPool(ctx, ipam.PoolRequest{Space: ipam.LocalSpace, CIDR: guessed})
	if err != nil {
		return nil, nil, err
	}
	return func(int) error {
		_, err := s.RequestAddress(ctx, ipam.AddressRequest{Pool: grant.ID})
		return err
	}, closeStore, nil
}

// crowd is a witness that follows an engine with idle containers, each a moment ago, and stopped ones, of which every
// hundredth asks for an address by its own configuration.
func crowd() *docker.Roster {
	roster := docker.NewRoster(nil)
	now := time.Now()
	roster.Hear(&ipam.EngineNews{At: now, Begins: true})
	view := &ipam.EngineView{Taken: now,
		Networks: []ipam.EngineNetwork{{ID: "n", Name: "front", Driver: "berth",
			Subnets: []ipam.EngineSubnet{{CIDR: guessed}}}}}
	addr := guessed.Addr()
	for i := range idleContainers + stoppedContainers {
		addr = addr.Next()
		c := ipam.EngineContainer{ID: fmt.Sprint(i), Name: fmt.Sprintf("c%d", i), State: "exited",
			Endpoints: []ipam.EngineEndpoint{{Network: "n"}}}
		if i >= idleContainers && i%100 == 0 {
			c.Endpoints[0].Wanted = []netip.Addr{addr}
		}
		view.Containers = append(view.Containers, c)
	}
	roster.Show(view)
	for i := range idleContainers {
		roster.Hear(&ipam.EngineNews{At: time.Now(),
			Event: &ipam.EngineEvent{Action: "die", Container: view.Containers[i]}})
	}
	return roster
}
