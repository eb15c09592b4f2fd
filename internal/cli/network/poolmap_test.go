package network

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/netip"
	"strings"
	"testing"

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
			"10.0.0.0 all held, quarantined or idle to 10.0.255.255: 1024 lines, 65536 addresses\n"},
		{"between drawn ones", "10.0.255.0", "X" + dots(63) + dots(640) + "." + taken(63) + dots(3),
			"10.0.255.0 X" + dots(63) + "\n10.0.255.64 all free to 10.1.1.191: 10 lines, 640 addresses\n10.1.1.192 ." +
				taken(63) + "\n10.1.2.0 ...\n"},
		{"one after the other", "10.0.0.0", dots(320) + taken(322),
			"10.0.0.0 all free to 10.0.1.63: 5 lines, 320 addresses\n10.0.1.64 all held, quarantined or idle to 10.0.2.129: 6 lines, 322 " +
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
	var lines, addresses int
	state, _, _ := strings.Cut(strings.TrimPrefix(text, "all "), " to ")
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
	return strings.Repeat(map[string]string{"free": ".", "held, quarantined or idle": "X"}[state], addresses)
}

// The page of a full network and of an empty one. GA-1, GA-23
func TestWriteNetwork(t *testing.T) {
	const id = `{"id": "a1b2c3d4-0000-4000-8000-000000000001", `
	for text, want := range map[string]string{
		`"name": "wire", "space": "local"}`: barePage,
		`"name": "net1", "space": "local", "tags": {"site": "a", "rack": "7"}, "mac_prefix": "aa:00:00",
	"links": [{"host": "alpha", "mode": "bridged", "link": "br0"}, {"host": "beta", "mode": "routed", "link": "100"}],
	"sticky": true, "quarantine": "10m", "planned": true, "docker": 1, "use": {"leased": 4, "reserved": 1, "reservations": 3},
	"subnets": [
		ID "name": "lan", "cidr": "192.0.2.0/24", "gateway": "192.0.2.1", "dhcp": true, "docker": 1,
			"use": {"leased": 4, "reserved": 1, "reservations": 3},
			"pools": [{"name": "front", "start": "192.0.2.10", "end": "192.0.2.100", "free": 84,
				"map": "XX` + dots(48) + taken(5) + dots(36) + `"},
				{"start": "192.0.2.128", "end": "192.0.2.129", "map": "..", "free": 2}],
			"exclusions": [{"start": "192.0.2.60", "end": "192.0.2.64", "note": "printers\u001b[31m"},
				{"start": "192.0.2.200", "end": "192.0.2.200"}]},
		ID "cidr": "2001:db8::/64", "pools": [{"start": "2001:db8::", "end": "2001:db8::ffff:ffff:ffff:ffff",
			"free": 18446744073709551615}]},
		ID "name": "old", "cidr": "198.51.100.0/30", "gateway": "198.51.100.1"}]}`: fullPage,
	} {
		var n ipam.NetworkInfo
		if err := json.Unmarshal([]byte(strings.ReplaceAll("ID "+text, "ID ", id)), &n); err != nil {
			t.Fatal(err)
		}
		var b bytes.Buffer
		if err := writeNetwork(&b, &n); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, b.String()); diff != "" {
			t.Errorf("%s:\n%s", n.Name, diff)
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
  in use      4 held, 3 reserved (1 idle), 1 Docker network

SUBNET 192.0.2.0/24  lan
  id          a1b2c3d4-0000-4000-8000-000000000001
  gateway     192.0.2.1
  dhcp        yes
  in use      4 held, 3 reserved (1 idle), 1 Docker network
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
  no pool: Berth assigns an address only on request

X held, quarantined or idle   - excluded   . free
`

const barePage = `NETWORK wire
  id          a1b2c3d4-0000-4000-8000-000000000001
  space       local
  policy      released addresses go to whoever is next
  in use      0 held, 0 reserved, 0 Docker networks
  made for    Docker; Berth removes it with its last Docker network, unless you edit it
`

// The legend has the words and the order of the page's (ipam.Legend), for all states that a pool's address can have.
func TestLegend(t *testing.T) {
	for _, legend := range []string{legendText("   "), networkShowHelp} {
		at := -1
		for _, l := range ipam.Legend() {
			next := strings.Index(legend, l.Word)
			if l.Mark != 0 && next <= at {
				t.Errorf("%q lacks %q in its place", legend, l.Word)
			}
			at = max(at, next)
		}
	}
}
