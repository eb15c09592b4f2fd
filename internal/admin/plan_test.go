package admin

import (
	"net/http"
	"net/netip"
	"slices"
	"testing"

	"berth/internal/ipam"
)

// planned makes a network to work in, and returns the id of its first subnet.
func (h *harness) planned(t *testing.T) string {
	t.Helper()
	h.plays(t, `edit {"op": "network.create", "name": "net1", "tags": {"site": "a"}, "subnets": [
		{"cidr": "192.0.2.0/24", "gateway": "192.0.2.1", "name": "lan"}, {"cidr": "2001:db8::/64", "pool": true}]}
		-> 200 Etag`)
	n, err := h.client.Network(t.Context(), "net1")
	must(t, err)
	return n.Subnets[0].ID.String()
}

// edgeOf answers probes like an edge whose LAN on eth0 has a machine at 192.0.2.62.
func edgeOf(t *testing.T, h *harness) {
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

// TestPlanAsDescribed plays the life of a network through every operation of the plan, with the refusals of each.
func TestPlanAsDescribed(t *testing.T) {
	h := start(t, nil)
	lan := h.planned(t)
	edgeOf(t, h)
	played := map[string]bool{}
	nobody := ipam.NewID().String()
	for _, s := range steps(`
		edit {"op": "network.create", "name": "flat", "subnets": [{"cidr": "10.7.0.0/24",
			"pool": true}]}, {"op": "network.create", "name": "wire"} -> 200 "network.create"
		try {"op": "network.create", "name": "net9"} -> 200 "id":0
		edit {"op": "network.create", "name": "net1"} -> 409 in_use
		edit {"op": "network.create", "name": "pool"} -> 400 invalid
		edit {"op": "network.create", "name": "over", "subnets": [{"cidr": "192.0.2.128/25"}]}
			-> 409 overlap
		GET /v1/networks -> 200 "name":"wire"
		GET /v1/networks?space=global -> 200 "networks":[]
		GET /v1/networks?space=nowhere -> 404 not_found
		GET /v1/networks/net1 -> 200 "cidr":"192.0.2.0/24"
		GET /v1/networks/net9 -> 404 not_found
		edit {"op": "network.modify", "network": "net1", "tags": {"site": null, "team": "blue"},
			"quarantine": "10m", "sticky": false} -> 200 "network.modify"
		edit {"op": "network.modify", "network": "net1", "quarantine": "soon"} -> 400 quarantine
		edit {"op": "network.modify", "network": "net9", "name": "net8"} -> 404 not_found

		edit {"op": "subnet.add", "network": "net1", "bits": 26, "from": "198.51.100.0/24",
			"name": "old"} -> 200 "cidr":"198.51.100.0/26"
		try {"op": "subnet.add", "network": "net1", "cidr": "203.0.113.0/25"}, {"op": "subnet.add",
			"network": "net1", "cidr": "203.0.113.128/25"} -> 200 203.0.113.128/25
		edit {"op": "subnet.add", "network": "net1", "cidr": "203.0.113.0/25"}, {"op": "subnet.add",
			"network": "net1", "cidr": "203.0.113.64/26"} -> 409 "index":1
		GET /v1/networks/net1/subnets -> 200 "name":"old"
		GET /v1/networks/wire/subnets -> 200 "subnets":[]
		GET /v1/networks/net9/subnets -> 404 not_found
		edit {"op": "subnet.modify", "network": "net1", "subnet": "old", "cidr": "198.51.100.0/25",
			"gateway": "198.51.100.1", "dhcp": true, "name": ""} -> 200 "subnet.modify"
		edit {"op": "subnet.modify", "network": "net1", "subnet": "198.51.100.0/25", "gateway": ""}
			-> 200 "revision"
		edit {"op": "subnet.modify", "network": "net1", "subnet": "nothing", "dhcp": false}
			-> 404 not_found
		try {"op": "subnet.remove", "network": "net1", "subnet": "198.51.100.0/25"}
			-> 200 "subnet.remove"
		edit {"op": "subnet.remove", "network": "net1", "subnet": "198.51.100.0/25"}
			-> 200 "subnet.remove"
		edit {"op": "subnet.remove", "network": "net1", "subnet": "198.51.100.0/25"} -> 404 not_found

		edit {"op": "pool.add", "network": "net1", "range": "192.0.2.10-192.0.2.100",
			"name": "pool1"}, {"op": "pool.add", "network": "net1", "range": "192.0.2.128/26"}
			-> 200 "pool.add"
		edit {"op": "pool.add", "network": "net1", "range": "192.0.2.50+3"} -> 409 overlap
		edit {"op": "pool.add", "network": "net1", "range": "192.0.2.50-192.0.2.40"} -> 400 reversed
		GET /v1/networks/net1/pools -> 200 "map":"........
		GET /v1/networks/net9/pools -> 404 not_found
		edit {"op": "pool.modify", "network": "net1", "pool": "pool1", "name": "front"}
			-> 200 "pool.modify"
		edit {"op": "pool.modify", "network": "net1", "pool": "192.0.2.128/26", "name": "back"}
			-> 200 "pool.modify"
		edit {"op": "pool.modify", "network": "net1", "pool": "pool1", "name": "front"} -> 404 not_found
		edit {"op": "pool.remove", "network": "net1", "pool": "192.0.2.20-192.0.2.50"}
			-> 200 "pool.remove"
		try {"op": "pool.remove", "network": "net1", "pool": "back"} -> 200 "pool.remove"
		edit {"op": "pool.remove", "network": "net1", "pool": "back"} -> 200 "pool.remove"
		edit {"op": "pool.remove", "network": "net1", "pool": "back"} -> 404 not_found

		edit {"op": "exclusion.add", "network": "net1", "range": "192.0.2.60+5",
			"note": "printers"}, {"op": "exclusion.add", "network": "net1", "range": "192.0.2.200"}
			-> 200 "exclusion.add"
		edit {"op": "exclusion.add", "network": "net1", "range": "192.0.2.62"} -> 409 overlap
		GET /v1/networks/net1/exclusions -> 200 "note":"printers"
		GET /v1/networks/wire/exclusions -> 200 "exclusions":[]
		POST /v1/networks/net1/scan?parent=eth0
			-> 200 "mac":"02:00:00:00:00:01","state":"excluded","note":"printers"
		POST /v1/networks/net1/scan -> 400 invalid
		POST /v1/networks/net1/scan?parent=eth7 -> 503 no such interface
		POST /v1/networks/net9/scan?parent=eth0 -> 404 not_found
		edit {"op": "exclusion.remove", "network": "net1", "range": "192.0.2.200"}
			-> 200 "exclusion.remove"
		edit {"op": "exclusion.remove", "network": "net1", "range": "192.0.2.62+1"}
			-> 200 "exclusion.remove"
		edit {"op": "exclusion.remove", "network": "net1", "range": "192.0.2.0/33"} -> 400 invalid
		GET /v1/networks/net1/exclusions -> 200 "end":"192.0.2.61"

		edit {"op": "reservation.add", "network": "net1", "owner": "shop/web/1",
			"wishes": [{"slot": 0, "address": "192.0.2.11"}]} -> 200 "addresses":["192.0.2.11"]
		edit {"op": "reservation.add", "network": "net1", "owner": "db", "wishes": [{"slot": 0,
			"pool": "front"}]}, {"op": "reservation.add", "network": "net1", "owner": "cache"}
			-> 200 "reservation.add"
		edit {"op": "reservation.add", "network": "net1", "owner": "other", "wishes": [{"slot": 0,
			"address": "192.0.2.11"}]} -> 409 in_use
		edit {"op": "reservation.add", "network": "net1", "owner": "other", "wishes": [{"slot": 0,
			"address": "192.0.2.60"}]} -> 409 exclu
		GET /v1/networks/net1/reservations -> 200 "owner":"cache"
		GET /v1/networks/net1/reservations?owner=shop/web/1 -> 200 "address":"192.0.2.11"
		GET /v1/networks/net1/reservations?owner=nobody -> 200 "reservations":[]
		GET /v1/reservations -> 200 "space":"local"
		GET /v1/networks/net9/reservations -> 404 not_found
		edit {"op": "reservation.remove", "network": "net1", "owner": "db",
			"address": "192.0.2.1111"} -> 400 invalid
		edit {"op": "reservation.remove", "network": "net1", "owner": "cache"}
			-> 200 "reservation.remove"
		edit {"op": "reservation.remove", "network": "net1", "owner": "shop/web/1",
			"address": "192.0.2.11"} -> 200 "reservation.remove"
		GET /v1/networks/net1/reservations?owner=shop/web/1 -> 200 "reservations":[]

		edit {"op": "reservation.add", "network": "net1", "owner": "shop/tmp/1"}
			-> 200 "reservation.add"
		try {"op": "owner.release", "owner": "shop/tmp/1"} -> 200 "reservation.remove"
		edit {"op": "owner.release", "owner": "shop/tmp/1", "replaced": true} -> 200 "changes":[]
		edit {"op": "owner.release", "owner": "shop/tmp", "under": true} -> 200 "reservation.remove"
		edit {"op": "owner.release", "owner": "shop/tmp/1"} -> 200 "changes":[]

		edit {"op": "address.take", "network": "net1", "owner": "rtr", "interface": {"number": 0,
			"wishes": [{"slot": 0}, {"slot": 1, "pool": "front"}, {"slot": 2,
			"address": "192.0.2.250"}]}} -> 200 "192.0.2.250"
		edit {"op": "address.take", "network": "net1", "owner": "vm", "interface": {"number": 0,
			"wishes": [{"slot": 0, "address": "192.0.2.250"}]}} -> 409 in_use
		edit {"op": "address.take", "network": "net1", "owner": "vm", "interface": {"number": 0,
			"wishes": [{"slot": 1}]}} -> 400 ip0 is missing
		GET /v1/networks/net1/addresses -> 200 "owner":"rtr"
		GET /v1/addresses?owner=rtr&limit=2 -> 200 "next":"
		GET /v1/networks/net9/addresses -> 404 not_found
		GET /v1/networks/net1/env/rtr -> 200 =192.0.2.250"
		GET /v1/networks/net1/env/nobody -> 404 not_found
		edit {"op": "address.release", "network": "net1", "owner": "rtr", "address": "192.0.2.250"}
			-> 200 "192.0.2.250"
		try {"op": "address.release", "network": "net1", "owner": "rtr"} -> 200 "lease.release"
		edit {"op": "address.release", "network": "net1", "owner": "rtr"} -> 200 "lease.release"
		GET /v1/networks/net1/addresses -> 200 "addresses":[]

		GET /v1/subnets/$LAN -> 200 "name":"lan"
		GET /v1/subnets/$NOBODY -> 404 not_found
		GET /v1/subnets/10.7.0.0%2F24 -> 400 invalid
		GET /v1/subnets/$LAN/available-ips -> 200 "addresses":["192.0.2.1
		GET /v1/subnets/$LAN/available-ips?limit=2 -> 200 "addresses":["192.0.2.1
		GET /v1/subnets/$NOBODY/available-ips -> 404 not_found
		GET /v1/subnets/$LAN/available-ips?limit=0 -> 400 invalid
		GET /v1/networks/net1/free -> 200 "free":[{"space":
		GET /v1/networks/net1/free?subnet=192.0.2.0%2F24&limit=1 -> 200 "subnet":"192.0.2.0/24"
		GET /v1/networks/net1/free?pool=nothing -> 404 no pool \"nothing\"
		GET /v1/networks/net9/free -> 404 not_found
		GET /v1/networks/net1/free/next -> 200 "addresses":1}
		GET /v1/networks/net1/free/next?subnet=nothing -> 400 invalid
		POST /v1/subnets/$LAN/available-ips {"owner": "vm"} -> 200 "addresses":["192.0.2.1
		POST /v1/subnets/$LAN/available-ips [{"owner": "vm", "count": 2, "pool": "front"},
			{"owner": "vm"}] -> 200 "addresses":["192.0.2.1
		POST /v1/subnets/$LAN/available-ips {"owner": "vm", "count": 65} -> 400 1 to 64
		POST /v1/subnets/$LAN/available-ips {"owner": "vm", "count": 0} -> 400 1 to 64
		POST /v1/subnets/$LAN/available-ips {"owner": "vm", "pool": "nothing"} -> 404 not_found
		POST /v1/subnets/$NOBODY/available-ips {"owner": "vm"} -> 404 not_found

		edit {"op": "pool.add", "network": "wire", "range": "192.0.2.1"} -> 400 invalid
		try {"op": "network.modify", "network": "net1", "name": "net2"} -> 200 "network.modify"
		edit {"op": "network.modify", "network": "net1", "name": "net2"}, {"network": "net2",
			"op": "address.release", "owner": "vm"}, {"op": "network.modify", "network": "net2",
			"name": "net1"} -> 200 "lease.release"

		edit {"op": "network.remove", "network": "net1"} -> 409 in_use
		try {"op": "network.remove", "network": "net1", "force": true} -> 200 "network.remove"
		edit {"op": "network.remove", "network": "net1", "force": true} -> 200 "network.remove"
		edit {"op": "network.remove", "network": "net1"} -> 404 not_found
	`, "$LAN", lan, "$NOBODY", nobody) {
		h.play(t, s)
		if s.status == http.StatusOK {
			played[s.method+" "+described(t, h.request(t, s)).Route.Path] = true
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

// TestOwnersAsDescribed covers what belongs to owners: types of networks, rules, static bands, changes of
// addresses (BO-8 to BO-13).
func TestOwnersAsDescribed(t *testing.T) {
	h := start(t, nil)
	h.planned(t)
	h.plays(t, `
		edit {"op": "network.create", "name": "vips", "type": "vip",
			"subnets": [{"cidr": "203.0.113.0/28"}]}, {"op": "network.create", "name": "lab",
			"type": "dynamic"}, {"op": "network.create", "name": "front", "type": "manual",
			"static": ["10.8.0.8-10.8.0.15"], "owner_rules": [{"pattern": "web-*",
			"owner": "shop/web/*", "pool": "web"}], "subnets": [{"cidr": "10.8.0.0/24", "pool": true}]}
			-> 200 "network.create"
		GET /v1/networks/vips -> 200 "type":"vip","static":[],"owner_rules":[]
		GET /v1/networks/front
			-> 200 "type":"manual","static":["10.8.0.8/29"],"owner_rules":[{"pattern":"web-*","owner":"shop/web/*","pool":"web"}]
		GET /v1/networks -> 200 "type":"dynamic"
		GET /v1/subnets -> 200 "static":["10.8.0.8/29"]
		edit {"op": "network.modify", "network": "net1", "static": ["192.0.2.8+8", "192.0.2.32/28"],
			"owner_rules": [{"pattern": "db", "pool": "back"}, {"pattern": "x-*", "owner": "x/*"}]}
			-> 200 "network.modify"
		edit {"op": "network.modify", "network": "net1", "owner_rules": [{"pattern": "db"}]}
			-> 200 "network.modify"
		GET /v1/networks/net1
			-> 200 "static":["192.0.2.8/29","192.0.2.32/28"],"owner_rules":[{"pattern":"x-*","owner":"x/*"}]
		edit {"op": "network.modify", "network": "net1", "static": ["198.51.100.8"]}
			-> 400 "reason":"NetworkStaticIpOutOfRange"
		edit {"op": "network.modify", "network": "net1", "static": []} -> 200 "network.modify"
		GET /v1/networks/net1 -> 200 "static":[]

		edit {"op": "reservation.add", "network": "net1", "owner": "shop/web/1",
			"wishes": [{"slot": 0, "address": "192.0.2.11"}], "automatic": true}
			-> 200 "addresses":["192.0.2.11"]
		GET /v1/networks/net1/reservations -> 200 "kind":"automatic"
		edit {"op": "reservation.add", "network": "net1", "owner": "shop/web/1",
			"wishes": [{"slot": 0, "address": "192.0.2.12"}]}
			-> 409 "reason":"NetworkReservationAlreadyExists"
		edit {"op": "reservation.add", "network": "net1", "owner": "shop/web/1",
			"wishes": [{"slot": 0, "address": "192.0.2.12"}], "replace": true} -> 200 "reservation.modify"
		GET /v1/networks/net1/reservations -> 200 "replaced":true
		edit {"op": "reservation.add", "network": "net1", "owner": "batch/1", "wishes": [{"slot": 0,
			"family": 6}], "for": "1h"} -> 200 "2001:db8::1"
		GET /v1/networks/net1/reservations?owner=batch/1 -> 200 "until":"
		edit {"op": "reservation.add", "network": "net1", "owner": "a", "wishes": [{"slot": 0,
			"address": "192.0.2.77"}]}, {"op": "reservation.add", "network": "net1", "owner": "b",
			"wishes": [{"slot": 0, "address": "192.0.2.77"}]}
			-> 409 "detail":"192.0.2.77 is held by a (reserved since
		edit {"op": "reservation.add", "network": "net1", "owner": "a", "wishes": [{"slot": 0,
			"address": "192.0.2.77"}]}, {"op": "reservation.add", "network": "net1", "owner": "b",
			"wishes": [{"slot": 0, "address": "192.0.2.77"}]}
			-> 409 "reason":"NetworkReservationAlreadyInUse","index":1
		edit {"op": "reservation.add", "network": "net1", "owner": "a", "wishes": [{"slot": 0,
			"address": "198.51.100.7"}]} -> 400 "reason":"NetworkReservationIpOutsideSubnet"
		edit {"op": "reservation.add", "network": "vips", "owner": "a"}
			-> 400 "reason":"NetworkReservationWrongType"
		edit {"op": "reservation.add", "network": "lab", "owner": "a"}, {"op": "reservation.add",
			"network": "lab", "owner": "b", "for": "90m"} -> 200 "reservation.add"
		GET /v1/networks/lab/reservations -> 200 "owner":"a","address":"","kind":"automatic"

		edit {"op": "reservation.bind", "wanted": [{"network": "net1", "owner": "shop/web/1",
			"wishes": [{"slot": 0, "address": "192.0.2.11"}]}, {"network": "front",
			"owner": "shop/db/1", "for": "24h"}]} -> 200 "reservation.modify"
		edit {"op": "reservation.bind", "wanted": [{"network": "net1", "owner": "a"},
			{"network": "net1", "owner": "a"}]} -> 400 "reason":"NetworkReservationAlreadyExists"
		edit {"op": "owner.release", "owner": "shop/web/1", "replaced": true} -> 200 "changes":[]
		try {"op": "owner.release", "owner": "shop/web", "under": true} -> 200 "reservation.remove"
		edit {"op": "owner.release", "owner": "shop", "under": true} -> 200 "192.0.2.11"
		edit {"op": "owner.release", "owner": "b"} -> 200 "reservation.remove"
		GET /v1/reservations?owner=shop/web/1 -> 200 "reservations":[]
	`)
	if problems, err := h.service.Check(t.Context()); err != nil || len(problems) > 0 {
		t.Errorf("fsck: %q, %v", problems, err)
	}
}

// available-ips shows the next free addresses and takes them for owners, in the order of the answers.
func TestTakeNext(t *testing.T) {
	h := start(t, nil)
	lan := h.planned(t)
	h.plays(t, `
		edit {"op": "pool.add", "network": "net1", "range": "192.0.2.10+4", "name": "small"} -> 200
		GET $NEXT -> 200 {"addresses":["192.0.2.10","192.0.2.11","192.0.2.12","192.0.2.13"]}
		POST $NEXT [{"owner": "vm", "count": 2}, {"owner": "vm"}]
			-> 200 "addresses":["192.0.2.10","192.0.2.11"] && "addresses":["192.0.2.12"]
		# There is one left, and two are wanted: neither is taken, though the IPv6 subnet has room.
		POST $NEXT {"owner": "vm", "count": 2} -> 409 exhausted
	`, "$NEXT", "/v1/subnets/"+lan+"/available-ips")
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
