package admin

import (
	"strings"
	"testing"

	"berth/internal/admin/api"
)

// A key makes a change once: the same request gets the same answer, another one is refused.
func TestIdempotencyKey(t *testing.T) {
	h := start(t, nil)
	lan := h.planned(t)
	for _, wrong := range []string{"", strings.Repeat("x", maxKey+1), "tab\there", "caf\u00e9"} {
		h.plays(t, `[Idempotency-Key: $WRONG] edit {"op": "network.create", "name": "net7"} -> 400`, "$WRONG", wrong)
	}
	h.plays(t, `
		edit {"op": "pool.add", "network": "net1", "range": "192.0.2.10-192.0.2.20"} -> 200
		[Idempotency-Key: key 1] POST $NEXT {"owner": "vm"}
			-> 200 "addresses":["192.0.2.10"] without eplayed tag $FIRST
		[Idempotency-Key: key 1] POST $NEXT {"owner": "vm"}
			-> 200 "addresses":["192.0.2.10"] && "replayed":true && Idempotency-Replayed: true && Etag: $FIRST
		[Idempotency-Key: key 1] POST $NEXT {"owner": "vm2"} -> 422 key_reused
		[Idempotency-Key: key 1] POST $NEXT { "owner": "vm"} -> 422 key_reused
		[Idempotency-Key: key 1] edit {"op": "pool.add", "network": "net1", "range": "192.0.2.30"} -> 422 key_reused
		[Idempotency-Key: key 1] edit {"op": "network.modify", "network": "net1", "sticky": false} -> 422 key_reused
		# A dry run neither looks at keys nor keeps them.
		[Idempotency-Key: key 2] POST $NEXT?dry_run=true {"owner": "vm"} -> 200
		[Idempotency-Key: key 2] POST $NEXT?dry_run=true {"owner": "vm"} -> 200
		[Idempotency-Key: key 1] POST $NEXT?dry_run=true {"owner": "vm"} -> 200
		[Idempotency-Key: key 2] POST $NEXT {"owner": "vm"} -> 200 "192.0.2.11" without eplayed
		# A refused request keeps none either: it may succeed later.
		[Idempotency-Key: key 3] edit {"op": "pool.add", "network": "net1", "range": "10.7.0.9"} -> 400
		edit {"op": "subnet.add", "network": "net1", "cidr": "10.7.0.0/24"} -> 200
		[Idempotency-Key: key 3] edit {"op": "pool.add", "network": "net1", "range": "10.7.0.9"} -> 200 without eplayed
		# A release happens once, too.
		edit {"op": "reservation.add", "network": "net1", "owner": "web"} -> 200
		[Idempotency-Key: key 4] edit {"op": "owner.release", "owner": "web"} -> 200 "reservation.remove"
		edit {"op": "reservation.add", "network": "net1", "owner": "web"} -> 200
		[Idempotency-Key: key 4] edit {"op": "owner.release", "owner": "web"}
			-> 200 "reservation.remove" && Idempotency-Replayed: true
		GET /v1/reservations -> 200 "owner":"web"
	`, "$NEXT", "/v1/subnets/"+lan+"/available-ips")
	h.as(&caller{actor: "token ci", role: api.RoleAdmin}).plays(t,
		`[Idempotency-Key: key 4] edit {"op": "owner.release", "owner": "web"} -> 422 key_reused`)
}
