package docker

import (
	"context"
	"errors"
	"fmt"
	"time"

	"berth/internal/ipam"
)

// starting is how old a lease may be without an endpoint in the engine. A start takes at most as long as the engine
// tries to reach a driver.
const starting = 15 * time.Second

// ReleaseLease ends a lease at once, without the wait of a repair, and returns it. Unless forced, it refuses if an
// endpoint has the address, or if that is unknown. It always refuses a lease that is not of an endpoint of this host.
func (w *Witness) ReleaseLease(ctx context.Context, req ipam.LeaseRelease) (ipam.LeaseInfo, error) {
	done, err := w.take(ctx)
	if err != nil {
		return ipam.LeaseInfo{}, err
	}
	defer done()
	l, err := w.heldLease(ctx, &req)
	if err != nil {
		return ipam.LeaseInfo{}, err
	}
	if err := w.releasable(&l); err != nil {
		return l, err
	}
	if !req.Force {
		if err := w.unused(ctx, &l, &req); err != nil {
			return l, err
		}
	}
	if req.DryRun {
		return l, nil
	}
	ended, err := w.cfg.Service.ReleaseLease(ctx, ipam.LeaseRef{Space: l.Space, Address: l.Address, ID: l.ID})
	if err == nil && !ended {
		err = ipam.Refuse(ipam.ErrChanged, "%s belongs to another holder now", l.Address).Advise(ipam.DoListLeases)
	}
	return l, err
}

// heldLease returns the requested lease. It refuses an address that is not held, or that two spaces hold.
func (w *Witness) heldLease(ctx context.Context, req *ipam.LeaseRelease) (found ipam.LeaseInfo, err error) {
	for l, err := range w.cfg.Service.Leases(ctx, ipam.LeaseFilter{Space: req.Space}) {
		if err != nil {
			return found, err
		}
		if l.Address != req.Address || l.State != "held" {
			continue
		}
		if found.ID != 0 {
			return found, ipam.Refuse(ipam.ErrInvalid, "%s is held in the spaces %s and %s; give one with --space",
				req.Address, found.Space, l.Space)
		}
		found = l
	}
	if found.ID == 0 {
		return found, ipam.Refuse(ipam.ErrNotFound, "nobody holds %s", req.Address).Advise(ipam.DoListLeases)
	}
	return found, nil
}

// releasable refuses a lease that is not of an endpoint, or of another host.
func (w *Witness) releasable(l *ipam.LeaseInfo) error {
	switch {
	case l.Kind == ipam.External:
		return ipam.Refuse(ipam.ErrInvalid, "%s was taken for %s by hand", l.Address, l.Name).
			Advise(ipam.DoReleaseTaken)
	case l.Kind == ipam.Headroom:
		return ipam.Refuse(ipam.ErrInvalid, "%s is headroom of host %s", l.Address, l.Host).
			Advise(ipam.DoLowerHeadroom)
	case l.Kind == ipam.Gateway || l.Pool == (ipam.ID{}):
		return ipam.Refuse(ipam.ErrInvalid, "%s is a gateway, which ends with its Docker network", l.Address).
			Advise(ipam.DoChangeSubnet)
	case l.Host != w.cfg.Host:
		return ipam.Refuse(ipam.ErrInvalid, "%s is held on host %s; release it there", l.Address, l.Host).
			OrAdvise(ipam.DoFreeHost, l.Host)
	}
	return nil
}

// unused refuses a lease whose address an endpoint has, or may have.
func (w *Witness) unused(ctx context.Context, l *ipam.LeaseInfo, req *ipam.LeaseRelease) error {
	src, err := w.ask(ctx, req.View)
	if err != nil {
		return err
	}
	if src.view == nil {
		why := errors.New("the daemon cannot see a Docker Engine")
		if src.trouble != nil {
			why = src.trouble
		}
		return ipam.Refuse(ipam.ErrInUse, "Berth cannot tell whether an endpoint has %s: %v", l.Address, why).
			Advise(ipam.DoForceRelease)
	}
	rec, err := w.read(ctx, src.view, false)
	if err != nil {
		return err
	}
	seen := newSights(rec.visible(src.view), rec)
	for _, s := range seen.at[place{l.Space, l.Address}] {
		return orForce("%s has %s on the Docker network %s; stop it", s.who(), l.Address, s.network.Name)
	}
	if age := src.view.Taken.Sub(l.Since); age < starting {
		return orForce("Berth gave out %s %s before it read the engine, and the container may be starting; try again "+
			"in %s", l.Address, max(age, 0).Round(time.Second), (starting - age).Round(time.Second))
	}
	if l.Kind == ipam.Auxiliary {
		for _, n := range seen.networks[segment{l.Space, l.Subnet}] {
			if keeps(n, l.Address) {
				return orForce("the Docker network %s keeps %s as an auxiliary address; remove that network", n.Name,
					l.Address)
			}
		}
	}
	return nil
}

// orForce refuses to end a lease that only force ends now.
func orForce(format string, args ...any) error {
	return ipam.Refuse(ipam.ErrInUse, format, args...).OrAdvise(ipam.DoForceRelease)
}

// due tells a person when a finding is repaired.
func (w *Witness) due(f *finding, taken time.Time) string {
	ready := w.patience.ready(f)
	when := "once two checks have found it"
	if ready.After(taken) {
		when = fmt.Sprintf("from %s on, after it has lasted %s and two checks have found it", ready.Format(timeForm),
			w.cfg.Grace)
	}
	if f.unasked() && w.cfg.Every > 0 {
		return fmt.Sprintf("Berth ends the lease %s; `berth lease release %s` ends it now", when, f.Address)
	}
	return "`berth check --repair` can repair it " + when
}
