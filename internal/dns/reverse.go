package dns

import (
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/miekg/dns"
)

// prefixes is a multiset of prefixes.
type prefixes map[netip.Prefix]int

func (p prefixes) add(one netip.Prefix) { p[one]++ }

func (p prefixes) remove(one netip.Prefix) {
	if p[one]--; p[one] <= 0 {
		delete(p, one)
	}
}

// longest returns the longest prefix that contains an address, of at most most bits.
func (p prefixes) longest(addr netip.Addr, most int) (netip.Prefix, bool) {
	for bits := most; bits >= 0; bits-- {
		if one, err := addr.Prefix(bits); err == nil && p[one] > 0 {
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
	whole, _ := dns.ReverseAddr(p.Addr().String()) // it refuses only what is no address
	step := bits4
	if p.Addr().Is6() {
		step = bits6
	}
	labels := dns.SplitDomainName(whole)
	return strings.Join(labels[(p.Addr().BitLen()-p.Bits())/step:], ".")
}
