package pin

import (
	"context"
	"errors"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"berth/internal/docker"
	"berth/internal/ipam"
	"berth/internal/ipam/ipamtest"

	"github.com/google/go-cmp/cmp"
)

func (e *seated) endpoint(h *Hand) *Endpoint {
	e.t.Helper()
	ep, err := h.Endpoint(context.Background(), webID, "front")
	must(e.t, err)
	return ep
}

// All that a user could have set of an endpoint is there again, and nothing that the engine adds.
func TestMoveKeepsSettings(t *testing.T) {
	e := newSeated(t)
	h := e.open()
	want := addrs("10.9.0.5", "fd00:9::5")
	ep := e.endpoint(h)
	if !ep.Running || !sameAddrs(ep.Addresses, want) || len(ep.Asked) > 0 {
		t.Fatalf("%+v", ep)
	}
	moved, err := h.Move(context.Background(), ep, want)
	if err != nil || !sameAddrs(moved.Addresses, want) || moved.Cut <= 0 {
		t.Fatalf("%+v, %v", moved, err)
	}
	shown := object{}
	for _, key := range []string{"IPAMConfig", "Aliases", "Links", "DriverOpts", "MacAddress"} {
		shown[key] = e.place[key]
	}
	asks := object{"IPv4Address": "10.9.0.5", "IPv6Address": "fd00:9::5", "LinkLocalIPs": []any{"169.254.8.8"}}
	if diff := cmp.Diff(object{"IPAMConfig": asks, "Aliases": []any{"foo", "aaaabbbbcccc"}, "Links": []any{"db:store"},
		"DriverOpts": object{"mode": "a b"}, "MacAddress": "02:42:0a:09:00:77"}, shown); diff != "" {
		t.Error(diff)
	}
	if _, err := h.Move(context.Background(), e.endpoint(h), nil); err != nil {
		t.Fatal(err)
	}
	if ep := e.endpoint(h); len(ep.Asked) > 0 || e.place["IPAMConfig"] == nil {
		t.Errorf("unpinned, it asks for %v: %v", ep.Asked, e.place)
	}
}

// A container is put back whatever the engine answers, and whoever asks to stop meanwhile.
func TestMoveIsNotLost(t *testing.T) {
	for _, c := range []struct {
		name    string
		refuse  []string
		deaf    int
		on      bool
		asks    []netip.Addr
		errs    []string // of the error; none: there is none
		command bool
	}{
		{name: "at once", on: true, asks: addrs("10.9.0.5")},
		{name: "the second try", refuse: []string{"busy"}, on: true, asks: addrs("10.9.0.5")},
		{name: "the answer got lost", deaf: 1, on: true, asks: addrs("10.9.0.5")},
		{name: "never with the address", refuse: []string{"user configured subnets"}, on: true,
			errs: []string{"web is back on the Docker network front", "asks for no address",
				"user configured subnets"}},
		{name: "never", refuse: []string{"user configured subnets", "user configured subnets"},
			errs: []string{"IS NOT ON THE DOCKER NETWORK front",
				"`docker network connect --ip 10.9.0.5 --link-local-ip 169.254.8.8 " +
					"--alias foo --link db:store --driver-opt 'mode=a b' front web`"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			e := newSeated(t)
			h := e.open()
			ep := e.endpoint(h)
			e.refuse, e.deaf = c.refuse, c.deaf
			_, err := h.Move(context.Background(), ep, addrs("10.9.0.5"))
			if (err == nil) != (len(c.errs) == 0) {
				t.Fatalf("the error is %v", err)
			}
			for _, text := range c.errs {
				if !strings.Contains(err.Error(), text) {
					t.Errorf("the error does not say %q: %v", text, err)
				}
			}
			if (e.place != nil) != c.on {
				t.Fatalf("on its network: %v", e.place)
			}
			if c.on && !sameAddrs(e.endpoint(h).Asked, c.asks) {
				t.Errorf("it asks for %v", e.place)
			}
		})
	}
}

// Who asks to stop before the cut is obeyed, and nobody in the midst of it.
func TestMoveAndSignals(t *testing.T) {
	e := newSeated(t)
	h := e.open()
	ep := e.endpoint(h)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := h.Move(ctx, ep, addrs("10.9.0.5")); !errors.Is(err, context.Canceled) || len(e.calls) > 0 {
		t.Errorf("%v; called were %v", err, e.calls)
	}
}

// A stopped container is only written to.
func TestMoveStopped(t *testing.T) {
	e := newSeated(t)
	e.running = false
	h := e.open()
	moved, err := h.Move(context.Background(), e.endpoint(h), addrs("10.9.0.7"))
	if err != nil || len(moved.Addresses) > 0 || !sameAddrs(e.endpoint(h).Asked, addrs("10.9.0.7")) {
		t.Errorf("%+v, %v: %v", moved, err, e.place)
	}
}

func TestTasksAreRefused(t *testing.T) {
	e := newSeated(t)
	e.labels = object{docker.LabelTask: "t1", labelServiceName: "shop"}
	_, err := e.open().Endpoint(context.Background(), webID, "front")
	if !errors.Is(err, ipam.ErrInvalid) || !strings.Contains(err.Error(), "service shop") {
		t.Error(err)
	}
}

func TestTakesAnyAddress(t *testing.T) {
	for version, want := range map[string]bool{"1.41": false, "1.51": false, "1.52": true, "1.54": true} {
		e := newSeated(t)
		e.version = version
		if got, err := e.open().TakesAnyAddress(context.Background()); err != nil || got != want {
			t.Errorf("%s: %v, %v", version, got, err)
		}
	}
}

// A hand does nothing to an engine but connect and disconnect.
func TestHandKeepsToItself(t *testing.T) {
	e := newSeated(t)
	h := e.open()
	for row := range ipamtest.Rows(2, `
		POST /networks/front/connect | yes
		POST /v1.41/networks/front/disconnect | yes
		GET /v1.41/containers/json | yes
		POST /v1.41/containers/x/stop
		DELETE /v1.41/networks/front
		POST /v1.41/networks/create
		POST /networks/../containers/x/exec
		POST /networks/..%2Fcontainers%2Fx/connect
		POST /v1.41/containers/x/exec?/networks/front/connect
	`) {
		method, path, _ := strings.Cut(row[0], " ")
		req, err := http.NewRequest(method, "http://docker"+path, nil)
		must(t, err)
		resp, err := h.transport.RoundTrip(req)
		if err == nil {
			must(t, resp.Body.Close())
		}
		if (err == nil) != (row[1] != "") {
			t.Errorf("%s: %v", row[0], err)
		}
	}
	if slices.Contains(e.calls, "/containers/x/stop") {
		t.Error(e.calls)
	}
}
