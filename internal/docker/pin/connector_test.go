package pin

import (
	"context"
	"errors"
	"fmt"
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

// A move restores every setting of an endpoint that a user can make, and none that the engine adds.
func TestMoveKeepsSettings(t *testing.T) {
	e, web := newSeated(t)
	h := open(e)
	want := addrs("10.9.0.5", "fd00:9::5")
	ep := endpoint(e, h)
	if !ep.Running || !sameAddrs(ep.Addresses, want) || len(ep.Asked) > 0 {
		t.Fatalf("%+v", ep)
	}
	moved, err := h.Move(context.Background(), ep, want)
	if err != nil || !sameAddrs(moved.Addresses, want) || moved.Cut <= 0 {
		t.Fatalf("%+v, %v", moved, err)
	}
	shown := object{}
	for _, key := range []string{"IPAMConfig", "Aliases", "Links", "DriverOpts", "MacAddress"} {
		shown[key] = web.On[key]
	}
	asks := object{"IPv4Address": "10.9.0.5", "IPv6Address": "fd00:9::5", "LinkLocalIPs": []any{"169.254.8.8"}}
	if diff := cmp.Diff(object{"IPAMConfig": asks, "Aliases": []any{"foo", "aaaabbbbcccc"}, "Links": []any{"db:store"},
		"DriverOpts": object{"mode": "a b"}, "MacAddress": "02:42:0a:09:00:77"}, shown); diff != "" {
		t.Error(diff)
	}
	if _, err := h.Move(context.Background(), endpoint(e, h), nil); err != nil {
		t.Fatal(err)
	}
	if ep := endpoint(e, h); len(ep.Asked) > 0 || web.On["IPAMConfig"] == nil {
		t.Errorf("unpinned, it asks for %v: %v", ep.Asked, web.On)
	}
}

// TestMoveKeepsMAC: a configured MAC stays where the engine can keep it. Where it cannot, the endpoint says so
// beforehand.
func TestMoveKeepsMAC(t *testing.T) {
	for _, c := range []struct {
		name  string
		api   int // 1.N
		mac   string
		loses bool
	}{
		{name: "20.10", api: 41, mac: "02:42:0a:09:00:77"},
		{name: "24.0", api: 43, mac: "02:42:0a:09:00:77"},
		{name: "25.0", api: 44, mac: "02:42:0a:09:00:77", loses: true},
		{name: "28.5", api: 51, mac: "02:42:0a:09:00:77", loses: true},
		{name: "29.2", api: 53, mac: "02:42:0a:09:00:77", loses: true},
		{name: "29.3", api: 54, mac: "02:42:0a:09:00:77"},
		{name: "29.8", api: 55, mac: "02:42:0a:09:00:77"},
		{name: "28.5 without one", api: 51},
		{name: "29.8 without one", api: 55},
	} {
		t.Run(c.name, func(t *testing.T) {
			e, web := newSeated(t)
			e.API, web.MAC = c.api, c.mac
			h := open(e)
			ep := endpoint(e, h)
			if got := ep.Settings.MacAddress.String(); got != c.mac || ep.LosesMAC != c.loses {
				t.Fatalf("before it has the MAC %q, and loses it: %v", got, ep.LosesMAC)
			}
			for _, wanted := range [][]netip.Addr{addrs("10.9.0.5"), nil} {
				if _, err := h.Move(t.Context(), ep, wanted); err != nil {
					t.Fatal(err)
				}
				if web.MAC != c.mac && !c.loses {
					t.Errorf("asking for %v it has the MAC %q", wanted, web.MAC)
				}
			}
		})
	}
}

// A container is reconnected whatever the engine answers, although a stop is requested while it is being disconnected.
func TestMoveIsNotLost(t *testing.T) {
	for _, c := range []struct {
		name   string
		refuse []string // the answers to its next connects
		lost   string   // a move that is made, but answered with an error
		on     bool
		asks   []netip.Addr
		errs   []string // texts in the error; none: no error
	}{
		{name: "at once", on: true, asks: addrs("10.9.0.5")},
		{name: "the second try", refuse: []string{"busy"}, on: true, asks: addrs("10.9.0.5")},
		{name: "the answer got lost", lost: "off web", on: true, asks: addrs("10.9.0.5")},
		{name: "that of putting it on got lost", lost: "on web", on: true, asks: addrs("10.9.0.5")},
		{name: "never with the address", refuse: []string{"user configured subnets"}, on: true,
			errs: []string{"web is back on the Docker network front", "requests no address",
				"user configured subnets"}},
		{name: "never", refuse: []string{"user configured subnets", "user configured subnets"},
			errs: []string{"IS NO LONGER ON THE DOCKER NETWORK front",
				"`docker network connect --ip 10.9.0.5 --link-local-ip 169.254.8.8 " +
					"--alias foo --link db:store --driver-opt 'mode=a b' front web`"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			e, web := newSeated(t)
			h := open(e)
			ep := endpoint(e, h)
			e.Place.Refuse, e.Place.Lost = map[string][]string{"on web": c.refuse}, map[string]int{c.lost: 1}
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			e.Place.Before = func(string) { stop() }
			_, err := h.Move(ctx, ep, addrs("10.9.0.5"))
			if (err == nil) != (len(c.errs) == 0) {
				t.Fatalf("the error is %v", err)
			}
			for _, text := range c.errs {
				if !strings.Contains(err.Error(), text) {
					t.Errorf("the error does not say %q: %v", text, err)
				}
			}
			if (web.On != nil) != c.on {
				t.Fatalf("on its network: %v", web.On)
			}
			if c.on && !sameAddrs(endpoint(e, h).Asked, c.asks) {
				t.Errorf("it asks for %v", web.On)
			}
		})
	}
}

// A stop that is requested before the disconnection prevents the move.
func TestMoveAndSignals(t *testing.T) {
	e, _ := newSeated(t)
	h := open(e)
	ep := endpoint(e, h)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := h.Move(ctx, ep, addrs("10.9.0.5")); !errors.Is(err, context.Canceled) || len(e.Place.Moves) > 0 {
		t.Errorf("%v; called were %v", err, e.Place.Moves)
	}
}

// For a stopped container only the settings change.
func TestMoveStopped(t *testing.T) {
	e, web := newSeated(t)
	web.Stopped = true
	h := open(e)
	moved, err := h.Move(context.Background(), endpoint(e, h), addrs("10.9.0.7"))
	if err != nil || len(moved.Addresses) > 0 || !sameAddrs(endpoint(e, h).Asked, addrs("10.9.0.7")) {
		t.Errorf("%+v, %v: %v", moved, err, web.On)
	}
}

func TestTasksAreRefused(t *testing.T) {
	e, web := newSeated(t)
	web.Labels = object{docker.LabelTask: "t1", labelServiceName: "shop"}
	_, err := open(e).Endpoint(context.Background(), webID, "front")
	if !errors.Is(err, ipam.ErrInvalid) || !strings.Contains(err.Error(), "service shop") {
		t.Error(err)
	}
}

func TestTakesAnyAddress(t *testing.T) {
	for row := range ipamtest.Rows(3, `
		1.41 | 20.10.24+dfsg1
		1.51 | 28.5.2
		1.52 | 29.0.0
		1.52 | 29.0.3+dfsg1
		1.52 | 29.0.4       | yes
		1.52 | 29.1.0       | yes
		1.54 | dev          | yes
	`) {
		e, _ := newSeated(t)
		_, err := fmt.Sscanf(row[0], "1.%d", &e.API)
		must(t, err)
		e.Release = row[1]
		if got, err := open(e).TakesAnyAddress(context.Background()); err != nil || got != (row[2] != "") {
			t.Errorf("%v: %v, %v", row, got, err)
		}
	}
}

// A connector makes no changes in an engine but connects and disconnects.
func TestHandKeepsToItself(t *testing.T) {
	e, _ := newSeated(t)
	h := open(e)
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
	if asked := e.Asked(); slices.Contains(asked, "POST /containers/x/stop") {
		t.Error(asked)
	}
}
