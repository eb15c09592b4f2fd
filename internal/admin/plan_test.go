package admin

import (
	"encoding/json"
	"io"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"berth/internal/admin/api"
	"berth/internal/ipam"

	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
)

// step is one request and what it is to be answered.
type step struct {
	method, target, body string
	status               int
	has                  string            // in the answer's body
	header               map[string]string // of the request
}

// made is a change, of one edit or of several, and tried one that is only looked at.
func made(edits string, status int, has string) step {
	return step{method: "POST", target: "/v1/edits", body: `{"edits": [` + edits + `]}`, status: status, has: has}
}

func tried(edits string, status int, has string) step {
	return step{method: "POST", target: "/v1/edits", body: `{"dry_run": true, "edits": [` + edits + `]}`,
		status: status, has: has}
}

// with is the step with a header.
func (s step) with(name, value string) step {
	s.header = map[string]string{name: value}
	return s
}

// answered is what came back.
type answered struct {
	status int
	header http.Header
	body   string
}

// outcome reads the answer to a change.
func (a answered) outcome(t *testing.T) (out ipam.Outcome) {
	t.Helper()
	must(t, json.Unmarshal([]byte(a.body), &out))
	return out
}

// problem reads a refusal.
func (a answered) problem(t *testing.T) (p api.Problem) {
	t.Helper()
	must(t, json.Unmarshal([]byte(a.body), &p))
	return p
}

// send sends a request with JSON and holds its answer to the description, and the request too where it succeeds.
func (h *house) send(t *testing.T, router routers.Router, s step) answered {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), s.method, "http://berth"+s.target, strings.NewReader(s.body))
	must(t, err)
	if s.body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	for name, value := range s.header {
		req.Header.Set(name, value)
	}
	route, params, err := router.FindRoute(req)
	must(t, err)
	in := &openapi3filter.RequestValidationInput{Request: req, PathParams: params, Route: route, Options: asSent}
	res, err := h.http.Do(req)
	must(t, err)
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	must(t, err)
	if res.StatusCode < 300 {
		req.Body = io.NopCloser(strings.NewReader(s.body))
		if err := openapi3filter.ValidateRequest(t.Context(), in); err != nil {
			t.Errorf("the request is not as described, and was answered: %v", err)
		}
	}
	h.validate(t, in, res, body)
	if refused, problem := res.StatusCode >= 400,
		res.Header.Get("Content-Type") == "application/problem+json"; refused != problem {
		t.Errorf("status %d with the content type %q", res.StatusCode, res.Header.Get("Content-Type"))
	}
	return answered{res.StatusCode, res.Header, string(body)}
}

// play sends a request and holds its answer to what the step says.
func (h *house) play(t *testing.T, router routers.Router, s step) answered {
	t.Helper()
	got := h.send(t, router, s)
	if got.status != s.status || !strings.Contains(got.body, s.has) {
		t.Fatalf("%s %s %s: status %d, want %d with %s: %s", s.method, s.target, s.body, got.status, s.status, s.has,
			got.body)
	}
	return got
}

// planned makes a network to work in, and returns its router and the id of its first subnet.
func (h *house) planned(t *testing.T) (routers.Router, string) {
	t.Helper()
	_, router := description(t)
	made := h.play(t, router, made(`{"op": "network.create", "name": "net1", "tags": {"site": "a"}, "subnets": [
		{"cidr": "192.0.2.0/24", "gateway": "192.0.2.1", "name": "lan"}, {"cidr": "2001:db8::/64", "pool": true}]}`, 200, ""))
	if made.header.Get("ETag") == "" {
		t.Error("the answer to a change has no ETag")
	}
	n, err := h.client.Network(t.Context(), "net1")
	must(t, err)
	return router, n.Subnets[0].ID.String()
}

// edgeOf answers probes as an edge does on whose LAN behind eth0 somebody has 192.0.2.62.
func edgeOf(t *testing.T, h *house) {
	t.Helper()
	go func() {
		there := netip.MustParseAddr("192.0.2.62")
		for ask := range h.server.cfg.LAN.Asks(t.Context()) {
			a := ipam.LANAnswer{ID: ask.ID}
			if ask.Parent != "eth0" {
				a.Failure, a.Error = ipam.LANParent, "no such interface"
			} else if slices.Contains(ask.Addresses, there) {
				a.Answered = []ipam.LANNeighbour{{Address: there, MAC: ipam.MAC{2, 0, 0, 0, 0, 1}}}
			}
			h.server.cfg.LAN.Answer(a)
		}
	}()
}

// TestPlanAsDescribed plays a life of a network through every operation of the plan, and what each of them refuses.
func TestPlanAsDescribed(t *testing.T) {
	h := start(t, nil)
	router, lan := h.planned(t)
	edgeOf(t, h)
	played := map[string]bool{}
	const net1 = "/v1/networks/net1"
	nobody := ipam.NewID().String()
	for _, s := range []step{
		made(`{"op": "network.create", "name": "flat", "subnets": [{"cidr": "10.7.0.0/24", "pool": true}]},
			{"op": "network.create", "name": "wire"}`, 200, `"network.create"`),
		tried(`{"op": "network.create", "name": "net9"}`, 200, `"id":0`),
		made(`{"op": "network.create", "name": "net1"}`, 409, api.CodeInUse),
		made(`{"op": "network.create", "name": "pool"}`, 400, api.CodeInvalid),
		made(`{"op": "network.create", "name": "over", "subnets": [{"cidr": "192.0.2.128/25"}]}`, 409, api.CodeOverlap),
		{"GET", "/v1/networks", "", 200, `"name":"wire"`, nil},
		{"GET", "/v1/networks?space=global", "", 200, `"networks":[]`, nil},
		{"GET", "/v1/networks?space=nowhere", "", 404, api.CodeNotFound, nil},
		{"GET", net1, "", 200, `"cidr":"192.0.2.0/24"`, nil},
		{"GET", "/v1/networks/net9", "", 404, api.CodeNotFound, nil},
		made(`{"op": "network.modify", "network": "net1", "tags": {"site": null, "team": "blue"}, "quarantine": "10m",
			"sticky": false}`, 200, `"network.modify"`),
		made(`{"op": "network.modify", "network": "net1", "quarantine": "soon"}`, 400, `quarantine`),
		made(`{"op": "network.modify", "network": "net9", "name": "net8"}`, 404, api.CodeNotFound),

		made(`{"op": "subnet.add", "network": "net1", "bits": 26, "from": "198.51.100.0/24", "name": "old"}`, 200,
			`"cidr":"198.51.100.0/26"`),
		tried(`{"op": "subnet.add", "network": "net1", "cidr": "203.0.113.0/25"},
			{"op": "subnet.add", "network": "net1", "cidr": "203.0.113.128/25"}`, 200, `203.0.113.128/25`),
		made(`{"op": "subnet.add", "network": "net1", "cidr": "203.0.113.0/25"},
			{"op": "subnet.add", "network": "net1", "cidr": "203.0.113.64/26"}`, 409, `"index":1`),
		{"GET", net1 + "/subnets", "", 200, `"name":"old"`, nil},
		{"GET", "/v1/networks/wire/subnets", "", 200, `"subnets":[]`, nil},
		{"GET", "/v1/networks/net9/subnets", "", 404, api.CodeNotFound, nil},
		made(`{"op": "subnet.modify", "network": "net1", "subnet": "old", "cidr": "198.51.100.0/25",
			"gateway": "198.51.100.1", "dhcp": true, "name": ""}`, 200, `"subnet.modify"`),
		made(`{"op": "subnet.modify", "network": "net1", "subnet": "198.51.100.0/25", "gateway": ""}`, 200,
			`"revision"`),
		made(`{"op": "subnet.modify", "network": "net1", "subnet": "nothing", "dhcp": false}`, 404, api.CodeNotFound),
		tried(`{"op": "subnet.remove", "network": "net1", "subnet": "198.51.100.0/25"}`, 200, `"subnet.remove"`),
		made(`{"op": "subnet.remove", "network": "net1", "subnet": "198.51.100.0/25"}`, 200, `"subnet.remove"`),
		made(`{"op": "subnet.remove", "network": "net1", "subnet": "198.51.100.0/25"}`, 404, api.CodeNotFound),

		made(`{"op": "pool.add", "network": "net1", "range": "192.0.2.10-192.0.2.100", "name": "pool1"},
			{"op": "pool.add", "network": "net1", "range": "192.0.2.128/26"}`, 200, `"pool.add"`),
		made(`{"op": "pool.add", "network": "net1", "range": "192.0.2.50+3"}`, 409, api.CodeOverlap),
		made(`{"op": "pool.add", "network": "net1", "range": "192.0.2.50-192.0.2.40"}`, 400, `reversed`),
		{"GET", net1 + "/pools", "", 200, `"map":"........`, nil},
		{"GET", "/v1/networks/net9/pools", "", 404, api.CodeNotFound, nil},
		made(`{"op": "pool.modify", "network": "net1", "pool": "pool1", "name": "front"}`, 200, `"pool.modify"`),
		made(`{"op": "pool.modify", "network": "net1", "pool": "192.0.2.128/26", "name": "back"}`, 200,
			`"pool.modify"`),
		made(`{"op": "pool.modify", "network": "net1", "pool": "pool1", "name": "front"}`, 404, api.CodeNotFound),
		made(`{"op": "pool.remove", "network": "net1", "pool": "192.0.2.20-192.0.2.50"}`, 200, `"pool.remove"`),
		tried(`{"op": "pool.remove", "network": "net1", "pool": "back"}`, 200, `"pool.remove"`),
		made(`{"op": "pool.remove", "network": "net1", "pool": "back"}`, 200, `"pool.remove"`),
		made(`{"op": "pool.remove", "network": "net1", "pool": "back"}`, 404, api.CodeNotFound),

		made(`{"op": "exclusion.add", "network": "net1", "range": "192.0.2.60+5", "note": "printers"},
			{"op": "exclusion.add", "network": "net1", "range": "192.0.2.200"}`, 200, `"exclusion.add"`),
		made(`{"op": "exclusion.add", "network": "net1", "range": "192.0.2.62"}`, 409, api.CodeOverlap),
		{"GET", net1 + "/exclusions", "", 200, `"note":"printers"`, nil},
		{"GET", "/v1/networks/wire/exclusions", "", 200, `"exclusions":[]`, nil},
		{"POST", net1 + "/scan?parent=eth0", "", 200, `"mac":"02:00:00:00:00:01","state":"excluded","note":"printers"`, nil},
		{"POST", net1 + "/scan", "", 400, api.CodeInvalid, nil},
		{"POST", net1 + "/scan?parent=eth7", "", 503, "no such interface", nil},
		{"POST", "/v1/networks/net9/scan?parent=eth0", "", 404, api.CodeNotFound, nil},
		made(`{"op": "exclusion.remove", "network": "net1", "range": "192.0.2.200"}`, 200, `"exclusion.remove"`),
		made(`{"op": "exclusion.remove", "network": "net1", "range": "192.0.2.62+1"}`, 200, `"exclusion.remove"`),
		made(`{"op": "exclusion.remove", "network": "net1", "range": "192.0.2.0/33"}`, 400, api.CodeInvalid),
		{"GET", net1 + "/exclusions", "", 200, `"end":"192.0.2.61"`, nil},

		made(`{"op": "reservation.add", "network": "net1", "owner": "shop/web/1",
			"wishes": [{"slot": 0, "address": "192.0.2.11"}]}`, 200, `"addresses":["192.0.2.11"]`),
		made(`{"op": "reservation.add", "network": "net1", "owner": "db", "wishes": [{"slot": 0, "pool": "front"}]},
			{"op": "reservation.add", "network": "net1", "owner": "cache"}`, 200, `"reservation.add"`),
		made(`{"op": "reservation.add", "network": "net1", "owner": "other",
			"wishes": [{"slot": 0, "address": "192.0.2.11"}]}`, 409, api.CodeInUse),
		made(`{"op": "reservation.add", "network": "net1", "owner": "other",
			"wishes": [{"slot": 0, "address": "192.0.2.60"}]}`, 409, `exclu`),
		{"GET", net1 + "/reservations", "", 200, `"owner":"cache"`, nil},
		{"GET", net1 + "/reservations?owner=shop/web/1", "", 200, `"address":"192.0.2.11"`, nil},
		{"GET", net1 + "/reservations?owner=nobody", "", 200, `"reservations":[]`, nil},
		{"GET", "/v1/reservations", "", 200, `"space":"local"`, nil},
		{"GET", "/v1/networks/net9/reservations", "", 404, api.CodeNotFound, nil},
		made(`{"op": "reservation.remove", "network": "net1", "owner": "db", "address": "192.0.2.1111"}`, 400,
			api.CodeInvalid),
		made(`{"op": "reservation.remove", "network": "net1", "owner": "cache"}`, 200, `"reservation.remove"`),
		made(`{"op": "reservation.remove", "network": "net1", "owner": "shop/web/1", "address": "192.0.2.11"}`, 200,
			`"reservation.remove"`),
		{"GET", net1 + "/reservations?owner=shop/web/1", "", 200, `"reservations":[]`, nil},

		made(`{"op": "reservation.add", "network": "net1", "owner": "shop/tmp/1"}`, 200, `"reservation.add"`),
		tried(`{"op": "owner.release", "owner": "shop/tmp/1"}`, 200, `"reservation.remove"`),
		made(`{"op": "owner.release", "owner": "shop/tmp/1", "replaced": true}`, 200, `"changes":[]`),
		made(`{"op": "owner.release", "owner": "shop/tmp", "under": true}`, 200, `"reservation.remove"`),
		made(`{"op": "owner.release", "owner": "shop/tmp/1"}`, 200, `"changes":[]`),

		made(`{"op": "address.take", "network": "net1", "owner": "rtr",
			"interface": {"number": 0, "wishes": [{"slot": 0}, {"slot": 1, "pool": "front"}, {"slot": 2,
			"address": "192.0.2.250"}]}}`, 200, `"192.0.2.250"`),
		made(`{"op": "address.take", "network": "net1", "owner": "vm",
			"interface": {"number": 0, "wishes": [{"slot": 0, "address": "192.0.2.250"}]}}`, 409, api.CodeInUse),
		made(`{"op": "address.take", "network": "net1", "owner": "vm",
			"interface": {"number": 0, "wishes": [{"slot": 1}]}}`, 400, `ip0 is missing`),
		{"GET", net1 + "/addresses", "", 200, `"owner":"rtr"`, nil},
		{"GET", "/v1/addresses?owner=rtr&limit=2", "", 200, `"next":"`, nil},
		{"GET", "/v1/networks/net9/addresses", "", 404, api.CodeNotFound, nil},
		{"GET", net1 + "/env/rtr", "", 200, `=192.0.2.250"`, nil},
		{"GET", net1 + "/env/nobody", "", 404, api.CodeNotFound, nil},
		made(`{"op": "address.release", "network": "net1", "owner": "rtr", "address": "192.0.2.250"}`, 200,
			`"192.0.2.250"`),
		tried(`{"op": "address.release", "network": "net1", "owner": "rtr"}`, 200, `"lease.release"`),
		made(`{"op": "address.release", "network": "net1", "owner": "rtr"}`, 200, `"lease.release"`),
		{"GET", net1 + "/addresses", "", 200, `"addresses":[]`, nil},

		{"GET", "/v1/subnets/" + lan, "", 200, `"name":"lan"`, nil},
		{"GET", "/v1/subnets/" + nobody, "", 404, api.CodeNotFound, nil},
		{"GET", "/v1/subnets/10.7.0.0%2F24", "", 400, api.CodeInvalid, nil},
		{"GET", "/v1/subnets/" + lan + "/available-ips", "", 200, `"addresses":["192.0.2.1`, nil},
		{"GET", "/v1/subnets/" + lan + "/available-ips?limit=2", "", 200, `"addresses":["192.0.2.1`, nil},
		{"GET", "/v1/subnets/" + nobody + "/available-ips", "", 404, api.CodeNotFound, nil},
		{"GET", "/v1/subnets/" + lan + "/available-ips?limit=0", "", 400, api.CodeInvalid, nil},
		{"GET", net1 + "/free", "", 200, `"free":[{"space":`, nil},
		{"GET", net1 + "/free?subnet=192.0.2.0%2F24&limit=1", "", 200, `"subnet":"192.0.2.0/24"`, nil},
		{"GET", net1 + "/free?pool=nothing", "", 404, `no pool \"nothing\"`, nil},
		{"GET", "/v1/networks/net9/free", "", 404, api.CodeNotFound, nil},
		{"GET", net1 + "/free/next", "", 200, `"addresses":1}`, nil},
		{"GET", net1 + "/free/next?subnet=nothing", "", 400, api.CodeInvalid, nil},
		{"POST", "/v1/subnets/" + lan + "/available-ips", `{"owner": "vm"}`, 200, `"addresses":["192.0.2.1`, nil},
		{"POST", "/v1/subnets/" + lan + "/available-ips",
			`[{"owner": "vm", "count": 2, "pool": "front"}, {"owner": "vm"}]`, 200, `"addresses":["192.0.2.1`, nil},
		{"POST", "/v1/subnets/" + lan + "/available-ips", `{"owner": "vm", "count": 65}`, 400, `1 to 64`, nil},
		{"POST", "/v1/subnets/" + lan + "/available-ips", `{"owner": "vm", "count": 0}`, 400, `1 to 64`, nil},
		{"POST", "/v1/subnets/" + lan + "/available-ips", `{"owner": "vm", "pool": "nothing"}`, 404, api.CodeNotFound,
			nil},
		{"POST", "/v1/subnets/" + nobody + "/available-ips", `{"owner": "vm"}`, 404, api.CodeNotFound, nil},

		made(`{"op": "pool.add", "network": "wire", "range": "192.0.2.1"}`, 400, api.CodeInvalid),
		tried(`{"op": "network.modify", "network": "net1", "name": "net2"}`, 200, `"network.modify"`),
		made(`{"op": "network.modify", "network": "net1", "name": "net2"}, {"network": "net2", "op": "address.release", "owner": "vm"},
			{"op": "network.modify", "network": "net2", "name": "net1"}`, 200, `"lease.release"`),

		made(`{"op": "network.remove", "network": "net1"}`, 409, api.CodeInUse),
		tried(`{"op": "network.remove", "network": "net1", "force": true}`, 200, `"network.remove"`),
		made(`{"op": "network.remove", "network": "net1", "force": true}`, 200, `"network.remove"`),
		made(`{"op": "network.remove", "network": "net1"}`, 404, api.CodeNotFound),
	} {
		h.play(t, router, s)
		req, err := http.NewRequest(s.method, "http://berth"+s.target, http.NoBody)
		must(t, err)
		route, _, err := router.FindRoute(req)
		must(t, err)
		if s.status == http.StatusOK {
			played[s.method+" "+route.Path] = true
		}
	}
	for _, r := range h.server.planRoutes() {
		if !played[r.Method+" "+r.Path] {
			t.Errorf("%s %s was not played", r.Method, r.Path)
		}
	}
	if problems, err := h.service.Check(t.Context()); err != nil || len(problems) > 0 {
		t.Errorf("fsck: %q, %v", problems, err)
	}
}

// TestOwnersAsDescribed plays what belongs to owners: types of networks, rules, static bands, changes of addresses
// (BO-8 to BO-13).
func TestOwnersAsDescribed(t *testing.T) {
	h := start(t, nil)
	router, _ := h.planned(t)
	const net1 = "/v1/networks/net1"
	for _, s := range []step{
		made(`{"op": "network.create", "name": "vips", "type": "vip", "subnets": [{"cidr": "203.0.113.0/28"}]}, {"op": "network.create", "name": "lab", "type": "dynamic"},
			{"op": "network.create", "name": "front", "type": "manual", "static": ["10.8.0.8-10.8.0.15"], "owner_rules": [{"pattern": "web-*", "owner": "shop/web/*", "pool": "web"}],
			"subnets": [{"cidr": "10.8.0.0/24", "pool": true}]}`, 200, `"network.create"`),
		{"GET", "/v1/networks/vips", "", 200, `"type":"vip","static":[],"owner_rules":[]`, nil},
		{"GET", "/v1/networks/front", "", 200,
			`"type":"manual","static":["10.8.0.8/29"],"owner_rules":[{"pattern":"web-*","owner":"shop/web/*","pool":"web"}]`, nil},
		{"GET", "/v1/networks", "", 200, `"type":"dynamic"`, nil},
		{"GET", "/v1/subnets", "", 200, `"static":["10.8.0.8/29"]`, nil},
		made(`{"op": "network.modify", "network": "net1", "static": ["192.0.2.8+8", "192.0.2.32/28"],
			"owner_rules": [{"pattern": "db", "pool": "back"}, {"pattern": "x-*",
			"owner": "x/*"}]}`, 200, `"network.modify"`),
		made(`{"op": "network.modify", "network": "net1", "owner_rules": [{"pattern": "db"}]}`, 200,
			`"network.modify"`),
		{"GET", net1, "", 200,
			`"static":["192.0.2.8/29","192.0.2.32/28"],"owner_rules":[{"pattern":"x-*","owner":"x/*"}]`, nil},
		made(`{"op": "network.modify", "network": "net1", "static": ["198.51.100.8"]}`, 400,
			`"reason":"NetworkStaticIpOutOfRange"`),
		made(`{"op": "network.modify", "network": "net1", "static": []}`, 200, `"network.modify"`),
		{"GET", net1, "", 200, `"static":[]`, nil},

		made(`{"op": "reservation.add", "network": "net1", "owner": "shop/web/1",
			"wishes": [{"slot": 0, "address": "192.0.2.11"}], "automatic": true}`, 200, `"addresses":["192.0.2.11"]`),
		{"GET", net1 + "/reservations", "", 200, `"kind":"automatic"`, nil},
		made(`{"op": "reservation.add", "network": "net1", "owner": "shop/web/1",
			"wishes": [{"slot": 0, "address": "192.0.2.12"}]}`, 409, `"reason":"NetworkReservationAlreadyExists"`),
		made(`{"op": "reservation.add", "network": "net1", "owner": "shop/web/1",
			"wishes": [{"slot": 0, "address": "192.0.2.12"}], "replace": true}`, 200, `"reservation.modify"`),
		{"GET", net1 + "/reservations", "", 200, `"replaced":true`, nil},
		made(`{"op": "reservation.add", "network": "net1", "owner": "batch/1", "wishes": [{"slot": 0, "family": 6}],
			"for": "1h"}`, 200, `"2001:db8::1"`),
		{"GET", net1 + "/reservations?owner=batch/1", "", 200, `"until":"`, nil},
		made(`{"op": "reservation.add", "network": "net1", "owner": "a",
			"wishes": [{"slot": 0, "address": "192.0.2.77"}]}, {"op": "reservation.add", "network": "net1", "owner": "b",
			"wishes": [{"slot": 0, "address": "192.0.2.77"}]}`, 409,
			`"detail":"NetworkReservationAlreadyInUse: `),
		made(`{"op": "reservation.add", "network": "net1", "owner": "a",
			"wishes": [{"slot": 0, "address": "192.0.2.77"}]}, {"op": "reservation.add", "network": "net1", "owner": "b",
			"wishes": [{"slot": 0, "address": "192.0.2.77"}]}`, 409,
			`"reason":"NetworkReservationAlreadyInUse","index":1`),
		made(`{"op": "reservation.add", "network": "net1", "owner": "a",
			"wishes": [{"slot": 0, "address": "198.51.100.7"}]}`, 400, `"reason":"NetworkReservationIpOutsideSubnet"`),
		made(`{"op": "reservation.add", "network": "vips", "owner": "a"}`, 400,
			`"reason":"NetworkReservationWrongType"`),
		made(`{"op": "reservation.add", "network": "lab", "owner": "a"}, {"op": "reservation.add", "network": "lab",
			"owner": "b", "for": "90m"}`, 200, `"reservation.add"`),
		{"GET", "/v1/networks/lab/reservations", "", 200, `"owner":"a","address":"","kind":"automatic"`, nil},

		made(`{"op": "reservation.bind", "wanted": [{"network": "net1", "owner": "shop/web/1", "wishes": [{"slot": 0, "address": "192.0.2.11"}]},
			{"network": "front", "owner": "shop/db/1", "for": "24h"}]}`, 200, `"reservation.modify"`),
		made(`{"op": "reservation.bind", "wanted": [{"network": "net1", "owner": "a"}, {"network": "net1",
			"owner": "a"}]}`, 400,
			`"reason":"NetworkReservationAlreadyExists"`),
		made(`{"op": "owner.release", "owner": "shop/web/1", "replaced": true}`, 200, `"changes":[]`),
		tried(`{"op": "owner.release", "owner": "shop/web", "under": true}`, 200, `"reservation.remove"`),
		made(`{"op": "owner.release", "owner": "shop", "under": true}`, 200, `"192.0.2.11"`),
		made(`{"op": "owner.release", "owner": "b"}`, 200, `"reservation.remove"`),
		{"GET", "/v1/reservations?owner=shop/web/1", "", 200, `"reservations":[]`, nil},
	} {
		h.play(t, router, s)
	}
	if problems, err := h.service.Check(t.Context()); err != nil || len(problems) > 0 {
		t.Errorf("fsck: %q, %v", problems, err)
	}
}

// A release of an owner happens once, however often it is sent.
func TestReleaseOwnerOnce(t *testing.T) {
	h := start(t, nil)
	router, _ := h.planned(t)
	reserve := made(`{"op": "reservation.add", "network": "net1", "owner": "web"}`, 200, `"reservation.add"`)
	release := step{"POST", "/v1/edits", `{"edits": [{"op": "owner.release", "owner": "web"}]}`, 200,
		`"reservation.remove"`, map[string]string{api.KeyHeader: "k1"}}
	h.play(t, router, reserve)
	first := h.play(t, router, release)
	h.play(t, router, reserve)
	if again := h.play(t, router, release); again.header.Get(replayedHeader) != "true" ||
		!slices.Equal(first.outcome(t).Results[0].Addresses, again.outcome(t).Results[0].Addresses) {
		t.Errorf("first %s, again %s", first.body, again.body)
	}
	h.play(t, router, step{"GET", "/v1/reservations", "", 200, `"owner":"web"`, nil})
}

// What the next address is, and for whom, in the order of the answers.
func TestTakeNext(t *testing.T) {
	h := start(t, nil)
	router, lan := h.planned(t)
	h.play(t, router, made(`{"op": "pool.add", "network": "net1", "range": "192.0.2.10+4", "name": "small"}`, 200, ""))
	take := func(body string, status int) answered {
		t.Helper()
		return h.play(t, router,
			step{method: "POST", target: "/v1/subnets/" + lan + "/available-ips", body: body, status: status})
	}
	free := h.play(t, router, step{method: "GET", target: "/v1/subnets/" + lan + "/available-ips", status: 200})
	if want := `{"addresses":["192.0.2.10","192.0.2.11","192.0.2.12","192.0.2.13"]}` + "\n"; free.body != want {
		t.Errorf("free are %s, want %s", free.body, want)
	}
	got := take(`[{"owner": "vm", "count": 2}, {"owner": "vm"}]`, 200).outcome(t)
	var addrs []string
	for _, r := range got.Results {
		if r.Subnet.String() != lan || r.CIDR != netip.MustParsePrefix("192.0.2.0/24") {
			t.Errorf("the answer is about %s %s", r.Subnet, r.CIDR)
		}
		for _, a := range r.Addresses {
			addrs = append(addrs, a.String())
		}
	}
	if want := []string{"192.0.2.10", "192.0.2.11", "192.0.2.12"}; !slices.Equal(addrs, want) {
		t.Errorf("taken were %q, want %q", addrs, want)
	}
	// There is one left, and two are wanted: neither is taken, though the IPv6 subnet has room.
	if p := take(`{"owner": "vm", "count": 2}`, 409).problem(t); p.Code != api.CodeExhausted {
		t.Errorf("two of one: %+v", p)
	}
	taken, err := h.client.Addresses(t.Context(), "net1", "vm")
	must(t, err)
	var slots []string
	for _, a := range taken {
		slots = append(slots, ipam.Slot{Interface: uint8(a.Interface), Number: uint8(a.Slot)}.String())
	}
	if want := []string{"0:ip0", "0:ip1", "1:ip0"}; !slices.Equal(slots, want) {
		t.Errorf("the interfaces are %q, want %q", slots, want)
	}
}
