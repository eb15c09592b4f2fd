package ipam

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"berth/internal/alloc"
	"go4.org/netipx"
)

// carve chooses a subnet: the lowest free block in the first base that has one, away from the host's routes (LN-7). The
// engine keeps a subnet that overlaps one of its routes and asks again, and each of these is an attachment, so that it
// gets another every time and in the end an error.
func (s *Service) carve(c *change, req PoolRequest) (netip.Prefix, error) {
	blocks := c.ix.space(req.Space).blocks
	var searched []Base
	for _, base := range s.bases {
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
		if p, err := c.carveFrom(blocks, base, req); err != nil || p.IsValid() {
			return p, err
		}
	}
	return netip.Prefix{}, s.nothingToCarve(req, searched, blocks)
}

// carveFrom proposes blocks of one base until the records agree that one is free; the zero prefix is none.
func (c *change) carveFrom(blocks *alloc.Blocks, base Base, req PoolRequest) (netip.Prefix, error) {
	avoid := req.Avoid
	for {
		p, ok := blocks.Carve(base.Prefix, base.Bits, avoid)
		if !ok {
			return netip.Prefix{}, nil
		}
		sub, err := c.findSubnet(req.Space, p)
		if err == nil && sub == nil {
			return p, nil
		}
		if err != nil && !errors.Is(err, ErrOverlap) {
			return netip.Prefix{}, err
		}
		avoid = append(slices.Clip(avoid), p)
	}
}

// nothingToCarve says which bases were searched and what is in the way.
func (s *Service) nothingToCarve(req PoolRequest, searched []Base, blocks *alloc.Blocks) error {
	family := "IPv4"
	if req.IPv6 {
		family = "IPv6"
	}
	if len(searched) == 0 {
		var all []string
		for _, base := range s.bases {
			all = append(all, base.String())
		}
		return &refusal{ErrExhausted, fmt.Sprintf("no base prefix has room for an %s subnet of size /%d; the bases are %s (berth serve --default-pool); name a subnet with --subnet",
			family, req.Bits, strings.Join(all, ", "))}
	}
	var parts []string
	for _, base := range searched {
		routes := slices.DeleteFunc(slices.Clone(req.Avoid), func(p netip.Prefix) bool { return !p.Overlaps(base.Prefix) })
		parts = append(parts, fmt.Sprintf("%s (in the way: %s of space %s, %s)", base,
			few("subnet", blocks.In(base.Prefix)), req.Space, few("host route", routes)))
	}
	return &refusal{ErrExhausted, fmt.Sprintf("no %s subnet is free: searched %s; remove networks, name a subnet with --subnet, or give more bases with berth serve --default-pool",
		family, strings.Join(parts, "; "))}
}

// few counts things and shows the first of them.
func few(noun string, all []netip.Prefix) string {
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

func wholeRange(p netip.Prefix) Range { return Range{netipx.RangeOfPrefix(p)} }

func lastAddr(p netip.Prefix) netip.Addr { return netipx.RangeOfPrefix(p).To() }
