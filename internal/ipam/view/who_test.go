package view_test

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"berth/internal/ipam"
	"berth/internal/ipam/ipamtest"
)

// whoFilter reads an address, a MAC as in mac=3, or a name; in SPACE; at TIME since the clock's beginning.
func whoFilter(text string) (f ipam.WhoFilter) {
	words := strings.Fields(text)
	for i := 1; i+1 < len(words); i += 2 {
		switch words[i] {
		case "in":
			f.Space = words[i+1]
		case "at":
			f.At = ipamtest.NewClock().Time.Add(mustDuration(words[i+1]))
		default:
			panic(text)
		}
	}
	if n := 0; len(words) > 0 {
		if _, err := fmt.Sscanf(words[0], "mac=%d", &n); err == nil {
			f.MAC = ipamtest.MAC(n)
		} else if f.Address, err = netip.ParseAddr(words[0]); err != nil {
			f.Name = words[0]
		}
	}
	return f
}

func mustDuration(text string) time.Duration {
	d, err := time.ParseDuration(text)
	if err != nil {
		panic(err)
	}
	return d
}

// tell writes a tenure as "lease automatic 192.0.2.1 web mac=1 0s-1m0s". An early one has a "?" before its
// beginning, and a current one has nothing after the dash.
func tell(t ipam.Tenure) string {
	words := []string{t.What, t.Kind, t.Address.String(), t.Name}
	if t.MAC != (ipam.MAC{}) {
		words = append(words, fmt.Sprintf("mac=%d", int(t.MAC[3])<<16|int(t.MAC[4])<<8|int(t.MAC[5])))
	}
	since := func(at time.Time) time.Duration { return at.Sub(ipamtest.NewClock().Time).Truncate(time.Second) }
	span := since(t.From).String() + "-"
	if !t.Until.IsZero() {
		span += since(t.Until).String()
	}
	if t.Early {
		span = "?" + span
	}
	return strings.Join(strings.Fields(strings.Join(append(words, span), " ")), " ")
}

// who asks questions, one per line: "QUESTION -> TENURE; TENURE".
func who(r *ipamtest.Stage, questions string) {
	r.T.Helper()
	for line := range ipamtest.Rows(1, questions) {
		question, want, _ := strings.Cut(line[0], "->")
		all, err := r.S.Who(ctx, whoFilter(question))
		if err != nil {
			r.T.Fatalf("who %s: %v", question, err)
		}
		var got []string
		for _, t := range all {
			got = append(got, tell(t))
		}
		if text := strings.Join(got, "; "); text != strings.TrimSpace(want) {
			r.T.Errorf("who %s:\n%s\nand not\n%s", question, text, want)
		}
	}
}

// TestWho: who had an address, and which ones an owner had, for all that begins and ends a tenure.
func TestWho(t *testing.T) {
	for _, c := range []struct{ name, steps, questions string }{
		{"an address goes from hand to hand", `
			network net1 subnet=192.0.2.0/24,pool
			attach p net=net1
			wait 1m
			ask p web mac=1 -> 192.0.2.1
			wait 1m
			back p 192.0.2.1
			wait 1m
			ask p db mac=2 ip=192.0.2.1
			ask p cache mac=3 ip=192.0.2.7`, `
			192.0.2.1 -> lease automatic 192.0.2.1 web mac=1 1m0s-2m0s; lease static 192.0.2.1 db mac=2 3m0s-
			192.0.2.1 at 59s ->
			192.0.2.1 at 1m1s -> lease automatic 192.0.2.1 web mac=1 1m0s-2m0s
			192.0.2.1 at 2m1s ->
			192.0.2.1 at 3m1s -> lease static 192.0.2.1 db mac=2 3m0s-
			192.0.2.1 at 300h -> lease static 192.0.2.1 db mac=2 3m0s-
			192.0.2.1 in local -> lease automatic 192.0.2.1 web mac=1 1m0s-2m0s; lease static 192.0.2.1 db mac=2 3m0s-
			192.0.2.1 in global ->
			web -> lease automatic 192.0.2.1 web mac=1 1m0s-2m0s
			mac=2 -> lease static 192.0.2.1 db mac=2 3m0s-
			192.0.2.2 ->
			198.51.100.1 ->
			nobody ->
			mac=9 ->
		`},
		{"one has several", `
			network net1 subnet=192.0.2.0/24,pool
			network net2 subnet=2001:db8::/64,pool
			attach p net=net1
			attach six net=net2 six
			ask p web mac=1
			wait 1m
			ask six web mac=1 ip=2001:db8::9
			wait 1m
			ask p web mac=4 ip=192.0.2.9
			back p 192.0.2.1`, `
			web -> lease automatic 192.0.2.1 web mac=1 0s-2m0s; lease static 2001:db8::9 web mac=1 1m0s-; lease static 192.0.2.9 web mac=4 2m0s-
			mac=1 -> lease automatic 192.0.2.1 web mac=1 0s-2m0s; lease static 2001:db8::9 web mac=1 1m0s-
			web at 90s -> lease automatic 192.0.2.1 web mac=1 0s-2m0s; lease static 2001:db8::9 web mac=1 1m0s-
		`},
		{"owners of reservations", `
			network net1 subnet=192.0.2.0/24,pool
			reserve net1 shop/web/1 192.0.2.5
			reserve net1 shop/db/1
			reserve net1 02-00-00-00-00-03 192.0.2.6
			wait 1m
			attach p net=net1
			ask p shop/web/1 mac=1 -> 192.0.2.5
			wait 1m
			unreserve net1 shop/web/1
			wait 1m
			back p 192.0.2.5
			reserve net1 other 192.0.2.5`, `
			shop/web/1 -> reservation static 192.0.2.5 shop/web/1 0s-2m0s; lease automatic 192.0.2.5 shop/web/1 mac=1 1m0s-3m0s
			shop/db/1 -> reservation automatic 192.0.2.1 shop/db/1 0s-
			mac=3 -> reservation static 192.0.2.6 02:00:00:00:00:03 0s-
			02-00-00-00-00-03 -> reservation static 192.0.2.6 02:00:00:00:00:03 0s-
			192.0.2.5 -> reservation static 192.0.2.5 shop/web/1 0s-2m0s; lease automatic 192.0.2.5 shop/web/1 mac=1 1m0s-3m0s; reservation static 192.0.2.5 other 3m0s-
			192.0.2.5 at 2m30s -> lease automatic 192.0.2.5 shop/web/1 mac=1 1m0s-3m0s
		`},
		{"what is no container", `
			network net1 subnet=192.0.2.0/24,pool
			take net1 rtr 0:ip0=192.0.2.250,ip1=pool
			wait 1m
			release net1 rtr 192.0.2.1
			attach p net=net1
			ask p ip=192.0.2.30`, `
			rtr -> lease external 192.0.2.250 rtr 0s-; lease external 192.0.2.1 rtr 0s-1m0s
			192.0.2.30 -> lease auxiliary 192.0.2.30 1m0s-
		`},
		{"a gateway that is changed", `
			network net1 subnet=192.0.2.0/24,gw=192.0.2.1,name=lan
			wait 1m
			subnet.set net1 lan gw=192.0.2.254
			wait 1m
			subnet.set net1 lan cidr=192.0.2.0/25 gw=192.0.2.1
			wait 1m
			subnet.set net1 lan cidr=192.0.2.0/24
			subnet.set net1 lan name=wan
			wait 1m
			subnet.set net1 wan gw=
			wait 1m
			subnet.set net1 wan gw=192.0.2.254`, `
			192.0.2.1 -> lease gateway 192.0.2.1 0s-1m0s; lease gateway 192.0.2.1 2m0s-4m0s
			192.0.2.254 -> lease gateway 192.0.2.254 1m0s-2m0s; lease gateway 192.0.2.254 5m0s-
		`},
		{"a gateway of one Docker network", `
			attach p cidr=192.0.2.0/24
			attach q cidr=192.0.2.0/24
			gateway p
			gateway p ip=192.0.2.9
			gateway q ip=192.0.2.10
			wait 1m
			detach p`, `
			192.0.2.9 -> lease gateway 192.0.2.9 0s-1m0s
			192.0.2.10 -> lease gateway 192.0.2.10 0s-
			192.0.2.1 -> lease gateway 192.0.2.1 0s-1m0s
		`},
		{"a Docker network that ends takes its subnet along", `
			attach p cidr=192.0.2.0/24
			attach q cidr=198.51.100.0/24
			gateway p
			ask p web mac=1
			ask q db mac=2
			wait 1m
			detach p
			wait 1m
			attach p cidr=192.0.2.0/25
			ask p web mac=1 ip=192.0.2.2`, `
			192.0.2.1 -> lease gateway 192.0.2.1 0s-1m0s
			192.0.2.2 -> lease automatic 192.0.2.2 web mac=1 0s-1m0s; lease static 192.0.2.2 web mac=1 2m0s-
			mac=2 -> lease automatic 198.51.100.1 db mac=2 0s-
		`},
		{"one of two Docker networks ends", `
			attach p cidr=192.0.2.0/24
			attach q cidr=192.0.2.0/24
			ask p web mac=1
			ask q db mac=2
			wait 1m
			detach p`, `
			web -> lease automatic 192.0.2.1 web mac=1 0s-1m0s
			db -> lease automatic 192.0.2.2 db mac=2 0s-
		`},
		{"a network goes with its reservations", `
			network net1 subnet=192.0.2.0/24,pool
			network net2 subnet=198.51.100.0/24
			reserve net1 web 192.0.2.5
			reserve net2 web 198.51.100.5
			wait 1m
			network.rm net1 force
			wait 1m
			network net1 subnet=192.0.2.0/24
			reserve net1 web 192.0.2.5`, `
			192.0.2.5 -> reservation static 192.0.2.5 web 0s-1m0s; reservation static 192.0.2.5 web 2m0s-
			198.51.100.5 -> reservation static 198.51.100.5 web 0s-
		`},
		{"a subnet that has another size by its end", `
			network net1 subnet=192.0.2.0/24,name=lan,gw=192.0.2.1
			subnet.set net1 lan cidr=192.0.2.0/26
			wait 1m
			subnet.rm net1 lan`, `
			192.0.2.1 -> lease gateway 192.0.2.1 0s-1m0s
		`},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := ipamtest.New(t)
			r.Run(c.steps)
			who(r, c.questions)
		})
	}
}

// TestWhoByAnyForm: Who finds a replica, and no other, by its names as Compose writes them and by its owner.
func TestWhoByAnyForm(t *testing.T) {
	r := ipamtest.New(t)
	r.Run(`
		network net1 subnet=192.0.2.0/24,pool
		reserve net1 shop/web/1 192.0.2.50
		attach p net=net1
		ask p shop-web-1 mac=1
		ask p shop_web_2 mac=2
		ask p shop-web-11 mac=3
		ask p 0123456789ab_shop-db-1 mac=4`)
	for names, want := range map[string]string{
		"shop-web-1 shop_web_1 shop/web/1":                     "[192.0.2.50 lease shop-web-1 192.0.2.50 reservation shop/web/1]",
		"shop-web-2 shop_web_2 shop/web/2":                     "[192.0.2.1 lease shop_web_2]",
		"shop-db-1 shop_db_1 shop/db/1 0123456789ab_shop-db-1": "[192.0.2.3 lease 0123456789ab_shop-db-1]",
		"shop-web shop/web shop web-1":                         "[]",
	} {
		for _, name := range strings.Fields(names) {
			all, err := r.S.Who(ctx, ipam.WhoFilter{Name: name})
			must(t, err)
			got := []string{}
			for _, one := range all {
				got = append(got, fmt.Sprint(one.Address, " ", one.What, " ", one.Name))
			}
			slices.Sort(got)
			if fmt.Sprint(got) != want {
				t.Errorf("%s: %q and not %s", name, got, want)
			}
		}
	}
}
