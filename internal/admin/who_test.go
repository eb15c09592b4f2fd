package admin

import (
	"net/url"
	"testing"
	"time"
)

// TestWhoAsDescribed asks in every allowed way. Every other way is refused.
func TestWhoAsDescribed(t *testing.T) {
	h := start(t, nil)
	h.furnish(t)
	h.planned(t)
	h.plays(t, `
		edit {"op": "reservation.add", "network": "net1", "owner": "shop/db/1",
			"wishes": [{"slot": 0, "address": "192.0.2.9"}]} -> 200
		edit {"op": "reservation.remove", "network": "net1", "owner": "shop/db/1"} -> 200
	`)
	soon := url.QueryEscape(time.Now().Add(time.Hour).Format(time.RFC3339))
	h.plays(t, `
		GET /v1/who?address=10.1.0.2 -> 200 "kind":"automatic"
		GET /v1/who?address=10.1.0.1 -> 200 "kind":"gateway"
		GET /v1/who?address=10.1.0.100 -> 200 "kind":"auxiliary"
		GET /v1/who?mac=02:00:00:00:00:02 -> 200 "until":"
		GET /v1/who?mac=02-00-00-00-00-01 -> 200 "name":"web"
		GET /v1/who?name=web -> 200 "by":"engine"
		GET /v1/who?name=shop/db/1 -> 200 "what":"reservation"
		GET /v1/who?name=shop%2Fdb%2F1 -> 200 "ended_by":"
		GET /v1/who?name=web&space=lab&at=$SOON -> 200 "space":"lab"
		GET /v1/who?name=web&space=local -> 200 {"tenures":[]}
		GET /v1/who?name=web&at=2020-01-01T00:00:00Z -> 200 {"tenures":[]}
		GET /v1/who?name=nobody -> 200 {"tenures":[]}
		GET /v1/who?address=203.0.113.9 -> 200 {"tenures":[]}
	`, "$SOON", soon)
	h.plays(t, `
		GET /v1/who -> 400 "code":"invalid" && one of an address, a MAC and a name
		GET /v1/who?space=lab -> 400 "code":"invalid" && one of
		GET /v1/who?address=10.1.0.2&name=web -> 400 "code":"invalid" && one of
		GET /v1/who?mac=02:00:00:00:00:01&name=web -> 400 "code":"invalid" && one of
		GET /v1/who?name= -> 400 "code":"invalid" && one of
		GET /v1/who?address=10.1.0 -> 400 "code":"invalid" && parameter address
		GET /v1/who?address=::ffff:10.1.0.2 -> 400 "code":"invalid" && parameter address
		GET /v1/who?mac=02:00 -> 400 "code":"invalid" && give a MAC address
		GET /v1/who?name=web&at=yesterday -> 400 "code":"invalid" && RFC 3339
		GET /v1/who?name=web&name=db -> 400 "code":"invalid" && given 2 times
		GET /v1/who?owner=web -> 400 "code":"invalid" && no parameter \"owner\"
		GET /v1/who?name=web&space=nowhere -> 404 not_found
	`)
}
