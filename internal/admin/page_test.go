package admin

import (
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"

	"berth/internal/admin/api"
	"berth/internal/ipam"
	"berth/internal/ipam/ipamtest"
)

// populated makes some tens each of networks in two spaces, subnets, pools, exclusions, reservations, taken
// addresses and leases.
func (h *harness) populated(t *testing.T) {
	t.Helper()
	h.furnish(t)
	var local, lab strings.Builder
	for i := range 30 {
		space, to := ipam.LocalSpace, &local
		if i%2 == 1 {
			space, to = "lab", &lab
		}
		fmt.Fprintf(to, `{"op": "network.create", "name": "net%02[1]d", "space": %[2]q,
				"subnets": [{"cidr": "10.7.%[1]d.0/24", "pool": true}]},
			{"op": "reservation.add", "network": "net%02[1]d", "owner": "web", "wishes": [{"slot": 0}, {"slot": 1}]},
			{"op": "address.take", "network": "net%02[1]d", "owner": "rtr", "interface": {"number": 0}},`, i, space)
	}
	for i := range 30 {
		fmt.Fprintf(&local, `{"op": "subnet.add", "network": "net00", "cidr": "10.8.%[1]d.0/24"},
			{"op": "pool.add", "network": "net00", "range": "10.8.%[1]d.1"},
			{"op": "exclusion.add", "network": "net00", "range": "10.8.%[1]d.2"},`, i)
	}
	// Two owners on each of two dynamic networks. One owner's address is recorded.
	for i := range 2 {
		fmt.Fprintf(&local, `{"op": "network.create", "name": "dyn%[1]d", "type": "dynamic",
				"subnets": [{"cidr": "10.9.%[1]d.0/24"}]},
			{"op": "reservation.add", "network": "dyn%[1]d", "owner": "dynamic/1"},
			{"op": "reservation.add", "network": "dyn%[1]d", "owner": "dynamic/2"},
			{"op": "address.take", "network": "dyn%[1]d", "owner": "dynamic/2",
				"interface": {"number": 0, "wishes": [{"slot": 0, "address": "10.9.%[1]d.7"}]}},`, i+1)
	}
	for _, all := range []string{local.String(), lab.String()} { // which may be in two stores
		h.plays(t, "edit $ALL -> 200", "$ALL", strings.TrimSuffix(all, ","))
	}
}

// Every list comes in pages. Together they are the whole list, each item once and in order, through the cursor of
// the answer and through its Link.
func TestPages(t *testing.T) {
	h := start(t, nil)
	h.populated(t)
	for c := range ipamtest.Rows(3, `
		/v1/networks | networks | 30
		/v1/networks?space=lab | networks | 15
		/v1/networks/net00/subnets | subnets | 30
		/v1/networks/net00/pools | pools | 30
		/v1/networks/net00/exclusions | exclusions | 30
		/v1/reservations | reservations | 64
		/v1/networks/dyn1/reservations | reservations | 2
		/v1/reservations?owner=dynamic/2 | reservations | 2
		/v1/reservations?owner=web | reservations | 60
		/v1/networks/net03/reservations | reservations | 2
		/v1/addresses | addresses | 30
		/v1/subnets | subnets | 60
		/v1/subnets?space=lab | subnets | 15
		/v1/leases | leases | 34
		/v1/leases?space=lab&remembered=true | leases | 15
		/v1/leases?subnet=10.1.0.0/24&remembered=true | leases | 5
	`) {
		whole, next := h.page(t, c[0], c[1], 0)
		if len(whole) < number(c[2]) || next != "" {
			t.Errorf("%s has %d items, and %q next", c[0], len(whole), next)
		}
		for _, limit := range []int{1, 7, len(whole), 1000} {
			if paged := h.paged(t, c[0], c[1], limit); !slices.Equal(paged, whole) {
				t.Errorf("%s in pages of %d: %d items, want %d:\n%s", c[0], limit, len(paged), len(whole),
					strings.Join(paged, "\n"))
			}
		}
	}
}

// page asks for one page; limit 0 is none.
func (h *harness) page(t *testing.T, target, list string, limit int) (items []string,
	next string) {
	t.Helper()
	if limit > 0 {
		u, err := url.Parse(target)
		must(t, err)
		q := u.Query()
		q.Set("limit", fmt.Sprint(limit))
		target = u.Path + "?" + q.Encode()
	}
	got := h.play(t, step{method: "GET", target: target, status: 200})
	answer := into[map[string]json.RawMessage](t, got)
	var raw []json.RawMessage
	must(t, json.Unmarshal(answer[list], &raw))
	for _, item := range raw {
		items = append(items, string(item))
	}
	if answer["next"] != nil {
		must(t, json.Unmarshal(answer["next"], &next))
	}
	link := got.header.Get("Link")
	if path, ok := strings.CutSuffix(strings.TrimPrefix(link, "<"), `>; rel="next"`); ok != (next != "") || ok &&
		!strings.Contains(path, "after="+url.QueryEscape(next)) {
		t.Errorf("%s: next is %q, and the Link %q", target, next, link)
	}
	return items, next
}

// paged collects a list in pages of at most limit.
func (h *harness) paged(t *testing.T, target, list string, limit int) (all []string) {
	t.Helper()
	sep := "?"
	if strings.Contains(target, "?") {
		sep = "&"
	}
	items, next := h.page(t, target, list, limit)
	for {
		if len(items) > limit || next != "" && len(items) != limit {
			t.Fatalf("%s: a page of %d has %d items", target, limit, len(items))
		}
		if all = append(all, items...); next == "" || len(all) > 500 {
			return all
		}
		items, next = h.page(t, target+sep+"after="+url.QueryEscape(next), list, limit)
	}
}

func TestBadPages(t *testing.T) {
	h := start(t, nil)
	h.planned(t)
	// The cursor is of another list.
	h.plays(t, `GET /v1/addresses?after=$CURSOR -> 400 is not the field \"next\"`,
		"$CURSOR", ownerCursor("net1", "web"))
	for _, target := range []string{"/v1/networks", "/v1/subnets", "/v1/leases", "/v1/reservations", "/v1/addresses",
		"/v1/networks/net1/subnets", "/v1/networks/net1/pools", "/v1/networks/net1/exclusions",
		"/v1/networks/net1/reservations"} {
		for _, q := range []string{"limit=0", "limit=-1", "limit=1001", "limit=many", "after=%21", "after=" +
			cursor("a", "b", "c"), "after=" + cursor("\x00", "nothing"), "after=" + cursor("", "nothing")} {
			h.plays(t, `GET $TARGET?$QUERY -> 400 "code":"invalid"`, "$TARGET", target, "$QUERY", q)
		}
	}
}

// The client's lists are complete, whatever the number of pages.
func TestClientFollowsPages(t *testing.T) {
	h := start(t, nil)
	h.planned(t)
	const owners, each = 20, 60
	wishes := make([]string, each)
	for slot := range wishes {
		wishes[slot] = fmt.Sprintf(`{"slot": %d}`, slot)
	}
	edits := `{"op": "network.create", "name": "big", "subnets": [{"cidr": "10.8.0.0/16", "pool": true}]}`
	for i := range owners {
		edits += fmt.Sprintf(`, {"op": "reservation.add", "network": "big", "owner": "shop/web/%d", "wishes": [%s]}`, i,
			strings.Join(wishes, ","))
	}
	h.plays(t, "edit $EDITS -> 200", "$EDITS", edits)
	for _, network := range []string{"", "big"} {
		all, err := h.client.Reservations(t.Context(), network, "")
		must(t, err)
		own, err := h.client.Reservations(t.Context(), network, "shop/web/7")
		must(t, err)
		if len(all) != owners*each || len(own) != each || own[0].Owner != "shop/web/7" {
			t.Errorf("of network %q: %d reservations, and %d of one owner", network, len(all), len(own))
		}
	}
	env, err := h.client.Environment(t.Context(), "big", "shop/web/7")
	must(t, err)
	if len(env) < each {
		t.Errorf("%d variables", len(env))
	}
	if _, err := h.client.Reservations(t.Context(), "nothing", ""); code(err) != api.CodeNotFound {
		t.Errorf("of a network that is not there: %v", err)
	}
	nets, err := h.client.Networks(t.Context(), "local")
	must(t, err)
	if len(nets) != 2 || nets[0].Name != "big" || nets[1].Subnets[0].Name != "lan" {
		t.Errorf("networks: %+v", nets)
	}
}

// Events can be filtered by network and verb, as far back as there are any.
func TestEventsChosen(t *testing.T) {
	h := start(t, nil)
	h.populated(t)
	for c := range ipamtest.Rows(2, `
		verb=space.create | space.create space.create space.create
		verb=space.create&last=2 | space.create space.create more
		network=net05&verb=network.create&last=1 | network.create
		network=net05&verb=network.create,space.create | network.create
		verb=pool.release
	`) {
		list, all := into[api.EventList](t, h.plays(t, "GET /v1/events?"+c[0]+" -> 200")), ""
		for _, e := range list.Events {
			all += e.Verb.String() + " "
		}
		if list.More {
			all += "more"
		}
		if strings.TrimSpace(all) != c[1] {
			t.Errorf("%s: %q", c[0], all)
		}
	}
	h.plays(t, `GET /v1/events?verb=pool.explode -> 400 pool.explode`)
}

// A follower hears only the events that it chose.
func TestFollowChosen(t *testing.T) {
	h := start(t, nil)
	h.populated(t)
	lines := h.stream(t, "GET /v1/events?follow=true&verb=network.create&network=net05&last=1")
	first := line(t, lines)
	// The follower has its first line, so it is connected.
	h.plays(t, `edit {"op": "network.create", "name": "other"}, {"op": "network.modify", "network": "net05",
		"name": "other5"}, {"op": "network.create", "name": "net05"} -> 200`)
	for _, got := range []string{first, line(t, lines)} {
		if !strings.Contains(got, `"verb":"network.create"`) || !strings.Contains(got, `"network":"net05"`) {
			t.Errorf("a line that was not chosen: %s", got)
		}
	}
}
