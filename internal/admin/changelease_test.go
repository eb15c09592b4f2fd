package admin

import (
	"context"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"testing"

	"berth/internal/ipam"
)

// TestReleaseLeaseInTheBrowser ends the lease of a container by what the engine says, and by nothing else: while a
// container has it, it is refused, and the lease that was shown is the one that ends.
func TestReleaseLeaseInTheBrowser(t *testing.T) {
	running := true // what the engine says of the container
	var asked []ipam.LeaseRelease
	var h *house
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
	id := h.plain(t)
	pool, err := h.service.RequestPool(t.Context(), ipam.PoolRequest{Network: "forms"})
	must(t, err)
	at := netip.MustParseAddr("10.251.0.7")
	take := func() netip.Addr {
		t.Helper()
		got, err := h.service.RequestAddress(t.Context(), ipam.AddressRequest{Pool: pool.ID, Name: "web", Preferred: at,
			MAC: ipam.MAC{2, 0, 0, 0, 0, 1}})
		must(t, err)
		return got.Addr()
	}
	held := func() (n int) {
		t.Helper()
		for l, err := range h.service.Leases(t.Context(), ipam.LeaseFilter{Space: ipam.LocalSpace}) {
			must(t, err)
			if l.Name == "web" && l.State == "held" {
				n++
			}
		}
		return n
	}
	addr := take()
	show := func() string {
		t.Helper()
		body, _ := h.browse(t, "/change/release?network="+id+"&address="+addr.String(), 200)
		status, body, _ := h.fills(t, "/change/release", formIn(t, body), nil)
		if status != 200 || !strings.Contains(body, "This lease would end") || !strings.Contains(body, ">web<") ||
			!strings.Contains(body, "02:00:00:00:00:01") {
			t.Fatalf("the first step: %d %s", status, body)
		}
		return body
	}

	first := url.Values{"network": {id}, "address": {addr.String()}}
	status, body, _ := h.fills(t, "/change/release", first, nil)
	if status != http.StatusConflict || !strings.Contains(body, "the container web has "+addr.String()) {
		t.Fatalf("the first step while it runs: %d: %s", status, body)
	}
	running = false
	shown := show()
	for _, req := range asked {
		if !req.DryRun || held() != 1 {
			t.Fatalf("the first step has asked for %v", asked)
		}
	}
	running, asked = true, nil
	status, body, _ = h.fills(t, "/change/release", formIn(t, shown), nil)
	if status != http.StatusConflict || !strings.Contains(body, "the container web has "+addr.String()) || held() != 1 {
		t.Fatalf("it runs again: %d, %d held: %s", status, held(), body)
	}

	must(t, h.service.ReleaseAddress(t.Context(), pool.ID, addr)) // it has started anew since it was shown
	if again := take(); again != addr {
		t.Fatalf("web has %s, and had %s", again, addr)
	}
	running = false
	status, body, _ = h.fills(t, "/change/release", formIn(t, shown), nil)
	if status != http.StatusPreconditionFailed || !strings.Contains(body, "not held as it was") || held() != 1 {
		t.Fatalf("another lease than was shown: %d, %d held: %s", status, held(), body)
	}

	shown = show()
	status, body, header := h.fills(t, "/change/release", formIn(t, shown), nil)
	if to := header.Get("Location"); status != http.StatusSeeOther || to != "../address/"+addr.String()+"?space=local" {
		t.Fatalf("a container that is gone: %d to %q: %s", status, to, body)
	}
	if held() != 0 {
		t.Error("the lease is still there")
	}
	asked = slices.DeleteFunc(asked, func(req ipam.LeaseRelease) bool { return req.DryRun })
	for _, req := range asked {
		if len(asked) != 2 || req.Address != addr || req.Space != ipam.LocalSpace || req.Force {
			t.Errorf("the engine's word was asked for by %+v", asked)
		}
	}
	events, err := h.service.Events(t.Context(), ipam.EventFilter{Last: 1})
	must(t, err)
	if events[0].Verb != ipam.LeaseReleased || events[0].Address != addr || !strings.Contains(events[0].Actor, "uid") {
		t.Errorf("the event is %+v", events[0])
	}
	body, _ = h.browse(t, header.Get("Location")[2:], 200)
	if strings.Contains(body, "/change/release") {
		t.Error("an address that nobody has can still be released")
	}
}

// TestReleaseLeaseUnknown: where nobody says what runs, no form ends the lease of a container.
func TestReleaseLeaseUnknown(t *testing.T) {
	h := start(t, nil)
	id := h.plain(t)
	pool, err := h.service.RequestPool(t.Context(), ipam.PoolRequest{Network: "forms"})
	must(t, err)
	got, err := h.service.RequestAddress(t.Context(), ipam.AddressRequest{Pool: pool.ID, Name: "web", Preferred: netip.MustParseAddr("10.251.0.7")})
	must(t, err)
	form := map[string][]string{"network": {id}, "address": {got.Addr().String()}}
	status, body, _ := h.fills(t, "/change/release", form, nil)
	if status != http.StatusBadRequest || !strings.Contains(body, "this daemon does not know what runs") {
		t.Errorf("%d: %s", status, body)
	}
}
