package edge

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
)

// Check returns an error if a state contradicts itself. The error names the addresses.
func (s State) Check() error {
	ranges, err := checkRanges(s.Ranges)
	if err != nil {
		return err
	}
	elastic, guest := map[netip.Addr]bool{}, map[netip.Addr]netip.Addr{}
	for _, m := range s.Mappings {
		err := CheckMapping(m, ranges)
		if err != nil {
			return err
		}
		if elastic[m.Elastic] {
			return fmt.Errorf("elastic address %s is mapped twice; map it to one guest", m.Elastic)
		}
		elastic[m.Elastic] = true
		if other, taken := guest[m.Guest]; taken {
			return fmt.Errorf("guest %s has the elastic addresses %s and %s; a guest can have only one",
				m.Guest, other, m.Elastic)
		}
		guest[m.Guest] = m.Elastic
	}
	return nil
}

// checkRanges checks the ranges and returns them sorted by address.
func checkRanges(ranges []Range) ([]Range, error) {
	sorted := slices.Clone(ranges)
	slices.SortFunc(sorted, func(a, b Range) int { return a.From.Compare(b.From) })
	for i, r := range sorted {
		err := checkRange(r)
		if err != nil {
			return nil, err
		}
		if i > 0 && sorted[i-1].Contains(r.From) {
			return nil, fmt.Errorf("ranges %s and %s overlap; keep them apart", sorted[i-1], r)
		}
	}
	return sorted, nil
}

func checkRange(r Range) error {
	switch {
	case !plain(r.From), !plain(r.To):
		return fmt.Errorf("range %s: both ends must be IPv4 or IPv6 addresses without a zone", r)
	case r.From.BitLen() != r.To.BitLen():
		return fmt.Errorf("range %s has one IPv4 end and one IPv6 end", r)
	case r.To.Less(r.From):
		return fmt.Errorf("range %s ends before it begins", r)
	case r.OnCut != Withdraw && r.OnCut != Keep:
		return fmt.Errorf("range %s: the action for a host that is cut off is %q, but must be %q or %q", r, r.OnCut,
			Withdraw, Keep)
	case r.TTL < 0:
		return fmt.Errorf("range %s has a TTL of %s; it must not be negative", r, r.TTL)
	case len(r.Announce) > 15, strings.ContainsAny(r.Announce, " \t\n\"/"):
		return fmt.Errorf("range %s is announced on %q, which is not the name of a network device", r, r.Announce)
	}
	return nil
}

// CheckMapping returns an error if a mapping contradicts itself or the ranges. ranges must be sorted by address.
func CheckMapping(m Mapping, ranges []Range) error {
	switch {
	case !plain(m.Elastic), !plain(m.Guest):
		return fmt.Errorf("mapping of %s to guest %s: both must be addresses without a zone", m.Elastic, m.Guest)
	case m.Elastic.BitLen() != m.Guest.BitLen():
		return fmt.Errorf("elastic address %s and guest %s must be both IPv4 or both IPv6", m.Elastic, m.Guest)
	case !m.Subnet.Contains(m.Guest):
		return fmt.Errorf("guest %s of elastic address %s is outside its subnet %s", m.Guest, m.Elastic, m.Subnet)
	}
	if _, found := Find(ranges, m.Elastic); !found {
		return fmt.Errorf("elastic address %s lies in no range; add its range", m.Elastic)
	}
	return nil
}

func plain(a netip.Addr) bool { return a.IsValid() && !a.Is4In6() && a.Zone() == "" }

// Find returns the range of an address. The ranges must be sorted by address.
func Find(sorted []Range, a netip.Addr) (Range, bool) {
	i, found := slices.BinarySearchFunc(sorted, a, func(r Range, a netip.Addr) int { return r.From.Compare(a) })
	if !found {
		i--
	}
	if i < 0 || !sorted[i].Contains(a) {
		return Range{}, false
	}
	return sorted[i], true
}

// String returns the two ends of the range.
func (r Range) String() string {
	if r.From == r.To {
		return r.From.String()
	}
	return r.From.String() + "-" + r.To.String()
}
