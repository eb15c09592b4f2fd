package plan

import (
	"cmp"
	"errors"
	"fmt"
	"net/netip"
	"strconv"
	"strings"

	"berth/internal/alloc"
	"berth/internal/ipam"
)

// The tables. If NetBox has the same thing, columns have its names: its prefixes are subnets, its ip-ranges pools or
// exclusions, its ip-addresses addresses or reservations. NetBox exports tables with the titles of its pages and
// imports them under other names, so both are accepted.

// netBoxOnly are columns of NetBox that mean nothing to Berth.
var netBoxOnly = []string{"id", "url", "status", "tenant", "tenant_group", "role", "site", "scope", "scope_type",
	"scope_id", "vlan",
	"vlan_group", "vlan_site", "vlan_id", "children", "depth", "prefix_(flat)", "utilization", "mark_utilized",
	"marked_utilized",
	"mark_populated", "marked_populated", "size", "description", "comments", "tags", "contacts", "created",
	"last_updated", "nat_(inside)", "nat_(outside)",
	"assigned", "fhrp_group", "is_primary", "is_oob"}

// spaceOf returns the space for a VRF of NetBox, which is shown with its route distinguisher, or as Global if there is
// none.
func spaceOf(text string) (string, error) {
	if text == "Global" {
		return "", nil
	}
	name, _, _ := strings.Cut(text, " (")
	return name, nil
}

// parseHost reads an address, which NetBox writes with the length of its prefix, and others with a mask.
func parseHost(text string) (netip.Addr, error) {
	if address, length, ok := strings.Cut(text, "/"); ok {
		bits := lengthOf(length)
		if p, err := netip.ParsePrefix(address + "/" + bits); err == nil && bits == strconv.Itoa(p.Bits()) {
			return alloc.ParseAddr(address)
		}
		return netip.Addr{}, fmt.Errorf("%q is not a prefix length; write only the address", length)
	}
	return alloc.ParseAddr(text)
}

// parseSubnet reads a CIDR, also with a mask instead of a length.
func parseSubnet(text string) (netip.Prefix, error) {
	address, length, ok := strings.Cut(text, "/")
	if ok {
		text = address + "/" + lengthOf(length)
	}
	return alloc.ParsePrefix(text)
}

// lengthOf returns the length of the prefix that a mask means, and other texts unchanged.
func lengthOf(mask string) string {
	if ones, ok := alloc.MaskLength(mask); ok {
		return strconv.Itoa(ones)
	}
	return mask
}

var networkSheet = &sheet[ipam.PlannedNetwork]{
	columns: "name|network space|vrf * tags links !static",
	needs:   [][]string{{"name"}},
	row:     func(line int) ipam.PlannedNetwork { return ipam.PlannedNetwork{Line: line} },
	check: func(n *ipam.PlannedNetwork) error {
		if n.Name == "" {
			return errors.New("the network has no name")
		}
		return nil
	},
	add: func(n, row *ipam.PlannedNetwork) {
		space := n.Space
		*n = *row
		n.Space = cmp.Or(n.Space, space)
	},
	of: func(n *ipam.PlannedNetwork) []ipam.PlannedNetwork { return []ipam.PlannedNetwork{*n} },
}

type subnetRow struct {
	where
	ipam.PlannedSubnet
	Mask    string `json:"mask"`
	address string // of the prefix, whose length is in the mask
}

// setPrefix reads a prefix. Its length may be in the column of masks.
func (r *subnetRow) setPrefix(text string) (err error) {
	if !strings.Contains(text, "/") {
		r.address = text
		return nil
	}
	r.CIDR, err = parseSubnet(text)
	return err
}

// checkMask joins the prefix and the mask.
func (r *subnetRow) checkMask() (err error) {
	switch {
	case r.address != "" && r.Mask != "":
		r.CIDR, err = parseSubnet(r.address + "/" + r.Mask)
	case r.address != "":
		_, err = alloc.ParsePrefix(r.address) // which has no length
	case !r.CIDR.IsValid():
		return errors.New("the subnet has no prefix")
	case r.Mask != "" && lengthOf(r.Mask) != strconv.Itoa(r.CIDR.Bits()):
		return fmt.Errorf("the prefix is %s, but the mask is %s; give only one of them", r.CIDR, r.Mask)
	}
	if err != nil {
		return fmt.Errorf("prefix: %w", err)
	}
	return nil
}

var subnetSheet = &sheet[subnetRow]{
	columns: "network <space|vrf prefix|cidr|subnet <mask|netmask|subnet_mask * static <pool|is_pool",
	sets:    map[string]func(*subnetRow, string) error{"cidr": (*subnetRow).setPrefix},
	needs:   [][]string{{"prefix"}},
	row:     func(line int) subnetRow { return subnetRow{PlannedSubnet: ipam.PlannedSubnet{Line: line}} },
	check: func(r *subnetRow) error {
		settleSubnet(&r.PlannedSubnet)
		return r.checkMask()
	},
	place: func(r *subnetRow) *where { return &r.where },
	add: func(n *ipam.PlannedNetwork, r *subnetRow) {
		for i := range r.Static {
			r.Static[i].Line = r.Line
		}
		if r.Whole {
			r.Whole, r.Pools = false, []ipam.PlannedPool{{Range: wholeOf(r.CIDR), Line: r.Line}}
		}
		n.Subnets = append(n.Subnets, r.PlannedSubnet)
	},
	of: func(n *ipam.PlannedNetwork) (rows []subnetRow) {
		for _, sub := range n.Subnets {
			rows = append(rows, subnetRow{where: where{Network: n.Name}, PlannedSubnet: sub})
		}
		return rows
	},
}

// rangeRow is a row of pools or of exclusions.
type rangeRow struct {
	where
	From  netip.Addr `json:"start_address"`
	To    netip.Addr `json:"end_address"`
	Whole ipam.Range `json:"range"`
	Name  string     `json:"name"`
	Note  string     `json:"note"`
	line  int
}

// rangeSheet returns a table of ranges, each with a text.
func rangeSheet(text string, add func(*ipam.PlannedNetwork, *rangeRow),
	of func(*ipam.PlannedSubnet) []rangeRow) *sheet[rangeRow] {
	return &sheet[rangeRow]{
		columns: "network <space|vrf start_address|start end_address|end <range " + text,
		needs:   [][]string{{"start_address", "range"}},
		row:     func(line int) rangeRow { return rangeRow{line: line} },
		check:   checkRange,
		place:   func(r *rangeRow) *where { return &r.where },
		add:     add,
		of: func(n *ipam.PlannedNetwork) (rows []rangeRow) {
			for i := range n.Subnets {
				for _, row := range of(&n.Subnets[i]) {
					row.Network, row.From, row.To = n.Name, row.Whole.From(), row.Whole.To()
					rows = append(rows, row)
				}
			}
			return rows
		},
	}
}

// checkRange joins the two ends. A missing end is the start.
func checkRange(r *rangeRow) (err error) {
	switch {
	case !r.Whole.IsZero() && r.From.IsValid():
		return errors.New("the row has a start and a range; give only one of them")
	case !r.Whole.IsZero():
		return nil
	case !r.From.IsValid():
		return errors.New("the row has no start address")
	case !r.To.IsValid():
		r.To = r.From
	}
	r.Whole, err = parseRange(r.From.String() + "-" + r.To.String())
	return err
}

var poolSheet = rangeSheet("name", func(n *ipam.PlannedNetwork, r *rangeRow) {
	n.Pools = append(n.Pools, ipam.PlannedPool{Range: r.Whole, Name: r.Name, Line: r.line})
}, func(sub *ipam.PlannedSubnet) (rows []rangeRow) {
	for _, p := range sub.Pools {
		rows = append(rows, rangeRow{Whole: p.Range, Name: p.Name})
	}
	return rows
})

var exclusionSheet = rangeSheet("note", func(n *ipam.PlannedNetwork, r *rangeRow) {
	n.Exclusions = append(n.Exclusions, ipam.PlannedExclusion{Range: r.Whole, Note: r.Note, Line: r.line})
}, func(sub *ipam.PlannedSubnet) (rows []rangeRow) {
	for _, x := range sub.Exclusions {
		rows = append(rows, rangeRow{Whole: x.Range, Note: x.Note})
	}
	return rows
})

// ownedRow is a row of reservations or of addresses.
type ownedRow struct {
	where
	ipam.PlannedReservation
	Device  string `json:"device"` // the holder in NetBox
	DNS     string `json:"dns_name"`
	foreign bool   // the owner is one of these
}

// foreignOwner returns an owner that another tool named, or nil.
func (r *ownedRow) foreignOwner() *string {
	if !r.foreign {
		return nil
	}
	return &r.Owner
}

// ownedColumns begin a table of addresses with owners. An owner may also be NetBox's device, virtual machine or DNS
// name. NetBox's interfaces are names and not numbers, so they are ignored.
const ownedColumns = "network <space|vrf address|ip_address owner interface slot " +
	"<device|virtual_machine|device/vm|parent <dns_name "

// ownedSheet returns a table of addresses with owners.
func ownedSheet(columns string, needs [][]string, check func(*ownedRow) error,
	add func(*ipam.PlannedNetwork, *ownedRow),
	of func(*ipam.PlannedNetwork) []ipam.PlannedReservation) *sheet[ownedRow] {
	return &sheet[ownedRow]{
		columns: ownedColumns + columns,
		sets: map[string]func(*ownedRow, string) error{"interface": (*ownedRow).setInterface,
			"slot": (*ownedRow).setSlot},
		needs: append(needs, []string{"owner", "device", "dns_name"}),
		row: func(line int) ownedRow {
			return ownedRow{PlannedReservation: ipam.PlannedReservation{Line: line, Unplaced: true}}
		},
		name: nameByAddress, check: check, owner: (*ownedRow).foreignOwner,
		place: func(r *ownedRow) *where { return &r.where },
		add:   add,
		of: func(n *ipam.PlannedNetwork) (rows []ownedRow) {
			for _, r := range of(n) {
				rows = append(rows, ownedRow{where: where{Network: n.Name}, PlannedReservation: r})
			}
			return rows
		},
	}
}

func (r *ownedRow) setInterface(text string) error {
	n, err := parseNumber(text)
	if err != nil && !strings.ContainsAny(text[:1], "0123456789-") {
		return nil // NetBox's names
	}
	r.Interface, r.Unplaced = n, false
	return err
}

func (r *ownedRow) setSlot(text string) (err error) {
	r.Slot, err = parseNumber(text)
	r.Unplaced = false
	return err
}

// nameByAddress gives an owner to a row of NetBox with neither a device nor a DNS name. In NetBox an address may have
// only a description.
func nameByAddress(r *ownedRow) {
	if r.Address.IsValid() && cmp.Or(r.Owner, r.Device, r.DNS) == "" {
		r.Owner = "ip-" + strings.NewReplacer(".", "-", ":", "-").Replace(r.Address.String())
	}
}

// checkOwned finds the owner.
func checkOwned(r *ownedRow) error {
	r.foreign, r.Owner = r.Owner == "", cmp.Or(r.Owner, r.Device, r.DNS)
	switch {
	case r.Owner == "" && r.Address.IsValid():
		return fmt.Errorf("%s has no owner", r.Address)
	case r.Owner == "":
		return errors.New("the row has no owner")
	}
	return nil
}

// reservationSheet may have no addresses, if somebody else chooses them.
var reservationSheet = ownedSheet("*", nil, checkOwned, func(n *ipam.PlannedNetwork, r *ownedRow) {
	n.Reservations = append(n.Reservations, r.PlannedReservation)
}, func(n *ipam.PlannedNetwork) []ipam.PlannedReservation { return n.Reservations })

var addressSheet = ownedSheet("note", [][]string{{"address"}}, func(r *ownedRow) error {
	if !r.Address.IsValid() {
		return errors.New("the row has no address")
	}
	return checkOwned(r)
}, func(n *ipam.PlannedNetwork, r *ownedRow) {
	n.Addresses = append(n.Addresses, r.Taken())
}, func(n *ipam.PlannedNetwork) (rows []ipam.PlannedReservation) {
	for i := range n.Addresses {
		rows = append(rows, n.Addresses[i].Reserved())
	}
	return rows
})
