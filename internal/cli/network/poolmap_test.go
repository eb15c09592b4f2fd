package network

import (
	"bytes"
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"berth/internal/alloc"
	"berth/internal/ipam"

	"github.com/google/go-cmp/cmp"
	"go4.org/netipx"
	"pgregory.net/rapid"
)

// drawn draws a map as network show does, without the rest of the page.
func drawn(start, m string) string {
	var b strings.Builder
	for _, row := range foldMap(netip.MustParseAddr(start), m) {
		fmt.Fprintf(&b, "%s %s\n", row.label, row.text)
	}
	return b.String()
}

func dots(n int) string { return strings.Repeat(".", n) }

func taken(n int) string { return strings.Repeat("X", n) }

// GA-23: how a map is folded, and what a folded line means.
func TestFoldMap(t *testing.T) {
	for _, c := range []struct{ name, start, m, want string }{
		{"C48: a /28 with its gateway", "192.0.2.0", "XX.............X", "192.0.2.0 XX.............X\n"},
		{"one address", "192.0.2.9", "X", "192.0.2.9 X\n"},
		{"no address", "192.0.2.9", "", ""},
		{"a full line", "192.0.2.0", taken(64), "192.0.2.0 " + taken(64) + "\n"},
		{"one more", "192.0.2.0", taken(64) + ".", "192.0.2.0 " + taken(64) + "\n192.0.2.64 .\n"},
		{"lines begin where the pool does", "192.0.2.10", dots(91), "192.0.2.10 " + dots(64) + "\n192.0.2.74 " +
			dots(27) + "\n"},
		{"four lines are drawn", "192.0.2.0", dots(256), "192.0.2.0 " + dots(64) + "\n192.0.2.64 " + dots(64) +
			"\n192.0.2.128 " + dots(64) + "\n192.0.2.192 " + dots(64) + "\n"},
		{"more are told", "192.0.2.0", dots(257), "192.0.2.0 all free to 192.0.3.0: 5 lines, 257 addresses\n"},
		{"the taken too", "10.0.0.0", taken(65536),
			"10.0.0.0 all taken to 10.0.255.255: 1024 lines, 65536 addresses\n"},
		{"between drawn ones", "10.0.255.0", "X" + dots(63) + dots(640) + "." + taken(63) + dots(3),
			"10.0.255.0 X" + dots(63) + "\n10.0.255.64 all free to 10.1.1.191: 10 lines, 640 addresses\n10.1.1.192 ." +
				taken(63) + "\n10.1.2.0 ...\n"},
		{"one after the other", "10.0.0.0", dots(320) + taken(322),
			"10.0.0.0 all free to 10.0.1.63: 5 lines, 320 addresses\n10.0.1.64 all taken to 10.0.2.129: 6 lines, 322 " +
				"addresses\n"},
		{"what is left of a line is drawn", "10.0.0.0", dots(330) + "X",
			"10.0.0.0 all free to 10.0.1.63: 5 lines, 320 addresses\n10.0.1.64 ..........X\n"},
		{"IPv6", "2001:db8::ffff:ffff:ffc0", dots(64) + "X", "2001:db8::ffff:ffff:ffc0 " + dots(64) +
			"\n2001:db8:0:0:1:: X\n"},
		{"to the last address there is", "255.255.255.254", "X.", "255.255.255.254 X.\n"},
	} {
		if diff := cmp.Diff(c.want, drawn(c.start, c.m)); diff != "" {
			t.Errorf("%s:\n%s", c.name, diff)
		}
	}
}

// A folded map can be read back in full, and each line begins with its own address. GA-23
func TestFoldMapLosesNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var m strings.Builder
		for _, run := range rapid.SliceOfN(rapid.IntRange(1, 500), 0, 8).Draw(t, "runs") {
			m.WriteString(strings.Repeat(rapid.SampledFrom([]string{".", "X", "X."}).Draw(t, "what"), run))
		}
		start := netip.MustParseAddr(rapid.SampledFrom([]string{"10.0.0.0", "10.255.254.77", "2001:db8::fff0"}).Draw(t,
			"start"))
		var back strings.Builder
		next := start
		for _, row := range foldMap(start, m.String()) {
			if row.label != next.String() {
				t.Fatalf("a line begins with %s and not with %s", row.label, next)
			}
			text := row.text
			if strings.HasPrefix(text, "all ") {
				text = readRun(t, next, text)
			} else if len(text) > foldAt {
				t.Fatalf("a line has %d characters", len(text))
			}
			back.WriteString(text)
			for range text {
				next = next.Next()
			}
		}
		if back.String() != m.String() {
			t.Fatalf("%s\nis drawn as\n%s", m.String(), back.String())
		}
	})
}

// readRun expands a line that stands for several, and checks that its numbers agree.
func readRun(t *rapid.T, from netip.Addr, text string) string {
	var state string
	var lines, addresses int
	if _, err := fmt.Sscanf(text, "all %s to ", &state); err != nil {
		t.Fatalf("%q: %v", text, err)
	}
	_, counts, _ := strings.Cut(text, ": ")
	if _, err := fmt.Sscanf(counts, "%d lines, %d addresses", &lines, &addresses); err != nil {
		t.Fatalf("%q: %v", text, err)
	}
	_, end, _ := strings.Cut(text, " to ")
	end, _, _ = strings.Cut(end, ": ")
	size := alloc.Size(netipx.IPRangeFrom(from, netip.MustParseAddr(end)))
	if size.Int64() != int64(addresses) || (addresses+foldAt-1)/foldAt != lines || lines <= foldIn {
		t.Fatalf("%q begins at %s", text, from)
	}
	return strings.Repeat(map[string]string{"free": ".", "taken": "X"}[state], addresses)
}

// The page of a full network and of an empty one. GA-1, GA-23
func TestWriteNetwork(t *testing.T) {
	addr, prefix := netip.MustParseAddr, netip.MustParsePrefix
	id := ipam.ID{0xa1, 0xb2, 0xc3, 0xd4, 0, 0, 0x40, 0, 0x80, 15: 1}
	count := func(r string) ipam.Count {
		parsed, err := alloc.ParseRange(r)
		if err != nil {
			t.Fatal(err)
		}
		return ipam.Count{Int: alloc.Size(parsed)}
	}
	use := ipam.Use{StateCounts: ipam.StateCounts{Leased: 4, Reserved: 1}}
	full := ipam.NetworkInfo{ID: id, Name: "net1", Space: "local", Tags: map[string]string{"site": "a", "rack": "7"},
		MACPrefix: "aa:00:00",
		Links: []ipam.Link{{Host: "alpha", Mode: "bridged", Link: "br0"},
			{Host: "beta", Mode: "routed", Link: "100"}},
		Sticky: true, Quarantine: ipam.Duration(10 * time.Minute), Planned: true, Docker: 1, Use: use,
		Subnets: []ipam.SubnetPlan{
			{ID: id, Name: "lan", CIDR: prefix("192.0.2.0/24"), Gateway: addr("192.0.2.1"), DHCP: true, Use: use, Docker: 1,
				Pools: []ipam.PoolPlan{
					{Name: "front", Start: addr("192.0.2.10"), End: addr("192.0.2.100"), Map: "XX" + dots(48) +
						taken(5) + dots(36), Free: ipam.Count{Int: count("192.0.2.1+84").Int}},
					{Start: addr("192.0.2.128"), End: addr("192.0.2.129"), Map: "..", Free: count("192.0.2.128+2")}},
				Exclusions: []ipam.ExclusionPlan{{Start: addr("192.0.2.60"), End: addr("192.0.2.64"),
					Note: "printers\x1b[31m"}, {Start: addr("192.0.2.200"), End: addr("192.0.2.200")}}},
			{ID: id, CIDR: prefix("2001:db8::/64"),
				Pools: []ipam.PoolPlan{{Start: addr("2001:db8::"), End: addr("2001:db8::ffff:ffff:ffff:ffff"),
					Free: count("2001:db8::1+18446744073709551615")}}},
			{ID: id, Name: "old", CIDR: prefix("198.51.100.0/30"), Gateway: addr("198.51.100.1")},
		}}
	for _, c := range []struct {
		n    ipam.NetworkInfo
		want string
	}{{full, fullPage}, {ipam.NetworkInfo{ID: id, Name: "wire", Space: "local", Sticky: false}, barePage}} {
		var b bytes.Buffer
		if err := writeNetwork(&b, &c.n); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(c.want, b.String()); diff != "" {
			t.Errorf("%s:\n%s", c.n.Name, diff)
		}
	}
}

const fullPage = `NETWORK net1
  id          a1b2c3d4-0000-4000-8000-000000000001
  space       local
  tags        rack=7,site=a
  mac prefix  aa:00:00
  link        on alpha: bridged br0
  link        on beta: routed 100
  policy      released addresses are kept for their last holder, quarantine 10m
  in use      4 held, 1 reserved, 1 Docker network

SUBNET 192.0.2.0/24  lan
  id          a1b2c3d4-0000-4000-8000-000000000001
  gateway     192.0.2.1
  dhcp        yes
  in use      4 held, 1 reserved, 1 Docker network
  POOL front  192.0.2.10-192.0.2.100  84 of 91 free
    192.0.2.10  XX................................................-----.........
    192.0.2.74  ...........................
  POOL 192.0.2.128/31  2 of 2 free
    192.0.2.128  ..
  EXCLUDED 192.0.2.60-192.0.2.64  printers?[31m
  EXCLUDED 192.0.2.200

SUBNET 2001:db8::/64
  id          a1b2c3d4-0000-4000-8000-000000000001
  gateway     none
  in use      0 held, 0 reserved, 0 Docker networks
  POOL 2001:db8::/64  practically all of 2^64 free; too many to draw

SUBNET 198.51.100.0/30  old
  id          a1b2c3d4-0000-4000-8000-000000000001
  gateway     198.51.100.1
  in use      0 held, 0 reserved, 0 Docker networks
  no pool: addresses are given only where they are asked for

X taken   - excluded   . free
`

const barePage = `NETWORK wire
  id          a1b2c3d4-0000-4000-8000-000000000001
  space       local
  policy      released addresses go to whoever is next
  in use      0 held, 0 reserved, 0 Docker networks
  made for    Docker; it ends with its last Docker network, unless it is edited
`
