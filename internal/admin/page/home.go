package page

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"berth/internal/ipam"
)

// home shows how it stands, and the networks, those first that are nearly full.
func (p *Page) home(r *http.Request) (*shown, error) {
	q, err := query(r, "from")
	if err != nil {
		return nil, err
	}
	all, err := p.networks(r)
	if err != nil {
		return nil, err
	}
	part, next, err := partFrom(r, q.Get("from"), all)
	if err != nil {
		return nil, err
	}
	s := &shown{Title: "Networks", File: "networks"}
	root := rootOf(r)
	if err := p.state(r, s); err != nil {
		return nil, err
	}
	t := s.table(&table{Name: "networks", Title: "Networks", Next: next, None: "There is no network yet.",
		Columns: columns("network", "Network", "used", "Used", "leased", "#Leased", "reserved", "#Reserved", "quarantined",
			"#Quarantined", "free", "#Free", "excluded", "-#Excluded", "space", "-Space", "tags", "-Tags", "network_id",
			"-Id")})
	for i := range part {
		n := &part[i]
		t.add(slices.Concat(row{p.of(n.Name).to(networkLink(root, n.ID))}, p.useCells(&n.Use),
			row{p.of(n.Space), p.of(n.Tags), p.of(n.ID)})...)
	}
	return s, nil
}

// useCells are how much of some pools is used, and how many addresses are in which state.
func (p *Page) useCells(u *ipam.Use) row {
	return row{usedCell(u), p.of(u.Leased), p.of(u.Reserved), p.of(u.Quarantined), count(u.Free), count(u.Excluded)}
}

// networks lists the networks: those that are nearly full first, the fullest of them at the top, then all others by
// name.
func (p *Page) networks(r *http.Request) ([]ipam.NetworkInfo, error) {
	all, err := p.cfg.Service.Networks(r.Context(), ipam.NetworkFilter{Brief: true})
	if err != nil {
		return nil, err
	}
	slices.SortStableFunc(all, func(a, b ipam.NetworkInfo) int {
		fullA, fullB := a.Use.NearlyFull(), b.Use.NearlyFull()
		switch {
		case fullA && fullB:
			percentA, _ := a.Use.Percent()
			percentB, _ := b.Use.Percent()
			return cmp.Or(percentB-percentA, strings.Compare(a.Name, b.Name))
		case fullA:
			return -1
		case fullB:
			return 1
		}
		return 0
	})
	return all, nil
}

// usedCell tells how much of what pools can give is used, with a bar; nothing where they can give nothing.
func usedCell(u *ipam.Use) cell {
	percent, ok := u.Percent()
	if !ok {
		return cell{}
	}
	text := fmt.Sprintf("%d%%", percent)
	c := cell{Value: text, Text: text, Bar: &bar{Label: text + " used"}}
	if u.NearlyFull() {
		c.Sign, c.Note = "!", "nearly full"
	}
	free, _ := u.Free.Float64()
	all := free + float64(u.Leased) + float64(u.Reserved) + float64(u.Quarantined)
	at := 0.0
	for _, part := range []struct {
		state ipam.AddressState
		n     uint64
	}{{ipam.AddressLeased, u.Leased}, {ipam.AddressReserved, u.Reserved}, {ipam.AddressQuarantined, u.Quarantined}} {
		wide := 100 * float64(part.n) / all
		if part.n > 0 {
			c.Bar.Parts = append(c.Bar.Parts, barPart{string(part.state), at, wide})
		}
		at += wide
	}
	return c
}
