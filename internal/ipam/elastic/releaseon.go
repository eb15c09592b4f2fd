package elastic

import (
	"context"
	"net/netip"
	"time"

	"berth/internal/ipam"
	"berth/internal/ipam/ledger"
)

// restartTime is how long a container must be stopped or gone before its association ends. If it runs again sooner, it
// was restarted or recreated. The engine waits up to a minute before it restarts a container.
const restartTime = 2 * time.Minute

// releaseOn sets when an allocated address is released by itself. An empty value leaves it as it is.
func releaseOn(c *ledger.Change, known *ipam.Elastic, on string) error {
	if on == "" {
		return nil
	}
	if known.System {
		return isSystem(c, known)
	}
	parsed, err := ipam.ParseReleaseOn(on)
	if err != nil || parsed == known.ReleaseOn {
		return err
	}
	changed := *known
	changed.ReleaseOn = parsed
	return c.SetElastic(known.Address, &changed)
}

// Releases releases addresses whose container has stopped or was destroyed, if that was asked for. The time counts from
// the first look that showed it, by the host's own clock, and starts again with the daemon: the engine then gets time
// to start its containers.
type Releases struct {
	ledger *ledger.Ledger
	ended  map[netip.Addr]ending
}

// ending is since when the guest of an association has ended.
type ending struct {
	association uint64
	since       time.Duration
}

// NewReleases returns a Releases that has seen nothing yet.
func NewReleases(l *ledger.Ledger) *Releases { return &Releases{l, map[netip.Addr]ending{}} }

// Look checks all addresses with a release condition, and releases those whose time has come.
func (r *Releases) Look(ctx context.Context) error {
	if r.ledger.NoElastic() {
		return nil
	}
	all := ledger.Ask(r.ledger, func(ix *ledger.Index) []*ipam.Elastic {
		return recordsOf(ix, func(one *ipam.Elastic) bool {
			return one.ReleaseOn != ipam.ReleaseNever && one.Association != nil
		})
	})
	var ran, due []netip.Addr
	ended := map[netip.Addr]ending{}
	err := ledger.LookEach(ctx, r.ledger, all, func(c *ledger.Change, one *ipam.Elastic) error {
		switch now, err := fateOf(c, one.Address); {
		case err != nil:
			return err
		case now == runsNow:
			ran = append(ran, one.Address)
		case now == hasEnded:
			known := r.since(c, one.Address)
			if ended[one.Address] = known; r.ledger.SinceBoot()-known.since >= restartTime {
				due = append(due, one.Address)
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	r.ended = ended
	if err := inPages(ctx, r.ledger, ran, noteRun); err != nil {
		return err
	}
	return inPages(ipam.WithActor(ctx, keeperActor), r.ledger, due, r.release)
}

// since returns when the guest of an address was first seen to have ended.
func (r *Releases) since(c *ledger.Change, addr netip.Addr) ending {
	association := c.Index().Elastic(addr).Association.ID
	if was, known := r.ended[addr]; known && was.association == association {
		return was
	}
	return ending{association, r.ledger.SinceBoot()}
}

// release releases an address, unless its container runs again or it is mapped to another one.
func (r *Releases) release(c *ledger.Change, addr netip.Addr) error {
	now, err := fateOf(c, addr)
	if err != nil || now != hasEnded || c.Index().Elastic(addr).Association.ID != r.ended[addr].association {
		return err
	}
	one := c.Index().Elastic(addr)
	return endAndGive(c, one, "its container has ended, and the address has release-on "+one.ReleaseOn.String())
}

// noteRun records that a guest has run on this host.
func noteRun(c *ledger.Change, addr netip.Addr) error {
	now, err := fateOf(c, addr)
	if err != nil || now != runsNow {
		return err
	}
	changed := *c.Index().Elastic(addr)
	a := *changed.Association
	a.Ran, changed.Association = c.Host(), &a
	return c.SetElastic(addr, &changed)
}

// fate is what has happened to the guest of an address, as far as this host can tell.
type fate int

const (
	isUnsure fate = iota // it runs and that is recorded; or it never ran here, or that is unknown
	runsNow              // and that is not recorded
	hasEnded
)

// fateOf returns the fate of an address's guest. About another host's guest, or without the engine's events, it is
// unsure: an outage ends nothing.
func fateOf(c *ledger.Change, addr netip.Addr) (fate, error) {
	one := c.Index().Elastic(addr)
	if one == nil || one.Association == nil || one.ReleaseOn == ipam.ReleaseNever {
		return isUnsure, nil
	}
	a := one.Association
	n := c.Index().Network(a.Network)
	if n == nil || n.Stage != "" || !n.Elastic.Maps() {
		return isUnsure, nil
	}
	g, _, err := mapped(c, a)
	here := a.Ran == c.Host() || a.Ran != "" && c.Member() == nil
	switch {
	case err != nil:
		return isUnsure, err
	case g.host == c.Host() && !here:
		return runsNow, nil
	case g.host != "" || !here:
		return isUnsure, nil
	case one.ReleaseOn == ipam.ReleaseOnDestroy && !isGoneFrom(c, n, a.Instance):
		return isUnsure, nil
	case one.ReleaseOn == ipam.ReleaseOnStop && !hears(c):
		return isUnsure, nil
	}
	return hasEnded, nil
}

// hears reports whether the engine's events arrive, or there is no engine.
func hears(c *ledger.Change) bool {
	known := c.Known().Container
	if known == nil {
		return true
	}
	_, live := known("")
	return live
}
