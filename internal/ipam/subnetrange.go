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

// EndingBefore counts the ranges, disjoint and in order, that end before addr.
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

// PlaceOfExclusion is where an exclusion of r belongs among the others, and the one that has an address of r, nil where
// none has.
func (sub *Subnet) PlaceOfExclusion(r Range) (at int, other *Exclusion) {
	at = sub.exclusionsBefore(r.From())
	if at < len(sub.Exclusions) && sub.Exclusions[at].Range.Overlaps(r.IPRange) {
		return at, &sub.Exclusions[at]
	}
	return at, nil
}

// Exclusion is the one that addr lies in, nil where it lies in none.
func (sub *Subnet) Exclusion(addr netip.Addr) *Exclusion {
	n := sub.exclusionsBefore(addr)
	if n < len(sub.Exclusions) && sub.Exclusions[n].Range.Contains(addr) {
		return &sub.Exclusions[n]
	}
	return nil
}

// Covers tells whether all of r is in p.
func Covers(p netip.Prefix, r netipx.IPRange) bool { return p.Contains(r.From()) && p.Contains(r.To()) }

// StaticBand is the band of the subnet that addr lies in; the zero Range where it lies in none.
func (sub *Subnet) StaticBand(addr netip.Addr) Range {
	n := EndingBefore(sub.Static, addr)
	if n < len(sub.Static) && sub.Static[n].Contains(addr) {
		return sub.Static[n]
	}
	return Range{}
}

// OrStatic speaks of the static bands beside the exclusions, where there are any.
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
	return Help(Refuse(ErrOverlap, "the range %s overlaps the static band %s of the subnet %s; leave that part out",
		r, sub.Static[n], sub.CIDR), OrAdvise(DoModifyStatic))
}

// String names a pool for an error: by its name and range.
func (pool Pool) String() string {
	if pool.Name == "" {
		return pool.Range.String()
	}
	return fmt.Sprintf("%s (%s)", pool.Name, pool.Range)
}

// HasPool tells whether a pool of the subnet has a name.
func (sub *Subnet) HasPool(name string) bool {
	return slices.ContainsFunc(sub.Pools, func(pool Pool) bool { return pool.Name == name })
}

// CheckGateway refuses to set a gateway onto an exclusion, of which nothing is given, or into a static band, which is
// for owners.
func (sub *Subnet) CheckGateway(gateway netip.Addr) error {
	if !gateway.IsValid() || gateway == sub.Gateway {
		return nil
	}
	if x := sub.Exclusion(gateway); x != nil {
		return Help(RefuseAs(IPReserved, ErrInUse, "the gateway %s is excluded with %s; choose another one", gateway,
			x), OrAdvise(DoEndExclusion))
	}
	if band := sub.StaticBand(gateway); !band.IsZero() {
		return Help(RefuseAs(IPReserved, ErrInUse,
			"the gateway %s lies in the static band %s of the subnet %s, which is kept for owners; choose another one",
			gateway, band, sub.CIDR), OrAdvise(DoModifyStatic))
	}
	return nil
}

// MaxText bounds tags and the names of owners, in bytes.
const MaxText = 255

// maxNote bounds notes, in characters; NetBox's descriptions are no longer.
const maxNote = 200

// CheckNote refuses what is no note: one line of text, of so many characters. An empty one is none.
func CheckNote(note string) error {
	switch n := utf8.RuneCountInString(note); {
	case !utf8.ValidString(note):
		return Refuse(ErrInvalid, "the note %q is not UTF-8", note)
	case n > maxNote:
		return Refuse(ErrInvalid, "the note has %d characters; at most %d are kept", n, maxNote)
	case strings.ContainsFunc(note, func(r rune) bool { return !unicode.IsPrint(r) }):
		return Refuse(ErrInvalid, "the note has characters that cannot be printed; write it on one line")
	}
	return nil
}

// Summarize counts things and shows the first of them.
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

// LastAddr is the highest address of a prefix.
func LastAddr(p netip.Prefix) netip.Addr { return netipx.RangeOfPrefix(p).To() }
