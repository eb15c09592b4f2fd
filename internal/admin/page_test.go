package admin

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"testing"

	"berth/internal/admin/api"
	"berth/internal/admin/client"
	"berth/internal/ipam"
	"berth/internal/ipam/ipamtest"
)

// populated makes networks in two spaces, subnets, pools, exclusions, reservations, taken addresses and leases, some
// tens of each.
func (h *house) populated(t *testing.T) {
	t.Helper()
	h.furnish(t)
	var edits, lab []ipam.Edit
	for i := range 30 {
		name := fmt.Sprintf("net%02d", i)
		space, to := ipam.LocalSpace, &edits
		if i%2 == 1 {
			space, to = "lab", &lab
		}
		*to = append(*to, &ipam.CreateNetwork{Name: name, Space: space,
			Subnets: []ipam.SubnetSpec{{CIDR: netip.MustParsePrefix(fmt.Sprintf("10.7.%d.0/24", i)), Pool: true}}},
			&ipam.AddReservation{Network: name, Owner: "web", Wishes: []ipam.Wish{{Slot: 0}, {Slot: 1}}},
			&ipam.TakeAddress{Network: name, Owner: "rtr", Interface: ipam.Interface{Wishes: []ipam.Wish{{Slot: 0}}}})
	}
	for i := range 30 {
		block := netip.MustParsePrefix(fmt.Sprintf("10.8.%d.0/24", i))
		at := block.Addr().Next()
		edits = append(edits, &ipam.AddSubnet{Network: "net00", SubnetSpec: ipam.SubnetSpec{CIDR: block}},
			&ipam.AddPool{Network: "net00", Range: addrs(at)},
			&ipam.AddExclusion{Network: "net00", Range: addrs(at.Next())})
	}
	// Owners in networks of which somebody else chooses the addresses, one of which is recorded.
	for _, name := range []string{"dyn1", "dyn2"} {
		edits = append(edits, &ipam.CreateNetwork{Name: name, Type: "dynamic",
			Subnets: []ipam.SubnetSpec{{CIDR: netip.MustParsePrefix("10.9." + name[3:] + ".0/24")}}},
			&ipam.AddReservation{Network: name, Owner: "dynamic/1"},
			&ipam.AddReservation{Network: name, Owner: "dynamic/2"},
			&ipam.TakeAddress{Network: name, Owner: "dynamic/2",
				Interface: ipam.Interface{Wishes: []ipam.Wish{{Address: netip.MustParseAddr("10.9." + name[3:] +
					".7")}}}})
	}
	for _, all := range [][]ipam.Edit{edits, lab} { // which may be two stores'
		_, err := h.client.Edit(t.Context(), client.EditOptions{}, all...)
		must(t, err)
	}
}

func addrs(a netip.Addr) (r ipam.Range) {
	if err := r.UnmarshalText([]byte(a.String())); err != nil {
		panic(err)
	}
	return r
}

// Every list comes in pages which together are the whole, each item once, in the order of the whole, through the cursor
// of the answer and its Link alike.
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
func (h *house) page(t *testing.T, target, list string, limit int) (items []string,
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
	var answer map[string]json.RawMessage
	must(t, json.Unmarshal([]byte(got.body), &answer))
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
func (h *house) paged(t *testing.T, target, list string, limit int) (all []string) {
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

// A list that changes between two pages is gone on with behind the same place, though the item there is gone.
func TestPagesOverChanges(t *testing.T) {
	h := start(t, nil)
	h.populated(t)
	for _, c := range []struct {
		target, list, gone, want string
		edits                    []ipam.Edit
	}{
		{"/v1/networks", "networks", `"net01"`, `"net04"`, []ipam.Edit{
			&ipam.RemoveReservation{Network: "net01", Owner: "web"},
			&ipam.ReleaseAddress{Network: "net01", Owner: "rtr"}, &ipam.RemoveNetwork{Network: "net01"}}},
		{"/v1/networks/net00/subnets", "subnets", `"10.8.1.0/24"`, `"10.8.2.0/24"`,
			[]ipam.Edit{&ipam.RemoveSubnet{Network: "net00", Subnet: "10.8.1.0/24"}}},
		{"/v1/reservations", "reservations", `"10.7.0.2"`, `"10.7.2.1"`,
			[]ipam.Edit{&ipam.RemoveReservation{Network: "net00", Owner: "web",
				Address: netip.MustParseAddr("10.7.0.2")}}},
	} {
		var next string
		for last, pages := "", 0; !strings.Contains(last, c.gone); pages++ {
			target := c.target
			if next != "" {
				target += "?after=" + url.QueryEscape(next)
			}
			var items []string
			if items, next = h.page(t, target, c.list, 1); next == "" || pages > 100 {
				t.Fatalf("%s has no %s", c.target, c.gone)
			}
			last = items[0]
		}
		_, err := h.client.Edit(t.Context(), client.EditOptions{}, c.edits...)
		must(t, err)
		items, _ := h.page(t, c.target+"?after="+url.QueryEscape(next), c.list, 3)
		if text := strings.Join(items, ""); !strings.Contains(text, c.want) || strings.Contains(text, c.gone) {
			t.Errorf("%s behind %s, which is gone: %s", c.target, c.gone, text)
		}
	}
}

func TestBadPages(t *testing.T) {
	h := start(t, nil)
	h.planned(t)
	// it is of another list
	h.plays(t, `GET /v1/addresses?after=$OWNERCURSOR -> 400 is not the \"next\"`, "$OWNERCURSOR", ownerCursor("net1", "web"))
	for _, target := range []string{"/v1/networks", "/v1/subnets", "/v1/leases", "/v1/reservations", "/v1/addresses",
		"/v1/networks/net1/subnets", "/v1/networks/net1/pools", "/v1/networks/net1/exclusions",
		"/v1/networks/net1/reservations"} {
		for _, q := range []string{"limit=0", "limit=-1", "limit=1001", "limit=many", "after=%21", "after=" +
			cursor("a", "b", "c"), "after=" + cursor("\x00", "nothing"), "after=" + cursor("", "nothing")} {
			if p := h.play(t,
				step{method: "GET", target: target + "?" + q, status: 400}).problem(t); p.Code != api.CodeInvalid {
				t.Errorf("%s?%s: %+v", target, q, p)
			}
		}
	}
}

// The client's lists are whole, however many pages they have.
func TestClientFollowsPages(t *testing.T) {
	h := start(t, nil)
	h.planned(t)
	const owners, each = 20, 60
	edits := []ipam.Edit{&ipam.CreateNetwork{Name: "big",
		Subnets: []ipam.SubnetSpec{{CIDR: netip.MustParsePrefix("10.8.0.0/16"), Pool: true}}}}
	for i := range owners {
		wishes := make([]ipam.Wish, each)
		for slot := range wishes {
			wishes[slot].Slot = slot
		}
		edits = append(edits, &ipam.AddReservation{Network: "big", Owner: fmt.Sprintf("shop/web/%d", i),
			Wishes: wishes})
	}
	_, err := h.client.Edit(t.Context(), client.EditOptions{}, edits...)
	must(t, err)
	for _, network := range []string{"", "big"} {
		all, err := h.client.Reservations(t.Context(), network, "")
		must(t, err)
		if len(all) != owners*each {
			t.Errorf("of network %q: %d reservations, want %d", network, len(all), owners*each)
		}
		own, err := h.client.Reservations(t.Context(), network, "shop/web/7")
		must(t, err)
		if len(own) != each || own[0].Owner != "shop/web/7" {
			t.Errorf("of network %q and one owner: %d", network, len(own))
		}
	}
	env, err := h.client.Environment(t.Context(), "big", "shop/web/7")
	must(t, err)
	if len(env) < each {
		t.Errorf("%d variables", len(env))
	}
	if _, err := h.client.Reservations(t.Context(), "nothing", ""); problemCode(err) != api.CodeNotFound {
		t.Errorf("of a network that is not there: %v", err)
	}
	nets, err := h.client.Networks(t.Context(), "local")
	must(t, err)
	if len(nets) != 2 || nets[0].Name != "big" || nets[1].Subnets[0].Name != "lan" {
		t.Errorf("networks: %+v", nets)
	}
}

func problemCode(err error) string {
	var p *api.Problem
	if !errors.As(err, &p) {
		return ""
	}
	return p.Code
}

// Events are chosen by network and verb, from as far back as there are any.
func TestEventsChosen(t *testing.T) {
	h := start(t, nil)
	h.populated(t)
	list := func(query string) (verbs []string, more bool) {
		t.Helper()
		got := h.play(t, step{method: "GET", target: "/v1/events?" + query, status: 200})
		var answer api.EventList
		must(t, json.Unmarshal([]byte(got.body), &answer))
		for _, e := range answer.Events {
			verbs = append(verbs, e.Verb.String())
		}
		return verbs, answer.More
	}
	if got, more := list("verb=space.create"); !slices.Equal(got,
		[]string{"space.create", "space.create", "space.create"}) || more {
		t.Errorf("the oldest: %q, %t", got, more)
	}
	if got, more := list("verb=space.create&last=2"); len(got) != 2 || !more {
		t.Errorf("the last two of the oldest: %q, %t", got, more)
	}
	if got, more := list("network=net05&verb=network.create&last=1"); !slices.Equal(got, []string{"network.create"}) ||
		more {
		t.Errorf("of one network: %q, %t", got, more)
	}
	if got, _ := list("network=net05"); len(got) < 3 || slices.Contains(got, "space.create") {
		t.Errorf("of one network: %q", got)
	}
	if got, more := list("verb=pool.release"); len(got) != 0 || more {
		t.Errorf("what has not been: %q, %t", got, more)
	}
	h.plays(t, `GET /v1/events?verb=pool.explode -> 400 pool.explode`)
}

// A follower hears of what was chosen and of nothing else.
func TestFollowChosen(t *testing.T) {
	h := start(t, nil)
	h.populated(t)
	res, err := h.open(t.Context(), "GET", "/v1/events?follow=true&verb=network.create&network=net05&last=1", nil)
	must(t, err)
	defer res.Body.Close()
	first := readLines(t, res.Body, 1)
	// The first line is here, so the follower is there.
	_, err = h.client.Edit(t.Context(), client.EditOptions{}, &ipam.CreateNetwork{Name: "other"},
		&ipam.ModifyNetwork{Network: "net05", Name: ptr("other5")},
		&ipam.CreateNetwork{Name: "net05"})
	must(t, err)
	for _, line := range append(first, readLines(t, res.Body, 1)...) {
		if !strings.Contains(string(line), `"verb":"network.create"`) ||
			!strings.Contains(string(line), `"network":"net05"`) {
			t.Errorf("a line that was not chosen: %s", line)
		}
	}
}

func ptr[T any](v T) *T { return &v }
