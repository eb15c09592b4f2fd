package docker

import (
	"context"
	"fmt"
	"net/netip"
	"slices"

	"berth/internal/ipam"

	"github.com/sirupsen/logrus"
)

// repair repairs the findings that are certain: those that need no request, and with req.Repair the others. What runs
// gets its lease first. If that fails, nothing ends, because a free address could be given to somebody else. Each repair
// names the lease or attachment by its id, so it never ends a newer one. If the service refuses, the finding gets the
// reason.
func (w *Witness) repair(ctx context.Context, found []finding, req ipam.CheckRequest) error {
	chosen := chooser(req)
	mayEnd := true
	for _, holds := range []bool{true, false} {
		for i := range found {
			f := &found[i]
			if f.holds() != holds || !f.Repairable || f.Kind == ipam.SupersededReservation ||
				!f.unasked() && !req.Repair || !chosen(f) || !holds && !mayEnd {
				continue
			}
			done, err := w.repairOne(ctx, f)
			switch {
			case ctx.Err() != nil:
				return ctx.Err()
			case err != nil:
				f.fail(err)
				mayEnd = mayEnd && !holds
			case done:
				f.Repaired = true
				w.tellRepaired(f)
			}
		}
	}
	return nil
}

// holds reports whether a repair leases an address to the container that runs with it.
func (f *finding) holds() bool {
	return f.Kind == ipam.UncoveredAddress || f.Kind == ipam.OutdatedLease
}

// hurried reports whether a repair need not wait for the next check.
func (f *finding) hurried() bool { return f.holds() || f.superseded }

// unasked reports whether a finding is repaired without a request: what runs is leased, and what Docker failed to
// release ends.
func (f *finding) unasked() bool { return f.hurried() || f.Kind == ipam.UnusedLease }

// chooser selects the findings to repair. If the request has an earlier report, a finding must be in it, too.
func chooser(req ipam.CheckRequest) func(*finding) bool {
	if req.Only == nil {
		return func(*finding) bool { return true }
	}
	listed := make(map[key]bool, len(req.Only.Findings))
	for i := range req.Only.Findings {
		listed[mark(&req.Only.Findings[i])] = true
	}
	return func(f *finding) bool { return listed[mark(&f.Finding)] }
}

// repairOne repairs a finding. It reports whether there was still something to repair.
func (w *Witness) repairOne(ctx context.Context, f *finding) (bool, error) {
	s := w.cfg.Service
	ref := ipam.LeaseRef{Space: f.Space, Address: f.Address, ID: f.Lease}
	switch f.Kind {
	case ipam.UnusedLease:
		return s.ReleaseLease(ctx, ref)
	case ipam.StaleMemory:
		return s.ForgetMemory(ctx, ref)
	case ipam.UncoveredAddress:
		_, err := s.RequestAddress(ctx,
			ipam.AddressRequest{Pool: f.Pool, Preferred: f.Address, MAC: f.MAC, Name: f.name, Seen: true})
		return err == nil, err
	case ipam.OutdatedLease:
		return s.ReplaceLease(ctx, ref, ipam.AddressRequest{Pool: f.Pool, MAC: f.MAC, Name: f.name})
	case ipam.UnusedAttachment, ipam.UnusedSubnet:
		for _, id := range f.pools {
			if err := s.ReleasePool(ctx, id); err != nil {
				return false, err
			}
		}
		return true, nil
	}
	return false, fmt.Errorf("there is no repair for a finding %s", f.Kind)
}

// endSuperseded ends the reservations that were kept until their owners run with others. These need no wait.
func (w *Witness) endSuperseded(ctx context.Context, found []finding) error {
	ended := map[string][]netip.Addr{} // by owner: one edit ends all of an owner's
	for i := range found {
		f := &found[i]
		if f.Kind != ipam.SupersededReservation {
			continue
		}
		addrs, done := ended[f.Owner]
		if !done {
			out, err := w.cfg.Service.Edit(ctx, ipam.EditOptions{}, &ipam.ReleaseOwner{Owner: f.Owner, Replaced: true})
			if ctx.Err() != nil {
				return ctx.Err()
			}
			if err != nil {
				f.fail(err)
				continue
			}
			addrs = out.Results[0].Addresses
			ended[f.Owner] = addrs
		}
		if f.Repaired = slices.Contains(addrs, f.Address); f.Repaired {
			w.tellRepaired(f)
		}
	}
	return nil
}

// fail adds to a finding why it could not be repaired.
func (f *finding) fail(err error) { f.Detail += "; it could not be repaired: " + err.Error() }

func (w *Witness) tellRepaired(f *finding) {
	fields := logrus.Fields{"kind": f.Kind, "space": f.Space}
	if f.Address.IsValid() {
		fields["address"], fields["owner"] = f.Address, f.Owner
	} else {
		fields["subnet"] = f.Subnet
	}
	w.log.WithFields(fields).Info("repaired: " + f.Detail)
}
