package admin

import (
	"net/http"
	"strings"
	"testing"

	"berth/internal/admin/api"
)

// TestElasticAsDescribed asks each operation of elastic addresses, and holds request and answer to the description
// (CS-1 to CS-6).
func TestElasticAsDescribed(t *testing.T) {
	h := start(t, nil)
	router, _ := h.planned(t)
	released := `"state":"releasing"` // the edge has said that it maps it
	if overTwo {
		released = `"state":"free"` // with a shared store it says so in a session, which it has not
	}
	for _, s := range []step{
		made(`{"op": "network.create", "name": "net3", "space": "lab",
			"subnets": [{"cidr": "192.0.2.0/24", "pool": true}]}`,
			200, `"network.create"`),
		made(`{"op": "network.modify", "network": "net3", "elastic": "on"}`, 200, `"network.modify"`),
		made(`{"op": "network.modify", "network": "net3", "elastic": "perhaps"}`, 400, api.CodeInvalid),
		made(`{"op": "reservation.add", "network": "net3", "owner": "web",
			"wishes": [{"slot": 0, "address": "192.0.2.11"}]}`,
			200, `"addresses":["192.0.2.11"]`),
		made(`{"op": "account.create", "account": "shop", "owners": ["shop/*"], "quota": 3, "domain": "example.org"}`,
			200,
			`"account.create"`),
		made(`{"op": "account.create", "account": "shop"}`, 409, `"reason":"AccountInUse"`),
		made(`{"op": "elastic.range.add", "range": "203.0.113.10+20", "announce": "eth0", "ttl": "5s",
			"on_cut": "keep"}`, 200,
			`"elastic.range.add"`),
		made(`{"op": "elastic.range.add", "range": "203.0.113.12"}`, 409, `"reason":"ElasticRangeOverlap"`),
		made(`{"op": "elastic.allocate"}`, 200, `"addresses":["203.0.113.10"]`),
		made(`{"op": "elastic.allocate", "account": "shop", "address": "203.0.113.12"}`, 200, `"203.0.113.12"`),
		made(`{"op": "elastic.associate", "address": "203.0.113.10", "instance": "web", "egress_only": true}`, 200,
			`"elastic.associate"`),
		made(`{"op": "elastic.associate", "address": "203.0.113.12", "instance": "web"}`, 409,
			`"reason":"ElasticOtherAccount"`),
		made(`{"op": "elastic.release", "address": "203.0.113.10"}`, 409, `"reason":"ElasticAddressAssociated"`),
		{"GET", "/v1/accounts", "", 200, `"name":"default"`, nil},
		{"GET", "/v1/elastic", "", 200, `"instance":"web"`, nil},
		{"GET", "/v1/elastic?account=shop", "", 200, `"domain":"example.org"`, nil},
		{"GET", "/v1/elastic?account=nobody", "", 404, api.CodeNotFound, nil},
		{"GET", "/v1/elastic?limit=1", "", 200, `"next":"`, nil},
		{"GET", "/v1/elastic/ranges", "", 200, `"announce":"eth0"`, nil},
		{"GET", "/v1/elastic/usage", "", 200, `"account":"shop","domain":"example.org","addresses":1`, nil},
		{"GET", "/v1/elastic/usage?since=2020-01-01T00:00:00Z&until=2021-01-01T00:00:00Z", "", 200, `"known_since":"`, nil},
		{"GET", "/v1/elastic/usage?since=yesterday", "", 400, api.CodeInvalid, nil},
		{"GET", "/v1/elastic/usage?since=2021-01-01T00:00:00Z&until=2020-01-01T00:00:00Z", "", 400, api.CodeInvalid, nil},
		{"GET", "/v1/elastic/203.0.113.11", "", 200, `"state":"free"`, nil},
		{"GET", "/v1/elastic/192.0.2.1", "", 404, api.CodeNotFound, nil},
		{"GET", "/v1/elastic/web", "", 400, api.CodeInvalid, nil},
		{"GET", "/v1/edge/status", "", 200, `"connected":0`, nil},
		{"POST", "/v1/edge", `{"whole": true, "applied": [{"address": "203.0.113.10", "association": 1, "guest": "192.0.2.11"}]}`,
			200, `"ok"`, nil},
		made(`{"op": "elastic.disassociate", "address": "203.0.113.10"}`, 200, `"elastic.disassociate"`),
		made(`{"op": "elastic.release", "address": "203.0.113.10"}`, 200, `"elastic.release"`),
		{"GET", "/v1/elastic/203.0.113.10", "", 200, released, nil},
		{"POST", "/v1/edge", `{"withdrawn": [{"address": "203.0.113.10"}]}`, 200, `"ok"`, nil},
		{"GET", "/v1/elastic/203.0.113.10", "", 200, `"state":"free"`, nil},
		{"POST", "/v1/edge", `{"applied": [{}]}`, 400, api.CodeInvalid, nil},
		made(`{"op": "elastic.range.remove", "range": "203.0.113.10+20"}`, 409, `"reason":"ElasticRangeInUse"`),
		made(`{"op": "account.remove", "account": "shop", "force": true}`, 200, `"account.remove"`),
		made(`{"op": "elastic.range.remove", "range": "203.0.113.10+20"}`, 200, `"elastic.range.remove"`),
	} {
		h.play(t, router, s)
	}
}

// TestEdgeNews: an edge is told the whole, then each change, and counts as connected while it listens.
func TestEdgeNews(t *testing.T) {
	h := start(t, nil)
	router, _ := h.planned(t)
	res, err := h.open(t.Context(), http.MethodGet, "/v1/edge", http.NoBody)
	must(t, err)
	defer res.Body.Close()
	if got := string(readLines(t, res.Body, 1)[0]); !strings.Contains(got, `"whole":true`) {
		t.Fatalf("the first line is %s", got)
	}
	h.play(t, router, step{"GET", "/v1/edge/status", "", 200, `"connected":1`, nil})
	h.play(t, router, made(`{"op": "elastic.range.add", "range": "203.0.113.10"},
		{"op": "network.modify", "network": "net1", "elastic": "on"},
		{"op": "reservation.add", "network": "net1", "owner": "web", "wishes": [{"slot": 0, "address": "192.0.2.11"}]},
		{"op": "elastic.allocate"},
		{"op": "elastic.associate", "address": "203.0.113.10", "instance": "web"}`, 200, `"elastic.associate"`))
	got := string(readLines(t, res.Body, 1)[0])
	for _, want := range []string{`"ranged":true`, `"elastic":"203.0.113.10"`, `"guest":"192.0.2.11"`,
		`"staged":true`} {
		if !strings.Contains(got, want) {
			t.Errorf("what changed is told without %s: %s", want, got)
		}
	}
	h.play(t, router, made(`{"op": "elastic.disassociate", "address": "203.0.113.10"}`, 200, `"elastic.disassociate"`))
	if got := string(readLines(t, res.Body, 1)[0]); !strings.Contains(got, `"removed":["203.0.113.10"]`) {
		t.Errorf("what ended is told as %s", got)
	}
}
