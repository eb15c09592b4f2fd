package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"path/filepath"
	"time"

	"berth/internal/ipam"
	"berth/internal/neighbours"

	"github.com/sirupsen/logrus"
	"go4.org/netipx"
)

// probedNet is the network of these measurements, in each of two stores.
var probedNet = netip.MustParsePrefix("10.0.0.0/8")

// Of the LAN that is probed: how long an edge listens for answers, and the last byte of the addresses that answer, one
// of 256.
const (
	probeLasts    = 200 * time.Millisecond
	probeAnswered = 77
)

// measureProbed times what it costs a request that its network is probed.
func measureProbed(e env) ([]row, error) {
	var rows []row
	for _, dir := range e.media() {
		for _, callers := range []int{1, 16} {
			r, err := probedRow(e, dir, callers)
			if err != nil {
				return nil, err
			}
			rows = append(rows, r)
		}
	}
	return rows, nil
}

// probedRow takes addresses in turn from a network that is not probed and from one that is.
func probedRow(e env, dir medium, callers int) (row, error) {
	alone, closeAlone, err := probedCaller(filepath.Join(dir.path, fmt.Sprintf("alone-%d", callers)), "")
	if err != nil {
		return row{}, err
	}
	defer closeAlone()
	probed, closeProbed, err := probedCaller(filepath.Join(dir.path, fmt.Sprintf("probed-%d", callers)), "eth0")
	if err != nil {
		return row{}, err
	}
	defer closeProbed()
	without, with, ratio, err := alternate(
		func() (float64, error) { return load(callers, e.round, alone) },
		func() (float64, error) { return load(callers, e.round, probed) })
	if err != nil {
		return row{}, err
	}
	return row{fmt.Sprintf("RequestAddress on a network that is probed, callers: %d, time against one that is not: %s",
		callers, dir.name), "1.05x",
		fmt.Sprintf("%.2fx (%.1fk/s against %.1fk/s)", ratio, with/1000, without/1000), verdict(ratio <= 1.05)}, nil
}

// probedCaller opens a service with one network, and a Prober beside it whose edge hears answers, and returns what
// takes one address.
func probedCaller(dir, parent string) (take func(int) error, end func() error, err error) {
	ctx, cancel := context.WithCancel(context.Background())
	s, closeStore, err := openKnowing(ctx, dir, false, ipam.Known{})
	if err != nil {
		cancel()
		return nil, nil, err
	}
	if _, err := s.Edit(ctx, ipam.EditOptions{}, &ipam.CreateNetwork{Name: "home", Probe: parent,
		Subnets: []ipam.SubnetSpec{{CIDR: probedNet}}},
		&ipam.AddPool{Network: "home", Range: ipam.Range{IPRange: netipx.RangeOfPrefix(probedNet)}}); err != nil {
		cancel()
		return nil, nil, errors.Join(err, closeStore())
	}
	grant, err := s.RequestPool(ctx, ipam.PoolRequest{Space: ipam.LocalSpace, Network: "home"})
	if err != nil {
		cancel()
		return nil, nil, errors.Join(err, closeStore())
	}
	quiet := logrus.New()
	quiet.SetOutput(io.Discard)
	ended := make(chan error, 1)
	p := neighbours.New(neighbours.Config{Host: "bench", ToProbe: s.ToProbe, Edit: s.Edit, Ask: someAnswer,
		Log: logrus.NewEntry(quiet)})
	go func() { ended <- p.Run(ctx) }()
	return func(int) error {
			_, err := s.RequestAddress(context.Background(), ipam.AddressRequest{Pool: grant.ID})
			return err
		}, func() error {
			cancel()
			return errors.Join(<-ended, closeStore())
		}, nil
}

// someAnswer is an edge on a LAN on which some addresses are somebody's.
func someAnswer(ctx context.Context, ask ipam.LANAsk) (got ipam.LANAnswer, err error) {
	select {
	case <-ctx.Done():
		return got, ctx.Err()
	case <-time.After(probeLasts):
	}
	for _, addr := range ask.Addresses {
		if addr.As4()[3] == probeAnswered {
			got.Answered = append(got.Answered, ipam.LANNeighbour{Address: addr, MAC: ipam.MAC{2, 0, 0, 0, 0, probeAnswered}})
		}
	}
	return got, nil
}
