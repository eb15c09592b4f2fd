package admin

import (
	"strings"
	"testing"
)

// If two admins change the same network after reading it, the second is refused. Neither overwrites the other.
func TestIfMatch(t *testing.T) {
	h := start(t, nil)
	h.planned(t)
	h.plays(t, `
		GET /v1/networks/net1 -> 200 tag $SEEN
		[If-Match: $SEEN] edit {"op": "network.modify", "network": "net1", "tags": {"by": "first"}} -> 200 tag $FIRST
		[If-Match: $SEEN] edit {"op": "network.modify", "network": "net1", "tags": {"by": "second"}}
			-> 412 changed && net1
		[If-Match: $SEEN] edit {"op": "pool.add", "network": "net1", "range": "192.0.2.9"} -> 412 changed && net1
		[If-Match: $SEEN] edit {"op": "reservation.add", "network": "net1", "owner": "web",
			"wishes": [{"slot": 0, "address": "192.0.2.9"}]} -> 412 changed && net1
		[If-Match: $SEEN] edit {"op": "network.remove", "network": "net1"} -> 412 changed && net1
		[If-Match: $SEEN] edit {"op": "subnet.remove", "network": "net1", "subnet": "lan"} -> 412 changed && net1
		GET /v1/networks/net1 -> 200 "by":"first"
		# The answer to a change has the tag for the next one, as every part of the network has.
		[If-Match: $FIRST] edit {"op": "pool.add", "network": "net1", "range": "192.0.2.9"} -> 200 tag $SECOND
	`)
	for _, part := range []string{"", "/subnets", "/pools", "/exclusions", "/reservations", "/addresses"} {
		h.plays(t, `
			GET /v1/networks/net1$PART -> 200 Etag: $SECOND- tag $TAG
			[If-Match: $TAG] try {"op": "network.modify", "network": "net1", "sticky": false} -> 200
		`, "$PART", part, "$SECOND", strings.TrimSuffix(h.tags["$SECOND"], `"`))
	}
	h.plays(t, `
		# What others take meanwhile is no change of the plan.
		GET /v1/networks/net1 -> 200 tag $SEEN
		edit {"op": "address.take", "network": "net1", "owner": "vm", "interface": {"number": 0}} -> 200
		[If-Match: $SEEN] edit {"op": "network.modify", "network": "net1", "sticky": false} -> 200
		[If-Match: *] edit {"op": "network.modify", "network": "net1", "sticky": true} -> 200
	`)
	for _, wrong := range []string{`"0"`, `"0-ab"`, `7`, `""`, `"seven"`, `W/"7"`, `"7", "8"`, `"-7"`,
		`"99999999999999999999"`} {
		h.plays(t, `[If-Match: $WRONG] edit {"op": "network.modify", "network": "net1", "sticky": true} -> 400`,
			"$WRONG", wrong)
	}
}

// A network that Docker created has a revision before anybody edits it. Of two first changes one wins.
func TestIfMatchOfDockersNetwork(t *testing.T) {
	h := start(t, nil)
	h.furnish(t)
	all, err := h.client.Networks(t.Context(), "lab")
	must(t, err)
	h.plays(t, `
		GET /v1/networks/$ID -> 200 tag $SEEN
		[If-Match: $SEEN] edit {"op": "network.modify", "network": "$ID", "name": "one"} -> 200
		[If-Match: $SEEN] edit {"op": "network.modify", "network": "$ID", "name": "two"} -> 412 changed
	`, "$ID", all[0].ID.String())
}

func TestIfNoneMatch(t *testing.T) {
	h := start(t, nil)
	lan := h.planned(t)
	for _, target := range []string{"/v1/networks/net1", "/v1/networks/net1/pools", "/v1/networks/net1/subnets",
		"/v1/networks/net1/addresses", "/v1/subnets/" + lan} {
		h.plays(t, `
			GET $TARGET -> 200 tag $TAG
			[If-None-Match: "other"] GET $TARGET -> 200
		`, "$TARGET", target)
		for _, same := range []string{"$TAG", "W/$TAG", `"other", $TAG`, "*"} {
			got := h.plays(t, `[If-None-Match: $SAME] GET $TARGET -> 304`, "$TARGET", target, "$SAME", same)
			if got.body != "" || got.header.Get("ETag") != h.tags["$TAG"] {
				t.Errorf("%s: 304 with the ETag %s and %q", target, got.header.Get("ETag"), got.body)
			}
		}
	}
	h.plays(t, `
		# An address that is taken is no change of the plan, and shows all the same.
		GET /v1/networks/net1 -> 200 tag $TAG
		edit {"op": "address.take", "network": "net1", "owner": "vm", "interface": {"number": 0}} -> 200
		[If-None-Match: $TAG] GET /v1/networks/net1 -> 200
	`)
}
