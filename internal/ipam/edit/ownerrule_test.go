package edit_test

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"berth/internal/ipam"
	"berth/internal/ipam/ipamtest"
)

// The owners that a name can mean, the likeliest first.
func TestOwners(t *testing.T) {
	n := &ipam.Network{Rules: []ipam.OwnerRule{
		{Pattern: "api-*", Owner: "prod/api/*"},
		{Pattern: "*.old-*", Owner: "*/*"},
		{Pattern: "x*y*z", Owner: "*-*"},
		{Pattern: "pool-*", Pool: "web"},
		{Pattern: "exact", Owner: "other"},
		{Pattern: "exa*", Owner: "late/*"}, // of two that match the first one counts
	}}
	for row := range ipamtest.Rows(2, `
		web | web
		shop-web-1 | shop-web-1 shop/web/1
		shop_web_1 | shop_web_1 shop/web/1
		my-shop-web-1 | my-shop-web-1 my/shop-web/1 my-shop/web/1
		my-shop_web_1 | my-shop_web_1 my-shop/web/1
		shop_my-web_12 | shop_my-web_12 shop/my-web/12
		0123456789ab_shop-web-1 | shop-web-1 0123456789ab_shop-web-1 shop/web/1
		0123456789ab_shop_web_1 | shop_web_1 0123456789ab_shop_web_1 shop/web/1
		0123456789ab_web | web 0123456789ab_web
		0123456789ab_ | 0123456789ab_
		shop-web-0 | shop-web-0
		shop-web-01 | shop-web-01
		shop-web- | shop-web-
		web-1 | web-1
		-web-1 | -web-1
		shop--1 | shop--1
		shop/web/1 | shop/web/1
		api-7 | prod/api/7 api-7
		api-blue-7 | prod/api/blue-7 api-blue-7 api/blue/7
		api- | api-
		a.old-b | a/b a.old-b
		x1y2z | 1-2 x1y2z
		# the first star is empty, which names nobody
		xyyz | xyyz
		xyz | xyz
		pool-a | pool-a
		exact | other exact
		inexact | inexact
		exact1 | late/ct1 exact1
	`) {
		if got := strings.Join(slices.Collect(n.Owners(row[0])), " "); got != row[1] {
			t.Errorf("%s: %q, want %q", row[0], got, row[1])
		}
	}
	if got := slices.Collect(n.Owners("")); len(got) > 0 {
		t.Errorf("no name means %q", got)
	}
	if got := slices.Collect((*ipam.Network)(nil).Owners("shop-web-1")); !slices.Equal(got,
		[]string{"shop-web-1", "shop/web/1"}) {
		t.Errorf("without a network: %q", got)
	}
}

// The time to look at a name is bounded by its length.
func TestOwnersOfLongNames(t *testing.T) {
	rules := []ipam.OwnerRule{{Pattern: "a*a*a*a*b", Owner: "x/*"}}
	for _, name := range []string{strings.Repeat("a", 255), strings.Repeat("-", 254) + "1", strings.Repeat("a-", 127) +
		"1", strings.Repeat("_", 255), "0123456789ab_" + strings.Repeat("0123456789ab_", 18)} {
		n := &ipam.Network{Rules: rules}
		count := 0
		for owner := range n.Owners(name) {
			if count++; owner == "" || count > 300 {
				t.Fatalf("%.20s: owner %d is %q", name, count, owner)
			}
		}
	}
}

// Rules keep their order, are replaced and removed by their pattern, and are refused if they can have no effect.
func TestOwnerRulesEdited(t *testing.T) {
	r := ipamtest.New(t)
	r.Run(`
		network n subnet=192.0.2.0/24,pool rule=web-*=pool:web+db-*=owner:store/*
		network.set n rule=api=owner:x/y,pool:web+web-*=pool:rest
	`)
	if got, want := fmt.Sprint(r.Show("n").OwnerRules), "[web-*=pool:rest db-*=owner:store/* "+
		"api=pool:web,owner:x/y]"; got != want {
		t.Errorf("the rules are %s, want %s", got, want)
	}
	r.Run(`
		network.set n rule=db-*
		network.set n rule=db-* ! notfound; db-*
		network.set n rule==pool:web ! invalid
		network.set n rule=a**b=pool:web ! invalid; a**b
		network.set n rule=a*b*c*d*e*=pool:web ! invalid; stars
		network.set n rule=a_b=owner:* ! invalid; stars
		network.set n rule=a*=owner:*/* ! invalid; stars
		network.set n rule=a*=owner:/x ! invalid
		network.set n rule=a*=pool:all ! invalid; all
		network.set n rule=a$b=pool:web ! invalid; a$b
		network m rule=a**b=pool:web ! invalid; a**b
	`)
	if got, want := fmt.Sprint(r.Show("n").OwnerRules), "[web-*=pool:rest api=pool:web,owner:x/y]"; got != want {
		t.Errorf("the rules are %s, want %s", got, want)
	}
}

// A rule's pool also applies to reservations of an owner, in the families that have such a pool. A wish for a pool
// or an address goes before it.
func TestOwnerRulesOfReservations(t *testing.T) {
	r := ipamtest.New(t)
	r.Run(`
		network n subnet=192.0.2.0/24+2001:db8::/64,pool rule=web*=pool:web+shop/web/*=pool:web+lost=pool:nowhere
		pool n 192.0.2.4+4
		pool n 192.0.2.20+6 name=web
		reserve n web1 -> 192.0.2.20
		reserve n shop/web/1 -> 192.0.2.21
		reserve n web2 192.0.2.99 -> 192.0.2.99
		reserve n db -> 192.0.2.4
		reserve n lost -> 192.0.2.5
		bind n web3 shop/web/2 db2
		owned n -> db=192.0.2.4:a lost=192.0.2.5:a db2=192.0.2.6:a web1=192.0.2.20:a shop/web/1=192.0.2.21:a web3=192.0.2.22:a shop/web/2=192.0.2.23:a web2=192.0.2.99
	`)
	r.Line(`edit reservation.add {"network": "n", "owner": "web4", "wishes": [{"family": 4}, {"slot": 1, "family": 6}]}` +
		` -> 192.0.2.24 2001:db8::1`)
	r.Run(`
		attach B net=n six
		ask B web9 mac=9 -> 2001:db8::2
		attach A net=n cidr=192.0.2.0/24
		ask A shop-web-2 mac=1 -> 192.0.2.23
		ask A web5 mac=2 -> 192.0.2.25
		ask A web6 mac=3 ! exhausted; =NotEnoughCapacity; web
		ask A lost mac=4 -> 192.0.2.5
		ask A other mac=5 -> 192.0.2.7
	`)
}

// A pattern matches what a regular expression with non-greedy stars matches.
func TestOwnerRulesMatch(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		pattern := strings.ReplaceAll(rapid.StringMatching(`[ab*]{1,8}`).Draw(t, "pattern"), "**", "*")
		name := rapid.StringMatching(`[ab]{1,10}`).Draw(t, "name")
		stars := strings.Count(pattern, "*")
		if stars == 0 {
			return
		}
		n := &ipam.Network{Rules: []ipam.OwnerRule{{Pattern: pattern, Owner: "x" + strings.Repeat(".*", stars)}}}
		want := name
		if found := regexp.MustCompile("^" + strings.ReplaceAll(pattern, "*", "(.*?)") +
			"$").FindStringSubmatch(name); found != nil {
			want = "x." + strings.Join(found[1:], ".")
		}
		for got := range n.Owners(name) {
			if got != want {
				t.Fatalf("%s makes %s of %s, and not %s", pattern, got, name, want)
			}
			return
		}
	})
}

// A rule is written as it is read. Anything else is refused.
func FuzzParseOwnerRule(f *testing.F) {
	for _, text := range []string{"web-*=pool:web", "web-*=owner:shop/web/*", "a=pool:b,owner:c/d", "*=pool:*", "=",
		"a=b", "a=pool:", "a=owner:/", "a**=pool:x", "a=pool:b,pool:c"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		r, err := ipam.ParseOwnerRule(text)
		if err != nil {
			if ipamtest.KindOf(err) != "invalid" {
				t.Errorf("%q: %v", text, err)
			}
			return
		}
		again, err := ipam.ParseOwnerRule(r.String())
		if err != nil || again != r {
			t.Errorf("%q is %+v, which is written %q: %+v, %v", text, r, r.String(), again, err)
		}
		n := &ipam.Network{Rules: []ipam.OwnerRule{r}}
		for owner := range n.Owners(text) {
			if owner == "" {
				t.Errorf("%q names nobody as an owner", text)
			}
		}
	})
}
