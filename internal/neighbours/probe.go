// Package neighbours finds unrecorded machines on the host's LANs that use addresses of Berth's networks. No request
// waits for it. It excludes only addresses without a holder in the records. Without an edge, Berth works but does not
// find these machines.
//
// A Prober (probe.go) keeps a small stock of probed addresses for the next leases and excludes those that answer. A
// Listener (listen.go) detects machines that claim a container's address.
package neighbours

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"time"

	"berth/internal/ipam"

	"github.com/sirupsen/logrus"
	"go4.org/netipx"
)

const (
	// stock is the number of addresses of each family that a network has probed in advance. It exceeds the containers
	// that start at the same time. It is small enough that repeated probes do not disturb the LAN.
	stock = 16
	// again is when an unused address is probed again.
	again = 5 * time.Minute
	// every is the interval of checks for used addresses.
	every = 2 * time.Second
	// within is the time limit for one probe.
	within = 15 * time.Second
)

// actor is the actor of the exclusions' events.
const actor = "probe"

// Config is what a Prober needs.
type Config struct {
	Host    string
	ToProbe func(ctx context.Context, most int) ([]ipam.Unprobed, error)
	Edit    func(context.Context, ipam.EditOptions, ...ipam.Edit) (ipam.Outcome, error)
	Ask     ipam.AskLAN
	Log     *logrus.Entry
}

// Prober probes addresses before they are leased.
type Prober struct {
	cfg     Config
	probed  map[place]time.Time // the last time that nobody answered
	trouble map[ipam.ID]string  // the last logged problem by network
}

// place is an address of a network.
type place struct {
	network ipam.ID
	addr    netip.Addr
}

// New returns a Prober that has probed nothing yet.
func New(cfg Config) *Prober {
	return &Prober{cfg: cfg, probed: map[place]time.Time{}, trouble: map[ipam.ID]string{}}
}

// Run probes until ctx ends.
func (p *Prober) Run(ctx context.Context) error {
	ctx = ipam.WithActor(ctx, actor)
	for ctx.Err() == nil {
		found, err := p.round(ctx)
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil:
			// for example, the store is unreachable, which is reported elsewhere
			p.cfg.Log.WithError(err).Debug("cannot read which addresses to probe")
		case found:
			continue // other addresses come next, so probe them now
		}
		rest := time.NewTimer(every)
		select {
		case <-ctx.Done():
			rest.Stop()
		case <-rest.C:
		}
	}
	return nil
}

// round probes the due addresses of each network, and reports whether it excluded any.
func (p *Prober) round(ctx context.Context) (found bool, err error) {
	all, err := p.cfg.ToProbe(ctx, stock)
	if err != nil {
		return false, err
	}
	p.forget(all)
	for _, n := range all {
		due := slices.DeleteFunc(slices.Clone(n.Addresses), func(addr netip.Addr) bool {
			last, ok := p.probed[place{n.Network, addr}]
			return ok && time.Since(last) < again
		})
		if len(due) == 0 {
			continue
		}
		answered, err := p.probe(ctx, n, due)
		p.tell(n, err)
		var f *failure
		if errors.As(err, &f) && f.kind == ipam.LANNoEdge {
			return found, nil // it applies to all networks
		}
		found = found || answered
	}
	return found, nil
}

// forget removes addresses that are no longer next, and networks that are not probed any more.
func (p *Prober) forget(all []ipam.Unprobed) {
	next, networks := map[place]bool{}, map[ipam.ID]bool{}
	for _, n := range all {
		networks[n.Network] = true
		for _, addr := range n.Addresses {
			next[place{n.Network, addr}] = true
		}
	}
	maps.DeleteFunc(p.probed, func(at place, _ time.Time) bool { return !next[at] })
	maps.DeleteFunc(p.trouble, func(id ipam.ID, _ string) bool { return !networks[id] })
}

// failure is why a LAN could not be probed.
type failure struct {
	kind ipam.LANFailure
	text string
}

// Error implements error.
func (f *failure) Error() string { return f.text }

// probe probes addresses of a network, each family separately, because a LAN without IPv6 can still have IPv4.
func (p *Prober) probe(ctx context.Context, n ipam.Unprobed, due []netip.Addr) (found bool, err error) {
	for _, six := range []bool{false, true} {
		of := slices.DeleteFunc(slices.Clone(due), func(addr netip.Addr) bool { return addr.Is6() != six })
		if len(of) == 0 {
			continue
		}
		answer, asked := p.cfg.Ask(ctx, ipam.LANAsk{Verb: ipam.LANProbe, Parent: n.Parent, IPv6: six, Addresses: of,
			Within: ipam.Duration(within)})
		if asked != nil {
			return found, asked
		}
		if answer.Failure != "" {
			err = errors.Join(err, &failure{answer.Failure, answer.Error})
			continue
		}
		now := time.Now()
		for _, addr := range of {
			p.probed[place{n.Network, addr}] = now
		}
		for _, other := range answer.Answered {
			if slices.Contains(of, other.Address) {
				excluded, refused := p.exclude(ctx, n, other, now)
				found, err = found || excluded, errors.Join(err, refused)
			}
		}
	}
	return found, err
}

// exclude excludes an address that another machine uses.
func (p *Prober) exclude(ctx context.Context, n ipam.Unprobed, other ipam.LANNeighbour, now time.Time) (bool, error) {
	by := "ARP"
	if other.Address.Is6() {
		by = "neighbour discovery"
	}
	note := fmt.Sprintf("answered %s from MAC %s on %s (%s of host %s)", by, other.MAC, now.UTC().Format(time.DateOnly),
		n.Parent, p.cfg.Host)
	edit := &ipam.AddExclusion{Network: n.Network.String(), Answered: other.MAC, Note: note,
		Range: ipam.Range{IPRange: netipx.IPRangeFrom(other.Address, other.Address)}}
	_, err := p.cfg.Edit(ctx, ipam.EditOptions{}, edit)
	log := p.cfg.Log.WithFields(logrus.Fields{"network": n.Name, "address": other.Address, "mac": other.MAC.String()})
	switch {
	case errors.Is(err, ipam.ErrInUse), errors.Is(err, ipam.ErrOverlap), errors.Is(err, ipam.ErrNotFound):
		log.WithError(err).Debug("an address that answers has since been given, excluded or removed")
		return false, nil
	case err != nil:
		return false, fmt.Errorf("%s answers, but Berth cannot exclude it: %w", other.Address, err)
	}
	log.Warn("a machine on the LAN has an address that is free in the records: Berth excludes it")
	return true, nil
}

// tell logs a problem of a network once, until it changes or ends.
func (p *Prober) tell(n ipam.Unprobed, err error) {
	if err == nil {
		delete(p.trouble, n.Network)
		return
	}
	if text := err.Error(); p.trouble[n.Network] != text {
		p.trouble[n.Network] = text
		p.cfg.Log.WithError(err).WithField("network", n.Name).Warn("Berth gives addresses without probing them")
	}
}
