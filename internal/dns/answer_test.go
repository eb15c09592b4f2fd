package dns

import (
	"strings"
	"testing"

	"berth/internal/ipam"
	"berth/internal/ipam/ipamtest"

	"github.com/miekg/dns"
)

// The answer to each question (lan.md, "Names"; RFC 1034, 2308, 8482).
func TestAnswers(t *testing.T) {
	x := told(sample())
	fill := strings.NewReplacer("$Db", mark("back", "Db"), "$db", mark("back", "db"), "$soa", soa)
	for c := range ipamtest.Rows(3, fill.Replace(`
		# owners on their networks, in both families
		web.home.lan.example | A | NOERROR | 192.0.2.10
		web.home.lan.example | AAAA | NOERROR | 2001:db8:1::10
		WEB.Home.LAN.example | A | NOERROR | 192.0.2.10
		printer.home.lan.example | A | NOERROR | 192.0.2.11
		printer.home.lan.example | AAAA | NOERROR | SOA of lan.example.
		printer.home.lan.example | MX | NOERROR | SOA of lan.example.
		nobody.home.lan.example | A | NXDOMAIN | SOA of lan.example.
		x.web.home.lan.example | A | NXDOMAIN | SOA of lan.example.
		# replicas, and those of a service that run
		1.api.shop.home.lan.example | A | NOERROR | 192.0.2.20
		3.api.shop.home.lan.example | A | NOERROR | 192.0.2.22
		api.shop.home.lan.example | A | NOERROR | 192.0.2.21 | 192.0.2.20
		api.home.lan.example | A | NOERROR | 192.0.2.21 | 192.0.2.20
		shop-api-1.home.lan.example | A | NOERROR | 192.0.2.20
		shop-api-2.lan.example | A | NOERROR | 192.0.2.21
		api.shop.lan.example | A | NOERROR | 192.0.2.21 | 192.0.2.20
		api.lan.example | A | NOERROR | 192.0.2.21 | 192.0.2.20
		media-tv-1.home.lan.example | A | NOERROR | 192.0.2.30
		1.tv.media.home.lan.example | A | NOERROR | 192.0.2.30
		tv.media.home.lan.example | A | NOERROR | 192.0.2.30
		tv.lan.example | A | NOERROR | 192.0.2.30
		# nothing is at a name beneath which there are others, and it is there
		shop.home.lan.example | A | NOERROR | SOA of lan.example.
		home.lan.example | A | NOERROR | SOA of lan.example.
		# short names, where they are unique
		printer.lan.example | A | NOERROR | 192.0.2.11
		web.lan.example | A | NXDOMAIN | SOA of lan.example.
		# what is spelled otherwise than DNS has it, and whose name another one has
		db.back.lan.example | A | NOERROR | 10.20.3.4
		db-$Db.back.lan.example | A | NOERROR | 10.20.3.5
		db-$db.back.lan.example | A | NXDOMAIN | SOA of lan.example.
		my-old-box.back.lan.example | A | NOERROR | 10.20.3.7
		my-old-box.lan.example | A | NOERROR | 10.20.3.7
		# elastic addresses
		1.api.shop.elastic.lan.example | A | NOERROR | 203.0.113.2
		api.shop.elastic.lan.example | A | NOERROR | 203.0.113.2
		# the other way
		10.2.0.192.in-addr.arpa | PTR | NOERROR | web.home.lan.example.
		20.2.0.192.in-addr.arpa | PTR | NOERROR | 1.api.shop.home.lan.example.
		30.2.0.192.in-addr.arpa | PTR | NOERROR | media-tv-1.home.lan.example.
		5.3.20.10.in-addr.arpa | PTR | NOERROR | db-$Db.back.lan.example.
		2.113.0.203.in-addr.arpa | PTR | NOERROR | 1.api.shop.elastic.lan.example.
		0.1.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.1.0.0.0.8.b.d.0.1.0.0.2.ip6.arpa | PTR | NOERROR | web.home.lan.example.
		1.1.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.1.0.0.0.8.B.D.0.1.0.0.2.ip6.arpa | A | NXDOMAIN | SOA of 0.0.0.0.1.0.0.0.8.b.d.0.1.0.0.2.ip6.arpa.
		99.2.0.192.in-addr.arpa | PTR | NXDOMAIN | SOA of 2.0.192.in-addr.arpa.
		10.2.0.192.in-addr.arpa | A | NOERROR | SOA of 2.0.192.in-addr.arpa.
		x.10.2.0.192.in-addr.arpa | PTR | NXDOMAIN | SOA of 2.0.192.in-addr.arpa.
		010.2.0.192.in-addr.arpa | PTR | NXDOMAIN | SOA of 2.0.192.in-addr.arpa.
		2.0.192.in-addr.arpa | SOA | NOERROR | $soa
		2.0.192.in-addr.arpa | NS | NOERROR | ns.lan.example.
		3.20.10.in-addr.arpa | SOA | NOERROR | $soa
		20.10.in-addr.arpa | SOA | REFUSED
		# just behind 10.20.0.0/20
		0.16.20.10.in-addr.arpa | PTR | REFUSED
		9.113.0.203.in-addr.arpa | PTR | NXDOMAIN | SOA of 113.0.203.in-addr.arpa.
		1.0.0.127.in-addr.arpa | PTR | REFUSED
		# the zone itself
		lan.example | SOA | NOERROR | $soa
		lan.example | NS | NOERROR | ns.lan.example.
		lan.example | A | NOERROR | SOA of lan.example.
		ns.lan.example | A | NOERROR | 127.0.0.1
		ns.lan.example | AAAA | NOERROR | SOA of lan.example.
		# what is not ours
		example | A | REFUSED
		www.example.com | A | REFUSED
		flan.example | A | REFUSED
		web\.lan.example | A | REFUSED
		web\.home.lan.example | A | NXDOMAIN | SOA of lan.example.
		. | NS | REFUSED
		lan.example | AXFR | REFUSED
		lan.example | IXFR | REFUSED
		web.home.lan.example | ANY | NOERROR | "RFC8482" ""
		nobody.home.lan.example | ANY | NXDOMAIN | SOA of lan.example.
		10.2.0.192.in-addr.arpa | ANY | NOERROR | "RFC8482" ""
	`)) {
		if got := ask(x, c[0], c[1]); got != c[2] {
			t.Errorf("%s %s: %s; want %s", c[0], c[1], got, c[2])
		}
	}
}

const soa = "ns.lan.example. hostmaster.lan.example. 1800000001 5 5 60 1"

func mark(network, owner string) string {
	e := &entry{NamedAddress: ipam.NamedAddress{Owner: owner},
		area: &area{NamedRange: ipam.NamedRange{Space: "local", Network: network}}}
	return e.mark()
}

// The name of an elastic address follows the address: its owner has the name, and nobody else.
func TestElasticFollows(t *testing.T) {
	x := told(sample(), ipam.NameNews{Set: []ipam.NamedAddress{of(9, "203.0.113.2", "shop/api/2")}})
	for name, want := range map[string]string{
		"1.api.shop.elastic.lan.example": "NXDOMAIN | SOA of lan.example.",
		"2.api.shop.elastic.lan.example": "NOERROR | 203.0.113.2",
		"api.shop.elastic.lan.example":   "NOERROR | 203.0.113.2",
	} {
		if got := ask(x, name, "A"); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
	if got := ask(x, "2.113.0.203.in-addr.arpa", "PTR"); got != "NOERROR | 2.api.shop.elastic.lan.example." {
		t.Error(got)
	}
}

// The name of a service leaves out a replica that has stopped. The replica's own name keeps its reserved address.
// An owner that ends has no name. A successor does not get the owner's name before it runs (BO-13).
func TestStops(t *testing.T) {
	x := told(sample(), ipam.NameNews{Set: []ipam.NamedAddress{of(1, "192.0.2.21", "*shop/api/2"),
		of(1, "192.0.2.40", "*web")},
		Removed: []ipam.NamedAddress{{In: id(1), Address: of(1, "192.0.2.30", "x").Address}}})
	for row := range ipamtest.Rows(2, `
		api.shop.home.lan.example | NOERROR | 192.0.2.20
		2.api.shop.home.lan.example | NOERROR | 192.0.2.21
		web.home.lan.example | NOERROR | 192.0.2.10
		tv.media.home.lan.example | NXDOMAIN | SOA of lan.example.
		media.home.lan.example | NXDOMAIN | SOA of lan.example.
		tv.lan.example | NXDOMAIN | SOA of lan.example.
	`) {
		if got := ask(x, row[0], "A"); got != row[1] {
			t.Errorf("%s: %s, want %s", row[0], got, row[1])
		}
	}
}

// The server does not deny a name before it knows all names, nor while the shared store cannot be reached.
func TestNotYet(t *testing.T) {
	x := New("lan.example", stopped)
	if got := ask(x, "web.home.lan.example", "A"); got != "SERVFAIL" {
		t.Error("before anything was told:", got)
	}
	s := over(told(sample()))
	s.cfg.Service = &records{partial: ipam.ErrAway}
	for c := range ipamtest.Rows(3, `
		web.home.lan.example | A | NOERROR | 192.0.2.10
		x.home.lan.example | A | SERVFAIL
		x.home.lan.example | AAAA | SERVFAIL
		# a network of the shared store may have an owner of that name
		shop.lan.example | A | SERVFAIL
		99.2.0.192.in-addr.arpa | PTR | SERVFAIL
		# A client that asks for both families takes one failure for a failure of both (musl).
		tv.media.home.lan.example | AAAA | NOERROR | SOA of lan.example.
		web.back.lan.example | AAAA | NOERROR | SOA of lan.example.
		tv.media.lan.example | AAAA | NOERROR | SOA of lan.example.
		api.shop.home.lan.example | AAAA | NOERROR | SOA of lan.example.
		web.home.lan.example | TXT | NOERROR | SOA of lan.example.
		lan.example | A | NOERROR | SOA of lan.example.
		ns.lan.example | AAAA | NOERROR | SOA of lan.example.
		10.2.0.192.in-addr.arpa | A | NOERROR | SOA of 2.0.192.in-addr.arpa.
	`) {
		q := question(c[0]+".", dns.StringToType[c[1]])
		if got := summary(s.answer(q, loopback)); got != c[2] {
			t.Errorf("%s %s: %s, want %s", c[0], c[1], got, c[2])
		}
	}
}

// Clash names the owner whose name another one would have, for planners.
func TestClash(t *testing.T) {
	x := told(sample())
	for c := range ipamtest.Rows(4, `
		home | Web | web.home.lan.example | web
		# it has that name itself
		home | web
		# it has a name with a mark
		back | Db
		home | New | new.home.lan.example
		other | web | web.other.lan.example
		home | shop/api | api.shop.home.lan.example | shop/api/1
		back | my-old-box | my-old-box.back.lan.example | my.old_box
		home | shop/API/1 | 1.api.shop.home.lan.example | shop/api/1
	`) {
		if name, other := x.Clash("local", c[0], c[1]); name != c[2] || other != c[3] {
			t.Errorf("%s on %s: %s is that of %q, want %s of %q", c[1], c[0], name, other, c[2], c[3])
		}
	}
}

func TestParseZone(t *testing.T) {
	for text, want := range map[string]string{"lan.example": "lan.example", "Home.ARPA.": "home.arpa", "lan": "lan"} {
		if got, err := ParseZone(text); err != nil || got != want {
			t.Errorf("%q: %q, %v", text, got, err)
		}
	}
	for _, text := range []string{"", ".", "a..b", "a b", "-a", "a_b", "10.0.0.1", "10.in-addr.arpa", "a/b",
		strings.Repeat("a.", 60) + "b", strings.Repeat("a", 60)} {
		if got, err := ParseZone(text); err == nil {
			t.Errorf("%q is taken for %q", text, got)
		}
	}
}
