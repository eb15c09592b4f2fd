package admin

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"

	"berth/internal/admin/api"
	"berth/internal/admin/client"
	"berth/internal/ipam"
)

// A key makes a change once: the same request gets the same answer, another one is refused.
func TestIdempotencyKey(t *testing.T) {
	h := start(t, nil)
	lan := h.planned(t)
	next := step{method: "POST", target: "/v1/subnets/" + lan + "/available-ips", body: `{"owner": "vm"}`, status: 200,
		header: map[string]string{api.KeyHeader: "key 1"}}
	h.plays(t, `edit {"op": "pool.add", "network": "net1", "range": "192.0.2.10-192.0.2.20"} -> 200`)
	first := h.play(t, next)
	if first.header.Get(replayedHeader) != "" || first.outcome(t).Replayed {
		t.Error("the first answer is called a repetition")
	}
	again := h.play(t, next)
	if again.header.Get(replayedHeader) != "true" || !again.outcome(t).Replayed ||
		again.header.Get("ETag") != first.header.Get("ETag") {
		t.Errorf("the second answer: %v %s", again.header, again.body)
	}
	if a, b := first.outcome(t).Results[0].Addresses, again.outcome(t).Results[0].Addresses; !slices.Equal(a, b) ||
		len(a) != 1 {
		t.Errorf("first %v, then %v", a, b)
	}
	for _, other := range []step{
		{method: "POST", target: next.target, body: `{"owner": "vm2"}`},
		{method: "POST", target: next.target, body: `{"owner": "vm"} `},
		made(`{"op": "pool.add", "network": "net1", "range": "192.0.2.30"}`, 0, ""),
		made(`{"op": "network.remove", "network": "net1", "force": true}`, 0, ""),
		made(`{"op": "address.release", "network": "net1", "owner": "vm"}`, 0, ""),
		made(`{"op": "network.modify", "network": "net1", "sticky": false}`, 0, ""),
	} {
		other.status, other.header = http.StatusUnprocessableEntity, next.header
		if p := h.play(t, other).problem(t); p.Code != api.CodeKeyReused {
			t.Errorf("%s %s: %+v", other.method, other.target, p)
		}
	}
	// A dry run neither looks at keys nor keeps them.
	dry := step{method: "POST", target: next.target + "?dry_run=true", body: next.body, status: 200,
		header: map[string]string{api.KeyHeader: "key 2"}}
	h.play(t, dry)
	h.play(t, dry)
	used := dry
	used.header = map[string]string{api.KeyHeader: "key 1"}
	h.play(t, used)
	next.header = dry.header
	if h.play(t, next).header.Get(replayedHeader) != "" {
		t.Error("a dry run kept its key")
	}
	// A refused request keeps none either: it may succeed later.
	pool := made(`{"op": "pool.add", "network": "net1", "range": "10.7.0.9"}`, 400, "").with(api.KeyHeader, "key 3")
	h.play(t, pool)
	h.plays(t, `edit {"op": "subnet.add", "network": "net1", "cidr": "10.7.0.0/24"} -> 200`)
	pool.status = 200
	if h.play(t, pool).header.Get(replayedHeader) != "" {
		t.Error("a refusal was replayed")
	}
	for _, wrong := range []string{"", strings.Repeat("x", maxKey+1), "tab\there", "caf\u00e9"} {
		req, err := http.NewRequestWithContext(t.Context(), "POST", "http://berth/v1/edits",
			strings.NewReader(`{"edits": [{"op": "network.create", "name": "net7"}]}`))
		must(t, err)
		req.Header.Set("Content-Type", "application/json")
		req.Header[api.KeyHeader] = []string{wrong}
		res, err := h.http.Do(req)
		must(t, err)
		res.Body.Close()
		if res.StatusCode != http.StatusBadRequest {
			t.Errorf("the key %.20q: status %d", wrong, res.StatusCode)
		}
	}
}

// The same key from many at once makes the change once, and everybody gets its answer.
func TestIdempotencyRace(t *testing.T) {
	h := start(t, nil)
	lan := h.planned(t)
	var mu sync.Mutex
	answers := map[string]int{}
	var wg sync.WaitGroup
	for range 16 {
		wg.Go(func() {
			out, err := h.client.Edit(t.Context(), client.EditOptions{Key: "once"},
				&ipam.TakeAddress{Network: "net1", Subnet: lan, Owner: "vm",
					Interface: ipam.Interface{Number: -1, Action: ipam.AddInterface,
						Wishes: []ipam.Wish{{Address: netip.MustParseAddr("192.0.2.77")}}}})
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				t.Error(err)
				return
			}
			answers[fmt.Sprint(out.Results[0].Addresses, out.Revision)]++
		})
	}
	wg.Wait()
	taken, err := h.client.Addresses(t.Context(), "net1", "vm")
	must(t, err)
	if len(answers) != 1 || len(taken) != 1 {
		t.Errorf("%d different answers, %d addresses: %v", len(answers), len(taken), answers)
	}
}

// A key is its caller's: somebody else who has the same one is not given the answer to the first.
func TestKeyIsItsCallers(t *testing.T) {
	h := start(t, nil)
	lan := h.planned(t)
	ask := func(actor string) int {
		req := httptest.NewRequest("POST", "/v1/subnets/"+lan+"/available-ips",
			strings.NewReader(`{"owner": "vm", "pool": ""}`))
		req.Header.Set("Content-Type", api.JSONType)
		req.Header.Set(api.KeyHeader, "key 1")
		w := httptest.NewRecorder()
		h.server.mux().ServeHTTP(w,
			req.WithContext(context.WithValue(t.Context(), callerKey{}, &caller{actor: actor, role: api.RoleAdmin})))
		return w.Code
	}
	_, err := h.client.Edit(t.Context(), client.EditOptions{}, &ipam.AddPool{Network: "net1", Subnet: "lan"})
	must(t, err)
	for _, c := range []struct {
		actor  string
		status int
	}{{"root (uid 0)", 200}, {"token ci", 422}, {"root (uid 0)", 200}} {
		if got := ask(c.actor); got != c.status {
			t.Errorf("%s: status %d, want %d", c.actor, got, c.status)
		}
	}
	if taken, err := h.client.Addresses(t.Context(), "net1", ""); err != nil || len(taken) != 1 {
		t.Errorf("taken are %v, %v", taken, err)
	}
}
