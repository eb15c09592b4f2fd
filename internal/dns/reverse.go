package dns

import (
	"net/netip"
	"slices"
	"strconv"
	"strings"
)

// prefixes is a multiset of prefixes.
type prefixes struct {
	count map[netip.Prefix]int
	bits  map[bool][]int // the existing lengths, the longest first, by IPv6
	lens  map[[2]int]int // the number of prefixes by family (4, 6) and length
}

func newPrefixes() prefixes {
	return prefixes{map[netip.Prefix]int{}, map[bool][]int{}, map[[2]int]int{}}
}

func family(a netip.Addr) int {
	if a.Is6() {
		return 6
	}
	return 4
}

func (p *prefixes) add(one netip.Prefix) {
	p.count[one]++
	of := [2]int{family(one.Addr()), one.Bits()}
	if p.lens[of]++; p.lens[of] == 1 {
		is6 := one.Addr().Is6()
		p.bits[is6] = append(p.bits[is6], one.Bits())
		slices.SortFunc(p.bits[is6], func(a, b int) int { return b - a })
	}
}

func (p *prefixes) remove(one netip.Prefix) {
	if p.count[one]--; p.count[one] <= 0 {
		delete(p.count, one)
	}
	of := [2]int{family(one.Addr()), one.Bits()}
	if p.lens[of]--; p.lens[of] <= 0 {
		delete(p.lens, of)
		is6 := one.Addr().Is6()
		p.bits[is6] = slices.DeleteFunc(p.bits[is6], func(bits int) bool { return bits == one.Bits() })
	}
}

// longest returns the longest prefix that contains an address, of at most most bits.
func (p *prefixes) longest(addr netip.Addr, most int) (netip.Prefix, bool) {
	for _, bits := range p.bits[addr.Is6()] {
		if bits > most {
			continue
		}
		if one, err := addr.Prefix(bits); err == nil && p.count[one] > 0 {
			return one, true
		}
	}
	return netip.Prefix{}, false
}

// The number of bits of a label, and the maximum length of a reverse zone. A longer prefix has no zone of its own; we
// answer for the zone that contains it.
const (
	bits4, most4 = 8, 24
	bits6, most6 = 4, 124
)

// zoneOf returns the prefix whose reverse zone has the names of p.
func zoneOf(p netip.Prefix) netip.Prefix {
	most := most4
	if p.Addr().Is6() {
		most = most6
	}
	if p.Bits() <= most {
		return p
	}
	return netip.PrefixFrom(p.Addr(), most).Masked()
}

// apex returns the beginning of the reverse zone for an address in a prefix of ours. It is a prefix of whole labels.
func apex(ours netip.Prefix, addr netip.Addr) netip.Prefix {
	label := bits4
	if addr.Is6() {
		label = bits6
	}
	bits := max((ours.Bits()+label-1)/label*label, label)
	return netip.PrefixFrom(addr, bits).Masked()
}

const (
	suffix4 = "in-addr.arpa"
	suffix6 = "ip6.arpa"
)

// parseReverse reads a name below in-addr.arpa or ip6.arpa, in lower case, without the final dot. It returns the prefix
// of its labels, from the right. The prefix is invalid if other labels come before these: such a name does not exist,
// and the prefix determines its zone. ok is false for other names.
func parseReverse(name string) (p netip.Prefix, valid, ok bool) {
	rest, is4 := strings.CutSuffix(name, "."+suffix4)
	if !is4 {
		var is6 bool
		if rest, is6 = strings.CutSuffix(name, "."+suffix6); !is6 {
			return p, false, false
		}
	}
	labels := strings.Split(rest, ".")
	slices.Reverse(labels)
	var raw [16]byte
	n, most, base := 0, 4, 10
	if !is4 {
		most, base = 32, 16
	}
	for ; n < len(labels) && n < most; n++ {
		v, err := strconv.ParseUint(labels[n], base, 8)
		if err != nil || strconv.FormatUint(v, base) != labels[n] || !is4 && v > 15 {
			break
		}
		if is4 {
			raw[n] = byte(v)
		} else {
			raw[n/2] |= byte(v) << (4 * (1 - n%2))
		}
	}
	valid = n == len(labels)
	if is4 {
		return netip.PrefixFrom(netip.AddrFrom4([4]byte(raw[:4])), n*bits4), valid, true
	}
	return netip.PrefixFrom(netip.AddrFrom16(raw), n*bits6), valid, true
}

// reverseName returns the name of a prefix of whole labels, without the final dot.
func reverseName(p netip.Prefix) string {
	var b strings.Builder
	raw := p.Addr().AsSlice()
	if p.Addr().Is4() {
		for i := p.Bits()/bits4 - 1; i >= 0; i-- {
			b.WriteString(strconv.Itoa(int(raw[i])) + ".")
		}
		return b.String() + suffix4
	}
	for i := p.Bits()/bits6 - 1; i >= 0; i-- {
		b.WriteString(strconv.FormatUint(uint64(raw[i/2]>>(4*(1-i%2))&15), 16) + ".")
	}
	return b.String() + suffix6
}
