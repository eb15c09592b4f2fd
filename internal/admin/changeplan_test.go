package admin

import (
	"slices"
	"strings"
	"testing"

	"berth/internal/ipam/ipamtest"
)

// shop makes a network with a gateway, a pool, an exclusion and a reservation that ends, and returns its id.
func (h *harness) shop(t *testing.T) string {
	t.Helper()
	return h.plays(t, `edit {"op": "network.create", "name": "shop",
			"subnets": [{"cidr": "10.251.0.0/24", "gateway": "10.251.0.1"}]},
		{"op": "pool.add", "network": "shop", "range": "10.251.0.10-10.251.0.19"},
		{"op": "exclusion.add", "network": "shop", "range": "10.251.0.14-10.251.0.17", "note": "printers"},
		{"op": "reservation.add", "network": "shop", "owner": "mail", "until": "2040-05-06T07:08:09Z",
			"wishes": [{"slot": 0, "address": "10.251.0.8"}]},
		{"op": "address.take", "network": "shop", "owner": "vm",
			"interface": {"number": 0, "wishes": [{"slot": 0, "address": "10.251.0.9"}]}} -> 200
	`).outcome(t).Results[0].Network.String()
}

// TestQuestions: each question names everything it is about. Agreeing makes the change, and the next view shows
// it.
func TestQuestions(t *testing.T) {
	for c := range ipamtest.Rows(5, `
		# $1 is what the first field says
		reserve | address=10.251.0.7&owner=db | Reserve $1 in shop for db? | reservation.add | "reserved":2
		exclude | range=10.251.0.32/28 | Exclude $1 in shop? | exclusion.add | "start":"10.251.0.32"
		end-exclusion | range=10.251.0.14-10.251.0.17 | Remove the exclusion of $1 in shop? | printers | "exclusions":[]
		end-exclusion | range=10.251.0.15 | Remove the exclusion of $1 in shop? | remove | "start":"10.251.0.16"
		release | address=10.251.0.8 | Release $1 in shop, reserved for mail? | 2040-05-06 | "reserved":0
		release | address=10.251.0.9 | Release $1 in shop, held by vm? | lease.release | "leased":1
		add-subnet | subnet=10.252.0.0/24&gateway=10.252.0.1 | Add subnet $1 to shop? | create | "start":"10.252.0.
		add-pool | range=10.251.0.64/28&name=web | Add pool $1 to shop? | web | "name":"web"
	`) {
		t.Run(c[0]+" "+c[1], func(t *testing.T) {
			h := start(t, nil)
			_, first, _ := strings.Cut(c[1], "=")
			first, _, _ = strings.Cut(first, "&")
			h.agrees(t, c[0], "network="+h.shop(t)+"&"+c[1], strings.Replace(c[2], "$1", first, 1), c[3])
			h.plays(t, `GET /v1/networks/shop -> 200 $HAS`, "$HAS", c[4])
		})
	}
}

// agrees goes through both steps of a form. The first step shows the question and the changes.
func (h *harness) agrees(t *testing.T, what, fields, question, changes string) {
	t.Helper()
	done := h.plays(t, `
		look /change/$WHAT?$FIELDS -> 200
		agree /change/$WHAT -> 200 <h1>$QUESTION</h1> && Nothing has been changed yet && $CHANGES
		agree /change/$WHAT -> 303
	`, "$WHAT", what, "$FIELDS", fields, "$QUESTION", question, "$CHANGES", changes)
	h.plays(t, `look $TO -> 200`, "$TO", strings.TrimPrefix(done.header.Get("Location"), ".."))
}

// TestRemoveNetworkInTheBrowser: an unused network is removed. If it is in use, the form says what to do.
func TestRemoveNetworkInTheBrowser(t *testing.T) {
	h := start(t, nil)
	id := h.shop(t)
	for _, address := range []string{"10.251.0.8", "10.251.0.9"} {
		h.plays(t, `
			fill /change/remove network=$ID -> 409 $ADDRESS
			look /change/release?network=$ID&address=$ADDRESS -> 200
			agree /change/release -> 200
			agree /change/release -> 303
		`, "$ID", id, "$ADDRESS", address)
	}
	h.agrees(t, "remove", "network="+id, "Remove network shop?", "network.remove")
	h.plays(t, `GET /v1/networks/shop -> 404`)
}

// TestOffers: each view offers the actions that fit what it shows, and none that is always refused.
func TestOffers(t *testing.T) {
	h := start(t, nil)
	id := h.shop(t)
	n, err := h.service.Network(t.Context(), id)
	must(t, err)
	for target, wanted := range map[string][]string{
		"/network/" + id: {"add-pool", "add-subnet", "end-exclusion", "exclude", "remove",
			"reserve"},
		"/subnet/" + n.Subnets[0].ID.String(): {"add-pool", "end-exclusion", "exclude", "reserve"},
		"/address/10.251.0.1":                 nil, // the gateway
		"/address/10.251.0.0":                 nil, // the subnet's own
		"/address/10.251.0.8":                 {"release"},
		"/address/10.251.0.9":                 {"release"},
		"/address/10.251.0.15":                {"end-exclusion"},
		"/address/10.251.0.30":                {"exclude", "reserve"},
	} {
		var got []string
		for _, part := range strings.Split(h.plays(t, "look "+target+" -> 200").body, "/change/")[1:] {
			what, _, _ := strings.Cut(part, "?")
			got = append(got, what)
		}
		slices.Sort(got)
		if got = slices.Compact(got); !slices.Equal(got, wanted) {
			t.Errorf("%s offers %q, not %q", target, got, wanted)
		}
	}
	h.plays(t, `fill /change/release network=$ID&address=10.251.0.1 -> 400 10.251.0.1 is a gateway`, "$ID", id)
}

// TestReservedUntil: each list of reservations shows when a reservation ends.
func TestReservedUntil(t *testing.T) {
	h := start(t, nil)
	n, err := h.service.Network(t.Context(), h.shop(t))
	must(t, err)
	h.plays(t, `
		edit {"op": "network.create", "name": "vips", "type": "vip", "subnets": [{"cidr": "10.253.0.0/24"}]},
			{"op": "reservation.add", "network": "vips", "owner": "www", "until": "2040-05-06T07:08:09Z",
			"wishes": [{"slot": 0, "address": "10.253.0.8"}]} -> 200
		look /network/vips -> 200 <time datetime="2040-05-06T07:08:09Z">
		look /address/10.251.0.8 -> 200 <time datetime="2040-05-06T07:08:09Z">
		look /subnet/$SUBNET -> 200 <time datetime="2040-05-06T07:08:09Z">
	`, "$SUBNET", n.Subnets[0].ID.String())
}
