package ipam

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"go4.org/netipx"
)

// EndingBefore counts the ranges that end before addr. The ranges must be disjoint and ascending.
func EndingBefore(ranges []Range, addr netip.Addr) int {
	n, _ := slices.BinarySearchFunc(ranges, addr, func(r Range, a netip.Addr) int { return r.To().Compare(a) })
	return n
}

// exclusionsBefore counts the exclusions that end before addr.
func (sub *Subnet) exclusionsBefore(addr netip.Addr) int {
	n, _ := slices.BinarySearchFunc(sub.Exclusions, addr,
		func(x Exclusion, a netip.Addr) int { return x.Range.To().Compare(a) })
	return n
}

// PlaceOfExclusion returns the index at which an exclusion of r belongs, and an exclusion that overlaps r, nil for
// none.
func (sub *Subnet) PlaceOfExclusion(r Range) (at int, other *Exclusion) {
	at = sub.exclusionsBefore(r.From())
	if at < len(sub.Exclusions) && sub.Exclusions[at].Range.Overlaps(r.IPRange) {
		return at, &sub.Exclusions[at]
	}
	return at, nil
}

// Exclusion returns the exclusion that contains addr, nil for none.
func (sub *Subnet) Exclusion(addr netip.Addr) *Exclusion {
	n := sub.exclusionsBefore(addr)
	if n < len(sub.Exclusions) && sub.Exclusions[n].Range.Contains(addr) {
		return &sub.Exclusions[n]
	}
	return nil
}

// Covers reports whether p contains all of r.
func Covers(p netip.Prefix, r netipx.IPRange) bool { return p.Contains(r.From()) && p.Contains(r.To()) }

// StaticBand returns the static band that contains addr, or the zero Range.
func (sub *Subnet) StaticBand(addr netip.Addr) Range {
	n := EndingBefore(sub.Static, addr)
	if n < len(sub.Static) && sub.Static[n].Contains(addr) {
		return sub.Static[n]
	}
	return Range{}
}

// OrStatic returns text for messages about exclusions, if the subnet also has static bands.
func (sub *Subnet) OrStatic() string {
	if len(sub.Static) == 0 {
		return ""
	}
	return " or kept for static use"
}

// OutsideStatic refuses an exclusion that overlaps a static band.
func (sub *Subnet) OutsideStatic(r Range) error {
	n := EndingBefore(sub.Static, r.From())
	if n == len(sub.Static) || !sub.Static[n].Overlaps(r.IPRange) {
		return nil
	}
	return Refuse(ErrOverlap, "the range %s overlaps the static band %s of the subnet %s; leave that part out",
		r, sub.Static[n], sub.CIDR).OrAdvise(DoModifyStatic)
}

// String returns a pool's name and range for an error.
func (pool Pool) String() string {
	if pool.Name == "" {
		return pool.Range.String()
	}
	return fmt.Sprintf("%s (%s)", pool.Name, pool.Range)
}

// HasPool reports whether a pool of the subnet has this name.
func (sub *Subnet) HasPool(name string) bool {
	return slices.ContainsFunc(sub.Pools, func(pool Pool) bool { return pool.Name == name })
}

// CheckGateway refuses a new gateway in an exclusion, from which nothing is given, or in a static band, which is for
// owners.
func (sub *Subnet) CheckGateway(gateway netip.Addr) error {
	if !gateway.IsValid() || gateway == sub.Gateway {
		return nil
	}
	if x := sub.Exclusion(gateway); x != nil {
		return RefuseAs(IPReserved, ErrInUse, "the gateway %s is excluded by %s; choose another gateway", gateway, x).
			OrAdvise(DoEndExclusion)
	}
	if band := sub.StaticBand(gateway); !band.IsZero() {
		return RefuseAs(IPReserved, ErrInUse,
			"the gateway %s lies in %s, a static band of the subnet %s; Berth keeps static bands for owners; choose "+
				"another gateway", gateway, band, sub.CIDR).OrAdvise(DoModifyStatic)
	}
	return nil
}

// MaxText is the maximum length of tags and owners, in bytes.
const MaxText = 255

// maxNote is the maximum length of notes, in characters. NetBox has the same limit for descriptions.
const maxNote = 200

// CheckNote refuses a note that is not one printable line of at most maxNote characters. Empty is allowed.
func CheckNote(note string) error {
	switch n := utf8.RuneCountInString(note); {
	case !utf8.ValidString(note):
		return Refuse(ErrInvalid, "the note %q is not UTF-8", note)
	case n > maxNote:
		return Refuse(ErrInvalid, "the note has %d characters; at most %d are allowed", n, maxNote)
	case strings.ContainsFunc(note, func(r rune) bool { return !unicode.IsPrint(r) }):
		return Refuse(ErrInvalid, "the note has characters that cannot be printed; write it on one line")
	}
	return nil
}

// Summarize returns the number of prefixes and the first three.
func Summarize(noun string, all []netip.Prefix) string {
	const shown = 3
	text := fmt.Sprintf("%d %ss", len(all), noun)
	if len(all) == 1 {
		text = "1 " + noun
	}
	for i, p := range all {
		if i == shown {
			return text + " ..."
		}
		if i == 0 {
			text += " "
		} else {
			text += ", "
		}
		text += p.String()
	}
	return text
}

// LastAddr returns the highest address of a prefix.
func LastAddr(p netip.Prefix) netip.Addr { return netipx.RangeOfPrefix(p).To() }
