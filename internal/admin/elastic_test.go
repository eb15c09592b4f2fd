package admin

import (
	"strings"
	"testing"
)

// TestElasticAsDescribed calls each operation on elastic addresses, and compares request and answer with the
// description (CS-1 to CS-6).
func TestElasticAsDescribed(t *testing.T) {
	h := start(t, nil)
	h.planned(t)
	released := `"state":"releasing"` // the edge has reported that it maps the address
	if overTwo {
		released = `"state":"free"` // with a shared store the edge reports in a session, and here it has none
	}
	h.plays(t, `
		edit {"op": "network.create", "name": "net3", "space": "lab",
			"subnets": [{"cidr": "192.0.2.0/24", "pool": true}]} -> 200 "network.create"
		edit {"op": "network.modify", "network": "net3", "elastic": "on"} -> 200 "network.modify"
		edit {"op": "network.modify", "network": "net3", "elastic": "perhaps"} -> 400 invalid
		edit {"op": "reservation.add", "network": "net3", "owner": "web", "wishes": [{"slot": 0,
			"address": "192.0.2.11"}]} -> 200 "addresses":["192.0.2.11"]
		edit {"op": "account.create", "account": "shop", "owners": ["shop/*"], "quota": 3,
			"domain": "example.org"} -> 200 "account.create"
		edit {"op": "account.create", "account": "shop"} -> 409 "reason":"AccountInUse"
		edit {"op": "elastic.range.add", "range": "203.0.113.10+20", "announce": "eth0",
			"ttl": "5s", "on_cut": "keep"} -> 200 "elastic.range.add"
		edit {"op": "elastic.range.add", "range": "203.0.113.12"} -> 409 "reason":"ElasticRangeOverlap"
		edit {"op": "elastic.allocate"} -> 200 "addresses":["203.0.113.10"]
		edit {"op": "elastic.allocate", "account": "shop", "address": "203.0.113.12"}
			-> 200 "203.0.113.12"
		edit {"op": "elastic.associate", "address": "203.0.113.10", "instance": "web",
			"egress_only": true} -> 200 "elastic.associate"
		edit {"op": "elastic.associate", "address": "203.0.113.12", "instance": "web"}
			-> 409 "reason":"ElasticOtherAccount"
		edit {"op": "elastic.release", "address": "203.0.113.10"}
			-> 409 "reason":"ElasticAddressAssociated"
		GET /v1/accounts -> 200 "name":"default"
		GET /v1/elastic -> 200 "instance":"web"
		GET /v1/elastic?account=shop -> 200 "domain":"example.org"
		GET /v1/elastic?account=nobody -> 404 not_found
		GET /v1/elastic?limit=1 -> 200 "next":"
		GET /v1/elastic/ranges -> 200 "announce":"eth0"
		GET /v1/elastic/usage -> 200 "account":"shop","domain":"example.org","addresses":1
		GET /v1/elastic/usage?since=2020-01-01T00:00:00Z&until=2021-01-01T00:00:00Z
			-> 200 "known_since":"
		GET /v1/elastic/usage?since=yesterday -> 400 invalid
		GET /v1/elastic/usage?since=2021-01-01T00:00:00Z&until=2020-01-01T00:00:00Z -> 400 invalid
		GET /v1/elastic/203.0.113.11 -> 200 "state":"free"
		GET /v1/elastic/192.0.2.1 -> 404 not_found
		GET /v1/elastic/web -> 400 invalid
		GET /v1/edge/status -> 200 "connected":0
		POST /v1/edge {"whole": true, "applied": [{"address": "203.0.113.10", "association": 1,
			"guest": "192.0.2.11"}]} -> 200 "ok"
		edit {"op": "elastic.disassociate", "address": "203.0.113.10"} -> 200 "elastic.disassociate"
		edit {"op": "elastic.release", "address": "203.0.113.10"} -> 200 "elastic.release"
		GET /v1/elastic/203.0.113.10 -> 200 $RELEASED
		POST /v1/edge {"withdrawn": [{"address": "203.0.113.10"}]} -> 200 "ok"
		GET /v1/elastic/203.0.113.10 -> 200 "state":"free"
		POST /v1/edge {"applied": [{}]} -> 400 invalid
		edit {"op": "elastic.range.remove", "range": "203.0.113.10+20"}
			-> 409 "reason":"ElasticRangeInUse"
		edit {"op": "account.remove", "account": "shop", "force": true} -> 200 "account.remove"
		edit {"op": "elastic.range.remove", "range": "203.0.113.10+20"} -> 200 "elastic.range.remove"
	`, "$RELEASED", released)
}

// TestEdgeNews: an edge gets the whole state, then each change. It counts as connected while it listens.
func TestEdgeNews(t *testing.T) {
	h := start(t, nil)
	h.planned(t)
	lines := h.stream(t, "GET /v1/edge")
	if got := line(t, lines); !strings.Contains(got, `"whole":true`) {
		t.Fatalf("the first line is %s", got)
	}
	h.plays(t, `
		GET /v1/edge/status -> 200 "connected":1
		edit {"op": "elastic.range.add", "range": "203.0.113.10"}, {"op": "network.modify",
			"network": "net1", "elastic": "on"}, {"op": "reservation.add", "network": "net1",
			"owner": "web", "wishes": [{"slot": 0, "address": "192.0.2.11"}]},
			{"op": "elastic.allocate"}, {"op": "elastic.associate", "address": "203.0.113.10",
			"instance": "web"} -> 200 "elastic.associate"
	`)
	got := line(t, lines)
	for _, want := range []string{`"ranged":true`, `"elastic":"203.0.113.10"`, `"guest":"192.0.2.11"`,
		`"staged":true`} {
		if !strings.Contains(got, want) {
			t.Errorf("what changed is told without %s: %s", want, got)
		}
	}
	h.plays(t, `edit {"op": "elastic.disassociate", "address": "203.0.113.10"} -> 200 "elastic.disassociate"`)
	if got := line(t, lines); !strings.Contains(got, `"removed":["203.0.113.10"]`) {
		t.Errorf("what ended is told as %s", got)
	}
}
