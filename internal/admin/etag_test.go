package admin

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	"berth/internal/admin/api"
	"berth/internal/admin/client"
	"berth/internal/ipam"
)

// Two admins have read the same network, and both change it: the second one is told, and neither overwrites the other.
func TestIfMatch(t *testing.T) {
	h := start(t, nil)
	h.planned(t)
	get := func() string {
		t.Helper()
		return h.play(t, step{method: "GET", target: "/v1/networks/net1", status: 200}).header.Get("ETag")
	}
	seen := get()
	first := h.play(t, made(`{"op": "network.modify", "network": "net1", "tags": {"by": "first"}}`, 200, "").with("If-Match", seen))
	for _, s := range []step{
		made(`{"op": "network.modify", "network": "net1", "tags": {"by": "second"}}`, 0, ""),
		made(`{"op": "pool.add", "network": "net1", "range": "192.0.2.9"}`, 0, ""),
		made(`{"op": "reservation.add", "network": "net1", "owner": "web",
			"wishes": [{"slot": 0, "address": "192.0.2.9"}]}`, 0, ""),
		made(`{"op": "network.remove", "network": "net1"}`, 0, ""),
		made(`{"op": "subnet.remove", "network": "net1", "subnet": "lan"}`, 0, ""),
		made(`{"op": "network.remove", "network": "net1"}`, 0, ""),
	} {
		s.status, s.header = http.StatusPreconditionFailed, map[string]string{"If-Match": seen}
		if p := h.play(t, s).problem(t); p.Code != api.CodeChanged || !strings.Contains(p.Detail, "net1") {
			t.Errorf("%s %s: %+v", s.method, s.target, p)
		}
	}
	n, err := h.client.Network(t.Context(), "net1")
	must(t, err)
	if n.Tags["by"] != "first" {
		t.Errorf("the tags are %v", n.Tags)
	}
	// The answer to a change has the tag for the next one, as every part of the network has.
	second := h.play(t, made(`{"op": "pool.add", "network": "net1", "range": "192.0.2.9"}`, 200, "").with("If-Match",
		first.header.Get("ETag")))
	for _, part := range []string{"", "/subnets", "/pools", "/exclusions", "/reservations", "/addresses"} {
		tag := h.play(t, step{method: "GET", target: "/v1/networks/net1" + part, status: 200}).header.Get("ETag")
		if !strings.HasPrefix(tag, strings.TrimSuffix(second.header.Get("ETag"), `"`)+"-") {
			t.Errorf("%s has the ETag %s after a change to %s", part, tag, second.header.Get("ETag"))
		}
		h.play(t, tried(`{"op": "network.modify", "network": "net1", "sticky": false}`, 200,
			"").with("If-Match", tag))
	}
	// What others take meanwhile is no change of the plan.
	seen = get()
	h.plays(t, `edit {"op": "address.take", "network": "net1", "owner": "vm", "interface": {"number": 0}} -> 200`)
	h.play(t, made(`{"op": "network.modify", "network": "net1", "sticky": false}`, 200, "").with("If-Match",
		seen))
	h.play(t, made(`{"op": "network.modify", "network": "net1", "sticky": true}`, 200, "").with("If-Match",
		"*"))
	for _, wrong := range []string{`"0"`, `"0-ab"`, `7`, `""`, `"seven"`, `W/"7"`, `"7", "8"`, `"-7"`,
		`"99999999999999999999"`} {
		h.play(t, made(`{"op": "network.modify", "network": "net1", "sticky": true}`, 400, "").with("If-Match",
			wrong))
	}
}

// A network that Docker asked for has a revision before anybody has edited it: a race for its first change has one
// winner.
func TestIfMatchOfDockersNetwork(t *testing.T) {
	h := start(t, nil)
	h.furnish(t)
	all, err := h.client.Networks(t.Context(), "lab")
	must(t, err)
	seen := all[0].Revision
	var mu sync.Mutex
	var won int
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			name := fmt.Sprintf("net%d", i)
			_, err := h.client.Edit(t.Context(), client.EditOptions{IfMatch: seen},
				&ipam.ModifyNetwork{Network: all[0].ID.String(), Name: &name})
			mu.Lock()
			defer mu.Unlock()
			if err == nil {
				won++
			} else if p, ok := err.(*api.Problem); !ok || p.Code != api.CodeChanged {
				t.Errorf("refused as %v", err)
			}
		})
	}
	wg.Wait()
	if seen == 0 || won != 1 {
		t.Errorf("of revision %d there were %d first changes", seen, won)
	}
}

func TestIfNoneMatch(t *testing.T) {
	h := start(t, nil)
	lan := h.planned(t)
	for _, target := range []string{"/v1/networks/net1", "/v1/networks/net1/pools", "/v1/networks/net1/subnets",
		"/v1/networks/net1/addresses", "/v1/subnets/" + lan} {
		tag := h.play(t, step{method: "GET", target: target, status: 200}).header.Get("ETag")
		for _, same := range []string{tag, "W/" + tag, `"other", ` + tag, "*"} {
			got := h.play(t,
				step{method: "GET", target: target, status: 304, header: map[string]string{"If-None-Match": same}})
			if got.body != "" || got.header.Get("ETag") != tag {
				t.Errorf("%s: 304 with the ETag %s and %q", target, got.header.Get("ETag"), got.body)
			}
		}
		h.play(t, step{method: "GET", target: target, status: 200,
			header: map[string]string{"If-None-Match": `"other"`}})
	}
	// An address that is taken is no change of the plan, and shows all the same.
	tag := h.play(t, step{method: "GET", target: "/v1/networks/net1", status: 200}).header.Get("ETag")
	h.plays(t, `edit {"op": "address.take", "network": "net1", "owner": "vm", "interface": {"number": 0}} -> 200`)
	h.play(t, step{method: "GET", target: "/v1/networks/net1", status: 200,
		header: map[string]string{"If-None-Match": tag}})
}
