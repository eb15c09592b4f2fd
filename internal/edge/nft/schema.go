package nft

import (
	"fmt"
	"hash/fnv"
	"strings"

	"sigs.k8s.io/knftables"
)

// tableName is the name of all tables of Berth. There is one per family.
const tableName = "berth"

// The sets and maps of the tables.
const (
	setRanges = "ranges" // all elastic addresses that this host may have
	setFenced = "fenced" // those that need a live element
	setLive   = "live"   // fenced ranges that may answer; each element has a timeout
	setInside = "inside" // the subnets of the guests
	setShut   = "shut"   // elastic addresses for outgoing connections only
	setTicket = "ticket" // makes a late transaction fail (live.go)
	mapIn     = "dn"     // elastic address : guest
	mapOut    = "sn"     // guest : elastic address
)

// table is the wanted form of a table.
type table struct {
	family knftables.Family
	sets   []set
	chains []chain
}

// set is a set, or a map of addresses.
type set struct {
	name     string
	keyType  string
	isMap    bool
	interval bool
	timed    bool
}

// many are the broadcast and multicast addresses.
var many = map[knftables.Family]string{
	knftables.IPv4Family: "{ 224.0.0.0/4, 255.255.255.255 }",
	knftables.IPv6Family: "ff00::/8",
}

// chain is a base chain with its rules.
type chain struct {
	name     string
	kind     knftables.BaseChainType
	hook     knftables.BaseChainHook
	priority int
	device   string
	rules    []string
}

// mark is the mark of packets to elastic addresses.
type mark struct{ value, mask uint32 }

// schema returns all tables. devices, by index, are those on which this host's own ARP frames are blocked.
func schema(m mark, devices map[int]string) []table {
	return []table{
		ipTable(knftables.IPv4Family, "ipv4_addr", m),
		ipTable(knftables.IPv6Family, "ipv6_addr", m),
		arpTable(),
		deviceTable(devices),
	}
}

// ipTable returns the table of a family; both have the same form. All rules exist from the start, and only elements
// change.
func ipTable(family knftables.Family, key string, m mark) table {
	t := table{family: family, sets: []set{
		{name: setRanges, keyType: key, interval: true},
		{name: setFenced, keyType: key, interval: true},
		{name: setLive, keyType: key, interval: true, timed: true},
		{name: setInside, keyType: key, interval: true},
		{name: setShut, keyType: key},
		{name: mapIn, keyType: key, isMap: true},
		{name: mapOut, keyType: key, isMap: true},
	}}
	t.chains = []chain{
		// Before the engine's own chains, because the first translation counts.
		{name: "arriving", kind: knftables.NATType, hook: knftables.PreroutingHook, priority: -105,
			rules: []string{"dnat to IP daddr map @dn"}},
		{name: "local", kind: knftables.NATType, hook: knftables.OutputHook, priority: -105,
			rules: []string{"dnat to IP daddr map @dn"}},
		{name: "leaving", kind: knftables.NATType, hook: knftables.PostroutingHook, priority: 95, rules: []string{
			// Multicast and broadcast is for neighbours, even if the kernel filters what a bridge carries.
			"IP daddr " + many[family] + " return",
			// The answer to a guest that uses an elastic address on its own network must return through this host.
			"ct status dnat ct original IP daddr @ranges IP saddr @inside snat to IP saddr map @sn",
			"ct status dnat ct original IP daddr @ranges IP saddr @inside masquerade",
			// This host's own requests may have the elastic address as their source, because it is on a device.
			"ct status dnat ct original IP daddr @ranges IP saddr @ranges fib saddr type local masquerade",
			"IP daddr != @inside snat to IP saddr map @sn",
		}},
		// After all translation: blocks both directions of an address that may not answer any more.
		{name: "gate", kind: knftables.FilterType, hook: knftables.PostroutingHook, priority: 110, rules: []string{
			"ct status snat ct reply IP daddr @fenced ct reply IP daddr != @live drop",
			"ct status dnat ct original IP daddr @fenced ct original IP daddr != @live drop",
		}},
		// An address for outgoing connections only must not lead to this host's own services.
		{name: "shut", kind: knftables.FilterType, hook: knftables.InputHook, priority: -10, rules: shutRules(family)},
	}
	if family == knftables.IPv4Family {
		t.sets = append(t.sets, set{name: setTicket, keyType: "mark", timed: true})
	} else {
		t.chains = append(t.chains, chain{name: "neighbours", kind: knftables.FilterType, hook: knftables.OutputHook,
			rules: []string{"icmpv6 type nd-neighbor-advert ip6 saddr @fenced ip6 saddr != @live drop"}})
	}
	if m.mask != 0 {
		t.chains = append(t.chains, chain{name: "marking", kind: knftables.FilterType, hook: knftables.PreroutingHook,
			priority: -150, rules: []string{fmt.Sprintf("IP daddr @ranges meta mark set meta mark & 0x%08x | 0x%08x",
				^m.mask, m.value&m.mask)}})
	}
	for i := range t.chains {
		for j, rule := range t.chains[i].rules {
			t.chains[i].rules[j] = strings.ReplaceAll(rule, "IP", string(family))
		}
	}
	return t
}

func shutRules(family knftables.Family) []string {
	rules := []string{"IP daddr @shut drop"}
	if family == knftables.IPv6Family { // neighbours ask an address itself whether it is still there
		rules = append([]string{"icmpv6 type { nd-neighbor-solicit, nd-neighbor-advert } accept"}, rules...)
	}
	return rules
}

// arpTable blocks the kernel's ARP frames on their way out, both answers and announcements.
func arpTable() table {
	return table{family: knftables.ARPFamily, sets: []set{
		{name: setFenced, keyType: "ipv4_addr", interval: true},
		{name: setLive, keyType: "ipv4_addr", interval: true, timed: true},
	}, chains: []chain{{name: "out", kind: knftables.FilterType, hook: knftables.OutputHook,
		rules: []string{"arp saddr ip @fenced arp saddr ip != @live drop"}}}}
}

// deviceTable blocks this program's own ARP announcements, because packet sockets pass only the device's table.
func deviceTable(devices map[int]string) table {
	t := table{family: knftables.NetDevFamily, sets: []set{
		{name: setFenced, keyType: "ipv4_addr", interval: true},
		{name: setLive, keyType: "ipv4_addr", interval: true, timed: true},
	}}
	for index, name := range devices {
		t.chains = append(t.chains, chain{name: fmt.Sprintf("out%d", index), kind: knftables.FilterType,
			hook: knftables.EgressHook, device: name,
			rules: []string{"arp saddr ip @fenced arp saddr ip != @live drop"}})
	}
	return t
}

// comments returns comments that identify the chain's rules, because nft does not return their text unchanged.
func (c chain) comments() []string {
	h := fnv.New32a()
	_, _ = fmt.Fprintf(h, "%q %q %d %q %q", c.kind, c.hook, c.priority, c.device, c.rules)
	comments := make([]string, len(c.rules))
	for i := range c.rules {
		comments[i] = fmt.Sprintf("berth %08x %d", h.Sum32(), i)
	}
	return comments
}

// keyLength is the length of a key in bytes.
func (s set) keyLength() uint32 {
	switch s.keyType {
	case "ipv6_addr":
		return 16
	default:
		return 4
	}
}
