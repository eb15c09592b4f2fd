package admin

import (
	"compress/gzip"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"berth/internal/admin/api"
	"berth/internal/admin/client"
	"berth/internal/ipam"
	"berth/store"
	"berth/store/storetest"

	"github.com/google/go-cmp/cmp"
)

// A wrong body is refused with its reason and the field, if there is one. Nothing is changed.
func TestBadBodies(t *testing.T) {
	h := start(t, nil)
	lan := h.planned(t)
	before := h.everything(t)
	one := `{"op": "pool.add", "network": "net1", "range": "192.0.2.9"}`
	many := strings.Repeat(one+",", ipam.MaxEdits)
	for _, c := range steps(`
		POST /v1/edits -> 400 empty

		POST /v1/edits null -> 400 null
		POST /v1/subnets/$LAN/available-ips [] -> 400 empty
		POST /v1/subnets/$LAN/available-ips [null] -> 400 null
		POST /v1/edits "net2" -> 400 a string
		POST /v1/edits 7 -> 400 a number
		edit {"op": "network.create", -> 400 not valid JSON
		edit {"op": "network.create", "name": "net2" -> 400 not valid JSON
		edit {"op": "network.create", "name": "net2"} {"name": "net3"} -> 400 not valid JSON
		POST /v1/edits {"edits": [{"op": "network.create", "name": "net2"}]]} -> 400 not valid JSON
		edit {"op": "network.create", "name": "net2", } -> 400 not valid JSON

		edit {"op": "network.create", "name": "net2", "name": "net3"}
			-> 400 at "edits.0.name": duplicate
		edit {"op": "network.create", "Name": "net2"} -> 400 no field "Name"
		edit {"op": "network.create", "name": "net2", "subnets": [{"cidr": "10.1.0.0/24"},
			{"cdir": "10.2.0.0/24"}]} -> 400 no field "subnets.1.cdir"
		edit {"op": "network.create", "name": 2}
			-> 400 the field "name" is a number; it must be a string
		edit {"op": "network.create", "name": "net2", "sticky": "yes"}
			-> 400 the field "sticky" is a string; it must be true or false
		edit {"op": "network.create", "name": "net2", "subnets": {}}
			-> 400 the field "subnets" is an object; it must be a list
		edit {"op": "network.create", "name": "net2", "subnets": [{"bits": 24.5}]}
			-> 400 the field "subnets.0.bits" cannot be 24.5
		edit {"op": "network.create", "name": "net2", "subnets": [{"cidr": "10.1.0.0"}]}
			-> 400 the field "subnets.0.cidr" is wrong
		edit {"op": "network.create", "name": "net2", "subnets": [{"cidr": "10.1.0.7/24"}]}
			-> 400 10.1.0.0/24
		edit {"op": "network.create", "name": "net2", "subnets": [{"cidr": "10.1.0.0/24",
			"gateway": "::ffff:10.1.0.1"}]} -> 400 10.1.0.1
		edit {"op": "network.create", "name": "net2", "subnets": [{"cidr": "fd00::/64",
			"gateway": "fd00::1%eth0"}]} -> 400 fd00::1
		edit {"op": "network.create", "name": "net2", "quarantine": "-1s"}
			-> 400 the field "quarantine" is wrong
		edit {"op": "network.create", "name": "net2", "quarantine": 5}
			-> 400 the field "quarantine" is a number; it must be a string
		edit {"op": "network.create", "name": "no/name"} -> 400 no/name
		edit {"op": "network.create", "name": "net2", "type": "virtual"} -> 400 virtual
		edit {"op": "network.create", "name": "net2", "type": null, "static": "192.0.2.8/29"}
			-> 400 the field "static" is a string; it must be a list
		edit {"op": "network.create", "name": "net2", "static": ["192.0.2.9-192.0.2.8"]}
			-> 400 the field "static.0" is wrong
		edit {"op": "network.create", "name": "net2", "owner_rules": {"web-*": "pool:web"}}
			-> 400 the field "owner_rules" is an object; it must be a list
		edit {"op": "network.create", "name": "net2", "owner_rules": [{"pattern": "web-*",
			"pol": "web"}]} -> 400 no field "owner_rules.0.pol"
		edit {"op": "network.create", "name": "net2", "owner_rules": [{"pattern": ""}]} -> 400 pattern
		edit {"op": "pool.add", "network": "net1", "network": "net2", "range": "192.0.2.9"}
			-> 400 at "edits.0.network": duplicate
		edit {"op": "pool.add", "network": "net1", "range": "192.0.2.9-198.51.100.1-2"}
			-> 400 the field "range" is wrong
		edit {"op": "pool.add", "network": "net1", "range": "192.0.2.200-192.0.3.10"} -> 400 192.0.2.255
		edit {"op": "pool.add", "network": "net1", "range": "192.0.2.9-2001:db8::9"} -> 400 IPv6
		edit $MANY$ONE -> 400 $MOST
		edit {"op": "reservation.add", "network": "net1", "owner": ""} -> 400 owner
		edit {"op": "reservation.add", "network": "net1", "owner": "a//b"} -> 400 a//b
		edit {"op": "reservation.add", "network": "net1", "owner": "a", "wishes": [{"slot": 1}]}
			-> 400 ip0 is missing
		edit {"op": "reservation.add", "network": "net1", "owner": "a", "wishes": [{"slot": 64}]}
			-> 400 ip64
		edit {"op": "reservation.add", "network": "net1", "owner": "a", "for": 60}
			-> 400 the field "for" is a number; it must be a string
		edit {"op": "reservation.add", "network": "net1", "owner": "a", "for": "tomorrow"}
			-> 400 the field "for" is wrong
		edit {"op": "reservation.add", "network": "net1", "owner": "a", "replace": "192.0.2.9"}
			-> 400 the field "replace" is a string; it must be true or false
		edit {"op": "reservation.add", "network": "net1", "owner": "a", "automatic": 1}
			-> 400 the field "automatic" is a number; it must be true or false
		edit {"op": "reservation.add", "network": "net1", "owner": "a", "wishes": [{"slot": 0,
			"family": 5}]} -> 400 5 is not a family
		edit {"op": "address.take", "network": "net1", "owner": "a", "interface": {"number": 1e9}}
			-> 400 interface
		edit {"op": "address.take", "network": "net1", "owner": "a", "interface": {"number": 0,
			"action": "explode"}} -> 400 explode
		POST /v1/subnets/$LAN/available-ips {"owner": "a", "count": -1} -> 400 "count" is -1
		POST /v1/subnets/$LAN/available-ips {"owner": "a", "size": 1} -> 400 no field "size"
		POST /v1/edits [] -> 400 a list; it must be an object
		POST /v1/edits {} -> 400 nothing to change
		POST /v1/edits {"edits": []} -> 400 nothing to change
		edit {} -> 400 no operation ""
		edit null -> 400 null
		edit 7 -> 400 a number
		edit {"op": "pool.explode"} -> 400 no operation "pool.explode"
		edit {"op": "pool.add", "op": "pool.remove"} -> 400 duplicate
		edit {"op": "pool.add", "network": "net1", "rnage": "192.0.2.9"} -> 400 no field "rnage"
		edit {"op": "pool.modify", "network": "net1", "pool": "192.0.2.9"} -> 400 "name" is missing
		POST /v1/edits {"edits": [], "atomic": false} -> 400 no field "atomic"
		edit {"op": "reservation.bind"} -> 400 binds 1 to
		edit {"op": "reservation.bind", "wanted": [{"network": "net1", "owner": "a",
			"ip": "192.0.2.9"}]} -> 400 no field "wanted.0.ip"
		edit {"op": "owner.release"} -> 400 owner
		edit {"op": "owner.release", "owner": "a//b"} -> 400 a//b
		edit {"op": "owner.release", "owner": "a", "all": true} -> 400 no field "all"
	`, "$MOST", fmt.Sprint(ipam.MaxEdits), "$LAN", lan, "$MANY", many, "$ONE", one) {
		if p := into[api.Problem](t, h.play(t, c)); p.Code != api.CodeInvalid || strings.Contains(p.Detail, "\n") {
			t.Errorf("%.100s: %s %q", c.body, p.Code, p.Detail)
		}
	}
	h.play(t, step{method: "POST", target: "/v1/edits", body: " \n", status: 400, has: "empty"})
	h.plays(t, `
		edit {"op": "network.create", "name": "$BAD"} -> 400 not valid JSON
		edit {"op": "owner.release", "owner": "web", "under": "perhaps"}
			-> 400 the field "under" is a string; it must be true or false
		edit {"op": "owner.release", "owner": "web", "replaced": 1}
			-> 400 the field "replaced" is a number; it must be true or false
		edit {"op": "owner.release", "owner": "web", "force": true} -> 400 no field "force"
		POST /v1/edits {"edits": [{"op": "owner.release", "owner": "web"}], "dry_run": "perhaps"}
			-> 400 the field "dry_run" is a string
		POST /v1/edits {"edits": [{"op": "owner.release", "owner": "web"}], "all_refused": true}
			-> 400 only a dry run reports all refusals
		POST /v1/edits {"dry_run": true, "all_refused": true, "edits": [ {"op": "reservation.add",
			"network": "net1", "owner": "web", "wishes": [{"slot": 0, "address": "203.0.113.250"}]},
			{"op": "reservation.add", "network": "nowhere", "owner": "db"}]}
			-> 200 "refused":[{"index":0,"detail":
		edit {"op": "pool.modify", "network": "net1", "pool": "front"} -> 400 "name" is missing
	`, "$BAD", "\xff")
	if after := h.everything(t); !cmp.Equal(before, after) {
		t.Errorf("a refused body changed something: %s", cmp.Diff(before, after))
	}
}

// everything is all that a change can alter, as the API shows it. The last event is the newest.
func (h *harness) everything(t *testing.T) (all []string) {
	t.Helper()
	for _, s := range steps(`
		GET /v1/networks -> 200
		GET /v1/networks/net1 -> 200
		GET /v1/reservations -> 200
		GET /v1/addresses -> 200
		GET /v1/leases -> 200
		GET /v1/events?last=10000 -> 200
	`) {
		all = append(all, h.play(t, s).body)
	}
	return all
}

// TestContentType: a body is uncompressed JSON, so none grows while it is read.
func TestContentType(t *testing.T) {
	h := start(t, nil)
	for kind, status := range map[string]int{
		"application/json": 200, "application/json; charset=utf-8": 200, "Application/JSON": 200,
		"text/plain": 415, "application/x-www-form-urlencoded": 415, "application/json;": 200, "json": 415,
		"application/jsonp": 415, "": 415,
	} {
		s := tried(`{"op": "network.create", "name": "net2"}`)
		s.header = http.Header{"Content-Type": {kind}}
		res, err := h.http.Do(h.request(t, s))
		must(t, err)
		res.Body.Close()
		if res.StatusCode != status {
			t.Errorf("the content type %q: %s, want %d", kind, res.Status, status)
		}
	}
	var packed strings.Builder
	w := gzip.NewWriter(&packed)
	_, err := w.Write([]byte(tried(`{"op": "network.create", "name": "net2"}`).body))
	must(t, errors.Join(err, w.Close()))
	h.play(t, step{method: "POST", target: "/v1/edits", body: packed.String(), status: 400, has: api.CodeInvalid,
		header: http.Header{"Content-Encoding": {"gzip"}}})
}

// A body is read up to the bound and no further.
func TestBodyTooLarge(t *testing.T) {
	h := start(t, nil)
	h.planned(t)
	note := func(size, status int) step {
		s := tried(`{"op": "exclusion.add", "network": "net1", "range": "192.0.2.9", "note": ""}`)
		s.body, s.status = strings.Replace(s.body, `""`, `"`+strings.Repeat("x", size-len(s.body))+`"`, 1), status
		return s
	}
	h.play(t, note(api.MaxBody+1, http.StatusRequestEntityTooLarge))
	if got := h.send(t, note(api.MaxBody, 0)); got.status == http.StatusRequestEntityTooLarge {
		t.Errorf("just the bound: %s", got.body)
	}
	// No memory is reserved for a size that the client only announces.
	req := h.request(t, tried(`{}`))
	req.ContentLength = 1 << 50
	res, err := h.as(&caller{role: api.RoleAdmin}).http.Do(req)
	must(t, err)
	if res.StatusCode != http.StatusBadRequest {
		t.Errorf("a size that is not true: %s", res.Status)
	}
}

// Of several changes all are made or none. The answer names the change that failed.
func TestBulkIsWhole(t *testing.T) {
	h := start(t, nil)
	h.planned(t)
	before := h.everything(t)
	for _, c := range steps(`
		edit {"op": "network.create", "name": "net2"}, {"op": "network.create", "name": "net3"},
			{"op": "network.create", "name": "net2"} -> 409 "index":2
		edit {"op": "pool.add", "network": "net1", "range": "192.0.2.10+5"},
			{"op": "pool.add", "network": "net1", "range": "192.0.2.14"} -> 409 "index":1
		edit {"op": "pool.add", "network": "net1", "range": "192.0.2.10+5"},
			{"op": "pool.add", "network": "net1", "rnage": "192.0.2.24"},
			{"op": "pool.add", "network": "net1", "range": "192.0.2.34"} -> 400 "index":1
		edit {"op": "pool.add", "network": "net1", "range": "192.0.2.10+5"},
			{"op": "pool.add", "network": "net1", "range": 24} -> 400 "index":1
		edit {"op": "network.remove", "network": "net1"}, {"op": "network.remove", "network": "net1"}
			-> 404 "index":1
		edit {"op": "reservation.add", "network": "net1", "owner": "web",
			"wishes": [{"slot": 0, "address": "192.0.2.9"}]}, {"op": "address.take", "network": "net1",
			"owner": "vm", "interface": {"number": 0, "wishes": [{"slot": 0, "address": "192.0.2.9"}]}}
			-> 409 "index":1
		edit {"op": "network.explode"}, {"op": "network.remove", "network": "net1"} -> 400 "index":0
		# A change that is alone has no index.
		edit {"op": "network.create", "name": "net1"} -> 409 without "index"
	`) {
		h.play(t, c)
		if after := h.everything(t); !cmp.Equal(before, after) {
			t.Fatalf("%s was refused and changed something: %s", c.body, cmp.Diff(before, after))
		}
	}
	edits := make([]ipam.Edit, ipam.MaxEdits)
	for i := range edits {
		edits[i] = &ipam.CreateNetwork{Name: fmt.Sprintf("many%03d", i)}
	}
	if _, err := h.client.Edit(t.Context(), client.EditOptions{DryRun: true}, edits...); err != nil {
		t.Errorf("as many as there may be: %v", err)
	}
	if after := h.everything(t); !cmp.Equal(before, after) {
		t.Errorf("a dry run changed something: %s", cmp.Diff(before, after))
	}
	_, err := h.client.Edit(t.Context(), client.EditOptions{}, append(edits, &ipam.CreateNetwork{Name: "more"})...)
	if code(err) != api.CodeInvalid {
		t.Errorf("one more: %v", err)
	}
	out, err := h.client.Edit(t.Context(), client.EditOptions{}, edits...)
	must(t, err)
	if len(out.Results) != len(edits) || out.Revision == 0 {
		t.Errorf("%d results, revision %d", len(out.Results), out.Revision)
	}
}

// A full disk and a change of unknown outcome each have their own answer.
func TestChangeOfUnknownOutcome(t *testing.T) {
	h, faulty := startFaulty(t)
	faulty.Next(storetest.Fault{Before: store.ErrNoSpace})
	h.plays(t, `edit {"op": "network.create", "name": "net2"} -> 507 no_space`)
	faulty.Next(storetest.Fault{After: store.ErrUnknown})
	h.plays(t, `edit {"op": "network.create", "name": "net2"} -> 503 unknown_outcome`)
}
