package view

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"berth/internal/ipam"
	"berth/internal/ipam/ledger"
)

// Environment lists the variables that describe the addresses of an owner in a network, as KEY=VALUE, in the form of
// Ganeti's hooks. These are the addresses that were taken or reserved for it, and those that containers of its
// name hold.
func (s Views) Environment(ctx context.Context, network, owner string) ([]string, error) {
	owner = ipam.CanonicalOwner(owner)
	return inNetwork(ctx, s, network, func(_ *ledger.Ledger, c *ledger.Change, n *ipam.Network) ([]string, error) {
		all, err := addressesOf(c, n.ID, owner)
		if err == nil && len(all) == 0 {
			err = ipam.Refuse(ipam.ErrNotFound, "%s has no address in network %s", owner, n.Name).
				Advise(ipam.DoListLeases)
		}
		return environment(c, n, owner, arrange(all)), err
	})
}

// ownAddress is an address of an owner that gets a slot at an interface.
type ownAddress struct {
	sub    *ipam.Subnet
	addr   netip.Addr
	mac    ipam.MAC
	host   string // that uses it
	slot   ipam.Slot
	placed bool // slot is known
}

// addressesOf reads the addresses of an owner in a network: its reservations, in use or not, and the leases with its
// name or, if the owner is a MAC, with that MAC.
func addressesOf(c *ledger.Change, network ipam.ID, owner string) (all []ownAddress, err error) {
	mac, _ := ipam.ParseMAC(owner)
	for _, id := range c.Index().NetworkIndex(network).Subnets() {
		sx := c.Index().Subnet(id)
		seen := map[netip.Addr]bool{}
		for _, places := range [][]netip.Addr{slices.Collect(sx.ByOwner().Of(owner)),
			sx.SawName(ipam.RememberedName(owner)), sx.SawMAC(mac)} {
			for _, addr := range places {
				if seen[addr] {
					continue
				}
				seen[addr] = true
				l, err := c.Lease(id, addr)
				if err != nil {
					return nil, err
				}
				if own, ok := ownedAs(l, owner, mac); ok {
					own.sub, own.addr = sx.Record(), addr
					all = append(all, own)
				}
			}
		}
	}
	return all, nil
}

// ownedAs reports whether a record belongs to the owner, and at which slot.
func ownedAs(l *ipam.Lease, owner string, mac ipam.MAC) (own ownAddress, ok bool) {
	if l.Held() && (l.Name == owner || l.MAC == mac && mac != ipam.MAC{}) {
		own, ok = ownAddress{mac: l.MAC, host: l.Host}, true
		if l.Kind == ipam.External {
			own.slot, own.placed = l.Slot, true
		}
	}
	if r := l.Reserved(); r != nil && r.Owner == owner && !own.placed {
		own.slot, own.placed, ok = r.Slot, true, true
	}
	return own, ok
}

// arrange gives each address a slot: its own if it has one, otherwise one at the interface with the same MAC, otherwise
// at an interface of its own. If two have the same slot, such as a reservation and a taken address, the second one gets
// a later slot.
func arrange(all []ownAddress) map[int]map[int]ownAddress {
	slices.SortFunc(all, func(a, b ownAddress) int {
		return cmp.Or(-cmp.Compare(asInt(a.placed), asInt(b.placed)), ledger.CompareSlots(a.slot, b.slot),
			-cmp.Compare(asInt(a.host != ""), asInt(b.host != "")),
			cmp.Compare(a.host, b.host), cmp.Compare(a.mac.String(), b.mac.String()),
			a.addr.Compare(b.addr)) // IPv4 is before IPv6
	})
	nics := map[int]map[int]ownAddress{}
	for _, one := range all {
		number := int(one.slot.Interface)
		if !one.placed {
			number = nicOf(nics, one.mac)
		}
		if nics[number] == nil {
			nics[number] = map[int]ownAddress{}
		}
		slot := int(one.slot.Number)
		for _, taken := nics[number][slot]; taken; _, taken = nics[number][slot] {
			slot++
		}
		nics[number][slot] = one
	}
	return nics
}

// asInt returns 1 for true and 0 for false.
func asInt(b bool) int {
	if b {
		return 1
	}
	return 0
}

// nicOf returns the interface with a MAC, or a new one after the last.
func nicOf(nics map[int]map[int]ownAddress, mac ipam.MAC) int {
	next := 0
	for _, number := range slices.Sorted(maps.Keys(nics)) {
		next = number + 1
		for _, one := range nics[number] {
			if mac != (ipam.MAC{}) && one.mac == mac {
				return number
			}
		}
	}
	return next
}

// environment makes the variables of an owner's interfaces in a network.
func environment(c *ledger.Change, n *ipam.Network, owner string, nics map[int]map[int]ownAddress) []string {
	env := variables{}
	env.set("INSTANCE_NAME", owner)
	env.set("INSTANCE_NIC_COUNT", strconv.Itoa(len(nics)))
	for _, number := range slices.Sorted(maps.Keys(nics)) {
		nic := nics[number]
		prefix := fmt.Sprintf("INSTANCE_NIC%d_", number)
		slots := slices.Sorted(maps.Keys(nic))
		first := nic[slots[0]]
		mac, host := first.mac, first.host
		for _, slot := range slots {
			if host == "" { // the first address is reserved, and not in use
				mac, host = nic[slot].mac, nic[slot].host
			}
		}
		env.set(prefix+"MAC", mac.String())
		env.network(prefix, n, cmp.Or(host, c.Host()))
		for _, slot := range slots {
			env.address(prefix, fmt.Sprintf(":%d", slot), nic[slot])
			env.address(prefix, fmt.Sprintf("_%d", slot), nic[slot])
		}
		env.address(prefix, "", first)
	}
	return env
}

// variables is a list of KEY=VALUE.
type variables []string

// set adds a variable. It keeps the value on one line, because names come from everybody who may create containers.
func (v *variables) set(key, value string) {
	*v = append(*v, key+"="+strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return '?'
		}
		return r
	}, value))
}

// network adds the settings that an interface gets from its network on a host.
func (v *variables) network(prefix string, n *ipam.Network, host string) {
	var link ipam.Link
	for _, l := range n.Links {
		if l.Host == host {
			link = l
		}
	}
	var tags []string
	for _, key := range slices.Sorted(maps.Keys(n.Tags)) {
		tags = append(tags, key+"="+n.Tags[key])
	}
	v.set(prefix+"MODE", link.Mode)
	v.set(prefix+"LINK", link.Link)
	v.set(prefix+"NETWORK_NAME", n.Name)
	v.set(prefix+"NETWORK_UUID", n.ID.String())
	v.set(prefix+"NETWORK_TAGS", strings.Join(tags, " "))
	v.set(prefix+"NETWORK_MAC_PREFIX", n.MACPrefix)
}

// address adds one address with its subnet. The suffix is empty for the first slot. For slot i it is ":i", as in
// Ganeti's hooks, or "_i", for shells that drop names with a colon (dash, which is /bin/sh of Debian).
func (v *variables) address(prefix, suffix string, a ownAddress) {
	gateway := ""
	if a.sub.Gateway.IsValid() {
		gateway = a.sub.Gateway.String()
	}
	v.set(prefix+"IP"+suffix, a.addr.String())
	v.set(prefix+"NETWORK_SUBNET"+suffix, a.sub.CIDR.String())
	v.set(prefix+"NETWORK_GATEWAY"+suffix, gateway)
	v.set(prefix+"NETWORK_DHCP"+suffix, strconv.FormatBool(a.sub.DHCP))
}
