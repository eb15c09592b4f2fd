package allocator

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"go4.org/netipx"

	"berth/internal/alloc"
	"berth/internal/ipam"
	"berth/internal/ipam/ledger"
)

// Carve chooses the lowest free block of the first base that has one, and avoids the host's routes (LN-7). If a subnet
// overlaps a route, the engine keeps it and asks again. Each request is an attachment, so the engine gets another
// subnet every time, and finally an error.
func Carve(s *ledger.Ledger, c *ledger.Change, req ipam.PoolRequest) (netip.Prefix, error) {
	blocks := c.Index().Blocks(req.Space)
	var searched []ipam.Base
	for _, base := range s.Bases() {
		if base.Prefix.Addr().Is6() != req.IPv6 {
			continue
		}
		if req.Bits != 0 {
			base.Bits = req.Bits
		}
		if base.Bits < base.Prefix.Bits() || base.Bits > base.Prefix.Addr().BitLen() {
			continue
		}
		searched = append(searched, base)
		if p, err := CarveFrom(c, blocks, base, req); err != nil {
			return p, err
		} else if p.IsValid() {
			return p, nil
		}
	}
	return netip.Prefix{}, nothingToCarve(s, req, searched, blocks)
}

// CarveFrom proposes blocks of one base until the records confirm that one is free. It returns the zero prefix if there
// is none.
func CarveFrom(c *ledger.Change, blocks *alloc.Blocks, base ipam.Base, req ipam.PoolRequest) (netip.Prefix, error) {
	avoid := req.Avoid
	for {
		p, ok := blocks.Carve(base.Prefix, base.Bits, avoid)
		if !ok {
			return netip.Prefix{}, nil
		}
		sub, err := c.FindSubnet(req.Space, p)
		if err == nil && sub == nil {
			return p, nil
		}
		if err != nil && !errors.Is(err, ipam.ErrOverlap) {
			return netip.Prefix{}, err
		}
		avoid = append(slices.Clip(avoid), p)
	}
}

// nothingToCarve returns an error with the searched bases and what is in the way.
func nothingToCarve(s *ledger.Ledger, req ipam.PoolRequest, searched []ipam.Base, blocks *alloc.Blocks) error {
	family := "IPv4"
	if req.IPv6 {
		family = "IPv6"
	}
	if len(searched) == 0 {
		var all []string
		for _, base := range s.Bases() {
			all = append(all, base.String())
		}
		return ipam.Refuse(ipam.ErrExhausted,
			"no base prefix has room for an %s subnet of size /%d; the bases are %s (berth serve --default-pool); "+
				"name a subnet with --subnet",
			family, req.Bits, strings.Join(all, ", "))
	}
	var parts []string
	for _, base := range searched {
		routes := slices.DeleteFunc(slices.Clone(req.Avoid),
			func(p netip.Prefix) bool { return !p.Overlaps(base.Prefix) })
		parts = append(parts, fmt.Sprintf("%s (in the way: %s of space %s, %s)", base,
			ipam.Summarize("subnet", blocks.In(base.Prefix)), req.Space, ipam.Summarize("host route", routes)))
	}
	return ipam.Refuse(ipam.ErrExhausted,
		"no %s subnet is free: searched %s; remove networks, name a subnet with --subnet, or give more bases with "+
			"berth serve --default-pool",
		family, strings.Join(parts, "; "))
}

// WholeRange returns all addresses of a prefix as a range.
func WholeRange(p netip.Prefix) ipam.Range { return ipam.Range{IPRange: netipx.RangeOfPrefix(p)} }
