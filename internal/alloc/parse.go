package alloc

import (
	"errors"
	"fmt"
	"math/big"
	"net"
	"net/netip"
	"strings"

	"go4.org/netipx"
)

// The errors that ParseRange and ParsePrefix wrap. Each comes with the text that was refused, why, and what to write.
var (
	errRange  = errors.New("invalid range")
	errPrefix = errors.New("invalid subnet")
)

// RangeForms shows what a range looks like, for refusals.
const RangeForms = "10.0.0.10-10.0.0.20, or 10.0.0.10-20 for short"

// likeRange ends a refusal of what may have been meant as an address or as a range.
const likeRange = "write an address like 10.0.0.10, or a range like " + RangeForms

// maxCount is how long the N of "A+N" may be: 2^128 has 39 digits.
const maxCount = 39

const blanks = " \t\r\n\v\f"

// ParseRange reads a range of addresses: "A-B" (both included), where B can be only the last number of an IPv4 address,
// "A+N" (N addresses from A on), a CIDR without host bits, or one address. It refuses, with an error that wraps errRange
// and says what to write instead: ranges that are reversed, mix families, or run over their family's last address; IPv4
// addresses mapped into IPv6; zones; blanks; leading zeros in IPv4 addresses, lengths and counts; and a count of 0.
func ParseRange(s string) (netipx.IPRange, error) {
	r, err := parseRange(s)
	if err != nil {
		return netipx.IPRange{}, fmt.Errorf("%w %q: %w", errRange, s, err)
	}
	return r, nil
}

// ParsePrefix reads a CIDR with the strictness of ParseRange. Its errors wrap errPrefix.
func ParsePrefix(s string) (netip.Prefix, error) {
	p, err := parsePrefix(s)
	if err != nil {
		return netip.Prefix{}, fmt.Errorf("%w %q: %w", errPrefix, s, err)
	}
	return p, nil
}

func parseRange(s string) (netipx.IPRange, error) {
	if err := oneRange(s); err != nil {
		return netipx.IPRange{}, err
	}
	if strings.Contains(s, "/") && !strings.ContainsAny(s, "-+") {
		p, err := parsePrefix(s)
		if err != nil {
			return netipx.IPRange{}, err
		}
		return netipx.RangeOfPrefix(p), nil
	}
	if a, b, ok := strings.Cut(s, "-"); ok {
		return parseEnds(a, b)
	}
	if a, n, ok := strings.Cut(s, "+"); ok {
		return parseCount(a, n)
	}
	a, err := parseAddr(s, likeRange)
	if err != nil {
		return netipx.IPRange{}, err
	}
	return netipx.IPRangeFrom(a, a), nil
}

// oneRange refuses a list of ranges.
func oneRange(s string) error {
	all := listed(s)
	if len(all) < 2 {
		return nil
	}
	for _, part := range all {
		if _, err := parseRange(part); err != nil {
			return nil // another refusal says more
		}
	}
	return fmt.Errorf("these are %d ranges; give each one by itself, %s first", len(all), all[0])
}

// listed splits a text at blanks, commas and semicolons.
func listed(s string) []string {
	return strings.FieldsFunc(s, func(c rune) bool { return strings.ContainsRune(blanks+",;", c) })
}

// parseEnds reads the two sides of "A-B".
func parseEnds(a, b string) (netipx.IPRange, error) {
	from, err := parseAddr(a, likeRange)
	if err != nil {
		return netipx.IPRange{}, err
	}
	to, err := parseEnd(from, b)
	if err != nil {
		return netipx.IPRange{}, err
	}
	if from.Is4() != to.Is4() {
		return netipx.IPRange{}, errors.New("one end is IPv4 and the other IPv6; give two addresses of the same family")
	}
	if to.Less(from) {
		return netipx.IPRange{}, fmt.Errorf("it is reversed; write %s-%s", to, from)
	}
	return netipx.IPRangeFrom(from, to), nil
}

// parseEnd reads the end of a range: an address, or only its last number if the range is one of IPv4.
func parseEnd(from netip.Addr, s string) (netip.Addr, error) {
	if s == "" || len(s) > 3 || strings.Trim(s, "0123456789") != "" {
		return parseAddr(s, likeRange)
	}
	if !from.Is4() {
		return netip.Addr{}, fmt.Errorf("%q is not the end of an IPv6 range; write both addresses in full", s)
	}
	whole := from.As4()
	to, err := ParseAddr(fmt.Sprintf("%d.%d.%d.%s", whole[0], whole[1], whole[2], s))
	if err != nil {
		return netip.Addr{}, fmt.Errorf("%q cannot be the last number of an IPv4 address; write a range like "+
			RangeForms, s)
	}
	return to, nil
}

// parseCount reads the two sides of "A+N".
func parseCount(a, count string) (netipx.IPRange, error) {
	from, err := ParseAddr(a)
	if err != nil {
		return netipx.IPRange{}, err
	}
	if count == "" || strings.Trim(count, "0123456789") != "" {
		return netipx.IPRange{}, fmt.Errorf("%q is not a count; write a number of addresses after the +", count)
	}
	if strings.Trim(count, "0") == "" {
		return netipx.IPRange{}, errors.New("a range of 0 addresses holds nothing; write a count of at least 1")
	}
	if count[0] == '0' {
		return netipx.IPRange{},
			fmt.Errorf("the count has leading zeros; write %s+%s", from, strings.TrimLeft(count, "0"))
	}
	room := Size(netipx.IPRangeFrom(from, netipx.PrefixLastIP(netip.PrefixFrom(from, 0))))
	n := new(big.Int)
	if len(count) <= maxCount {
		n.SetString(count, 10)
	}
	if n.Sign() == 0 || n.Cmp(room) > 0 {
		return netipx.IPRange{},
			fmt.Errorf("it goes past the last %s address; only %s addresses are left from %s on", family(from),
				room, from)
	}
	last := n.Add(n, new(big.Int).SetBytes(from.AsSlice()))
	last.Sub(last, big.NewInt(1))
	to, _ := netip.AddrFromSlice(last.FillBytes(make([]byte, from.BitLen()/8)))
	if to.Is4In6() {
		return netipx.IPRange{},
			fmt.Errorf("it ends among the IPv4 addresses mapped into IPv6 (%s); end it before ::ffff:0:0", to)
	}
	return netipx.IPRangeFrom(from, to), nil
}

// parsePrefix reads a CIDR and names the one without host bits where it has some.
func parsePrefix(s string) (netip.Prefix, error) {
	address, length, ok := strings.Cut(s, "/")
	if !ok {
		return netip.Prefix{}, errors.New("it has no length; write it like 10.0.0.0/24 or 2001:db8::/64")
	}
	a, err := ParseAddr(address)
	if err != nil {
		return netip.Prefix{}, err
	}
	bits, digits := 0, length != "" && len(length) <= 3 && strings.Trim(length, "0123456789") == ""
	for i := 0; digits && i < len(length); i++ {
		bits = bits*10 + int(length[i]-'0')
	}
	if ones, isMask := MaskLength(length); isMask && a.Is4() {
		return netip.Prefix{}, fmt.Errorf("%q is a mask; write %s/%d", length, a, ones)
	}
	if !digits || bits > a.BitLen() {
		return netip.Prefix{}, fmt.Errorf("%q is not a length of an %s prefix; write a number from 0 to %d after the /",
			length, family(a), a.BitLen())
	}
	if len(length) > 1 && length[0] == '0' {
		return netip.Prefix{}, fmt.Errorf("the length has leading zeros; write %s/%d", a, bits)
	}
	p := netip.PrefixFrom(a, bits)
	if p != p.Masked() {
		return netip.Prefix{}, fmt.Errorf("it has host bits; the subnet that holds %s is %s", a, p.Masked())
	}
	return p, nil
}

// MaskLength returns the length of the prefix that an IPv4 mask such as 255.255.255.0 means; false if it is no mask.
func MaskLength(mask string) (bits int, ok bool) {
	a, err := netip.ParseAddr(mask)
	if err != nil || !a.Is4() {
		return 0, false
	}
	ones, size := net.IPMask(a.AsSlice()).Size()
	return ones, size > 0
}

// ParseAddr reads one address with the strictness of ParseRange, and explains what the standard library's refusals
// leave unsaid. Its errors quote what was refused; they wrap nothing.
func ParseAddr(s string) (netip.Addr, error) {
	return parseAddr(s, "write one like 10.0.0.1 or 2001:db8::1")
}

// parseAddr reads one address. hint is what to write instead of a text that is none.
func parseAddr(s, hint string) (netip.Addr, error) {
	all := listed(s)
	switch {
	case s == "":
		return netip.Addr{}, errors.New("an address is missing; write one like 10.0.0.1 or 2001:db8::1")
	case len(all) > 1 && isAddr(all[0]) && isAddr(all[1]):
		return netip.Addr{}, fmt.Errorf("%q is %d addresses; give each one by itself", s, len(all))
	case strings.ContainsAny(s, blanks):
		return netip.Addr{}, fmt.Errorf("%q contains blanks; leave them out", s)
	case strings.Contains(s, "%"):
		return netip.Addr{}, fmt.Errorf("%q has a zone, which is valid on one host only; write it without the zone", s)
	}
	a, err := netip.ParseAddr(s)
	if err != nil {
		if plain, ok := withoutZeros(s); ok {
			return netip.Addr{}, fmt.Errorf("%q has leading zeros, which some programs read as octal; write %s", s,
				plain)
		}
		return netip.Addr{}, fmt.Errorf("%q is not an IPv4 or IPv6 address; %s", s, hint)
	}
	if a.Is4In6() {
		return netip.Addr{}, fmt.Errorf("%s is an IPv4 address mapped into IPv6; write %s", a, a.Unmap())
	}
	return a, nil
}

func isAddr(s string) bool {
	_, err := netip.ParseAddr(s)
	return err == nil
}

// withoutZeros drops the leading zeros of an IPv4 address's four numbers; false where that does not make it an address.
func withoutZeros(s string) (netip.Addr, bool) {
	fields := strings.Split(s, ".")
	for i, f := range fields {
		if t := strings.TrimLeft(f, "0"); t != "" {
			fields[i] = t
		} else if f != "" {
			fields[i] = "0"
		}
	}
	a, err := netip.ParseAddr(strings.Join(fields, "."))
	return a, err == nil && a.Is4()
}

func family(a netip.Addr) string {
	if a.Is4() {
		return "IPv4"
	}
	return "IPv6"
}

// FormatRange writes r the way a person would: one address, a CIDR where r is one, otherwise "A-B". ParseRange reads it
// back. An invalid r is "".
func FormatRange(r netipx.IPRange) string {
	if !r.IsValid() {
		return ""
	}
	if r.From() == r.To() {
		return r.From().String()
	}
	if p, ok := r.Prefix(); ok {
		return p.String()
	}
	return r.From().String() + "-" + r.To().String()
}
