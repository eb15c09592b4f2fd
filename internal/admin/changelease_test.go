package admin

import (
	"context"
	"net/netip"
	"slices"
	"testing"

	"berth/internal/ipam"
	"berth/internal/ipam/ipamtest"
)

// TestReleaseLeaseInTheBrowser: the form ends a container's lease only if the engine allows it. It is refused
// while the container uses the address, and it ends only the lease that was shown.
func TestReleaseLeaseInTheBrowser(t *testing.T) {
	running := true // what the engine says of the container
	var asked []ipam.LeaseRelease
	var h *harness
	h = start(t, func(s *Server) {
		s.cfg.Release = func(ctx context.Context, req ipam.LeaseRelease) (ended ipam.LeaseInfo, err error) {
			if asked = append(asked, req); running && !req.Force {
				return ended, ipam.Refuse(ipam.ErrInUse, "the container web has %s", req.Address)
			}
			for l, err := range h.service.Leases(ctx, ipam.LeaseFilter{Space: req.Space}) {
				if err == nil && l.Address == req.Address {
					ended = l
				}
			}
			if req.DryRun {
				return ended, nil
			}
			_, err = h.service.ReleaseLease(ctx, ipam.LeaseRef{Space: req.Space, Address: req.Address, ID: ended.ID})
			return ended, err
		}
		s.page = s.newPage()
		s.handlers = s.recovered(s.probed(s.permitted(s.bounded(s.mux()))))
	})
	id, pool, take := h.web(t)
	addr := take()
	script := func(script string) {
		t.Helper()
		h.plays(t, script, "$ID", id, "$ADDR", addr.String(), "$HELD", `"address":"`+addr.String()+`"`)
	}
	const show = `
		look /change/release?network=$ID&address=$ADDR -> 200
		agree /change/release -> 200 This lease would end && >web< && 02:00:00:00:00:01
		GET /v1/leases -> 200 $HELD
	`
	script(`fill /change/release network=$ID&address=$ADDR -> 409 the container web has $ADDR`)
	running = false
	script(show)
	if slices.ContainsFunc(asked, func(req ipam.LeaseRelease) bool { return !req.DryRun }) {
		t.Fatalf("the first step has asked for %v", asked)
	}
	shown := h.form
	running, asked = true, nil
	script(`agree /change/release -> 409 the container web has $ADDR`)

	must(t, h.service.ReleaseAddress(t.Context(), pool, addr)) // the container has restarted since the form was shown
	if again := take(); again != addr {
		t.Fatalf("web has %s, and had %s", again, addr)
	}
	running, h.form = false, shown
	script(`
		agree /change/release -> 412 has changed since you saw this page
		GET /v1/leases -> 200 $HELD
	` + show + `
		agree /change/release -> 303 Location: ../address/$ADDR?space=local
		GET /v1/events?last=1 -> 200 "verb":"lease.release" && $HELD && uid
		# nobody has it, so that it cannot be released
		look /address/$ADDR?space=local -> 200 without /change/release
		GET /v1/leases -> 200 "leases" without $HELD
	`)
	asked = slices.DeleteFunc(asked, func(req ipam.LeaseRelease) bool { return req.DryRun })
	for _, req := range asked {
		if len(asked) != 2 || req.Address != addr || req.Space != ipam.LocalSpace || req.Force {
			t.Errorf("the engine's word was asked for by %+v", asked)
		}
	}
}

// web plans a network on which the container web has an address.
func (h *harness) web(t *testing.T) (network string, pool ipam.ID, take func() netip.Addr) {
	t.Helper()
	network = h.plain(t)
	grant := ipamtest.MustPool(t, h.service, ipam.PoolRequest{Network: "forms"})
	return network, grant.ID, func() netip.Addr {
		return ipamtest.MustTake(t, h.service, ipam.AddressRequest{Pool: grant.ID, Name: "web",
			Preferred: netip.MustParseAddr("10.251.0.7"), MAC: ipam.MAC{2, 0, 0, 0, 0, 1}})
	}
}

// TestReleaseLeaseUnknown: if the daemon does not know what runs, no form ends a container's lease.
func TestReleaseLeaseUnknown(t *testing.T) {
	h := start(t, nil)
	id, _, take := h.web(t)
	h.plays(t, `fill /change/release network=$ID&address=$ADDR -> 400 this daemon does not know which containers run`,
		"$ID", id, "$ADDR", take().String())
}
