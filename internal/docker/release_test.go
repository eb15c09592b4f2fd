package docker

import (
	"errors"
	"net/netip"
	"strings"
	"testing"
	"time"

	"berth/internal/ipam"
)

// TestReleaseLease: a lease without an endpoint ends at once. One that an endpoint has or may have ends only by force,
// and one that is not of an endpoint never.
func TestReleaseLease(t *testing.T) {
	for name, row := range map[string]struct {
		make   func(tn *town) netip.Addr
		says   string // part of the refusal; empty: it is released
		forced string // the same with force
	}{
		"its container is gone": {func(tn *town) netip.Addr {
			a := tn.run("web", "front")
			tn.vanish("web")
			tn.settle(time.Minute)
			return a
		}, "", ""},
		"a container has it": {func(tn *town) netip.Addr {
			a := tn.run("web",
				"front")
			tn.settle(time.Minute)
			return a
		},
			"the container web has 10.8.0.2 on the Docker network front; stop it", ""},
		"its container may be starting": {func(tn *town) netip.Addr {
			a := tn.run("web", "front")
			tn.vanish("web")
			tn.settle(14 * time.Second)
			return a
		},
			"10.8.0.2 was taken 14s before the engine was looked at, and its container may be starting; try " +
				"again in 1s", ""},
		"the engine is away": {func(tn *town) netip.Addr {
			a := tn.run("web", "front")
			tn.settle(time.Minute)
			tn.engine.stop()
			return a
		},
			"whether an endpoint has 10.8.0.2 is not known", ""},
		"nobody has it": {func(tn *town) netip.Addr { return addr("10.8.0.7") }, "nobody holds 10.8.0.7",
			"nobody holds 10.8.0.7"},
		"a gateway": {func(tn *town) netip.Addr { return addr("10.8.0.1") }, "10.8.0.1 is a gateway",
			"10.8.0.1 is a gateway"},
		"taken by hand": {func(tn *town) netip.Addr {
			tn.edit(&ipam.TakeAddress{Network: tn.leaseOf(addr("10.8.0.1")).Network, Owner: "rtr",
				Interface: ipam.Interface{Wishes: []ipam.Wish{{Address: addr("10.8.0.9")}}}})
			tn.settle(time.Minute)
			return addr("10.8.0.9")
		}, "was taken for rtr by hand", "was taken for rtr by hand"},
	} {
		t.Run(name, func(t *testing.T) {
			tn := newTown(t)
			a := row.make(tn)
			for _, req := range []ipam.LeaseRelease{{Address: a}, {Address: a, Force: true}} {
				says := row.says
				if req.Force {
					says = row.forced
				}
				_, err := tn.w.ReleaseLease(t.Context(), req)
				switch {
				case says == "" && err != nil:
					t.Fatal(err)
				case says != "" && (err == nil || !strings.Contains(err.Error(), says)):
					t.Errorf("it ends with %v, want %q", err, says)
				}
				if says == "" {
					if l := tn.leaseOf(a); l.State != "remembered" {
						t.Errorf("the lease is %s", l.State)
					}
					return
				}
			}
		})
	}
}

// TestReleaseLeaseOfSpace: if two spaces have the address, the request must name one.
func TestReleaseLeaseOfSpace(t *testing.T) {
	tn := newTown(t)
	a := tn.run("web", "front")
	grant, err := tn.service.RequestPool(t.Context(), ipam.PoolRequest{Space: "lab", CIDR: prefix("10.8.0.0/24")})
	must(t, err)
	_, err = tn.service.RequestAddress(t.Context(), ipam.AddressRequest{Pool: grant.ID, MAC: macN(9), Preferred: a})
	must(t, err)
	tn.settle(time.Minute)
	if _, err := tn.w.ReleaseLease(t.Context(), ipam.LeaseRelease{Address: a}); !errors.Is(err, ipam.ErrInvalid) ||
		!strings.Contains(err.Error(), "--space") {
		t.Errorf("it ends with %v", err)
	}
	if l, err := tn.w.ReleaseLease(t.Context(), ipam.LeaseRelease{Space: "lab", Address: a}); err != nil ||
		l.Space != "lab" {
		t.Errorf("it released %+v (%v)", l, err)
	}
}
