package page

import (
	"fmt"
	"math/big"
	"strings"

	"berth/internal/ipam"
)

// drawing is a map of addresses, drawn in rows of cells.
type drawing struct {
	Title, Text   string
	Width, Height int
	Cells         []mapCell
	Rows          []mapLabel
	Key           []mapKey
}

// mapCell is an address, or a block of them.
type mapCell struct {
	X, Y  int
	State string // of one address
	Sign  string
	Title string
	Link  string
	Fills []mapFill // of a block: how much is in which state
}

// mapFill is a part of a cell, from its bottom up.
type mapFill struct {
	State   string
	Y, High float64
}

// mapLabel is what stands beside a row.
type mapLabel struct {
	Y    int
	Text string
}

// mapKey says what a sign and its colour mean.
type mapKey struct{ State, Sign, Text string }

// How a map is laid out, in its own units.
const (
	mapColumns = 16
	cellSize   = 20
	cellStep   = 22
	labelWidth = 46
)

// meanings are what the states are called beside a map.
func keyOf() (all []mapKey) {
	for _, state := range ipam.AddressStates() {
		text := string(state)
		if state == ipam.AddressOutside {
			text = "outside, in no pool"
		}
		all = append(all, mapKey{string(state), signs[state], text})
	}
	return all
}

func (d *drawing) place(i int) (x, y int) {
	x, y = labelWidth+i%mapColumns*cellStep, i/mapColumns*cellStep
	d.Width, d.Height = max(d.Width, x+cellSize), max(d.Height, y+cellSize)
	return x, y
}

// cellMap draws each address of a layout.
func cellMap(l *ipam.Layout, root string) *drawing {
	d := &drawing{Title: "Map of " + l.Within.String(), Key: keyOf(),
		Text: "Each cell is one address: " + countsText(&l.Sum) + ". The table of addresses says the same."}
	i := 0
	for n := range l.Rows {
		row := &l.Rows[n]
		for addr := row.Range.From(); addr.IsValid() && !row.Range.To().Less(addr); addr = addr.Next() {
			x, y := d.place(i)
			c := mapCell{X: x, Y: y, State: string(row.State), Sign: signs[row.State],
				Title: addr.String() + ": " + string(row.State), Link: addressLink(root, l.Subnet.Space, addr)}
			if name := nameOf(row); name != "" {
				c.Title += ", " + name
			}
			d.Cells = append(d.Cells, c)
			if i%mapColumns == 0 {
				text := addr.String()
				d.Rows = append(d.Rows, mapLabel{y, text[strings.LastIndexAny(text, ".:"):]})
			}
			i++
		}
	}
	return d
}

func nameOf(row *ipam.LayoutRow) string {
	switch {
	case row.Lease != nil && row.Lease.Name != "":
		return row.Lease.Name
	case row.Reservation != nil:
		return row.Reservation.Owner
	case row.Lease != nil && row.Lease.MAC != (ipam.MAC{}):
		return row.Lease.MAC.String()
	}
	return ""
}

// partMap draws each part of a layout, as full as it is.
func partMap(l *ipam.Layout, root string) *drawing {
	figure := "percentage"
	if l.Within.Addr().Is6() { // which is next to nothing
		figure = "number"
	}
	d := &drawing{Title: "Map of " + l.Within.String(), Key: keyOf(),
		Text: fmt.Sprintf("Each cell is a part of it, with the %s of its addresses that are leased, quarantined or "+
			"reserved, in all: %s. The table of parts says the same.", figure, countsText(&l.Sum))}
	for i := range l.Parts {
		part := &l.Parts[i]
		x, y := d.place(i)
		all, _ := new(big.Float).SetInt(sizeOfPrefix(part.Prefix)).Float64()
		used := part.Leased + part.Quarantined + part.Reserved
		c := mapCell{X: x, Y: y, Title: part.Prefix.String() + ": " + countsText(&part.StateCounts),
			Link: subnetLink(root, l.Subnet.ID, part.Prefix), Sign: percentSign(float64(used), all)}
		if l.Within.Addr().Is6() {
			c.Sign = numberSign(used)
		}
		top := float64(cellSize)
		for _, state := range ipam.AddressStates() {
			n, _ := part.Of(state).Float64()
			high := cellSize * n / all
			if n > 0 && (state == ipam.AddressLeased || state == ipam.AddressQuarantined || state == ipam.AddressReserved) {
				high = max(high, 2) // one of very many is still seen
			}
			if high = min(high, top); high > 0 {
				top -= high
				c.Fills = append(c.Fills, mapFill{string(state), float64(y) + top, high})
			}
		}
		d.Cells = append(d.Cells, c)
		if i%mapColumns == 0 {
			d.Rows = append(d.Rows, mapLabel{y, shortPrefix(part.Prefix.Addr().String())})
		}
	}
	return d
}

// percentSign is a share as two digits, or a dot for nothing.
func percentSign(n, all float64) string {
	switch {
	case n == 0:
		return "·"
	case n == all:
		return "100"
	}
	return fmt.Sprint(min(max(int(100*n/all+.5), 1), 99))
}

// numberSign is a number in three characters, or a dot for nothing.
func numberSign(n uint64) string {
	switch {
	case n == 0:
		return "·"
	case n < 1_000:
		return fmt.Sprint(n)
	case n < 100_000:
		return fmt.Sprint(n/1_000, "k")
	case n < 1_000_000:
		return fmt.Sprint(".", n/100_000, "M")
	}
	return fmt.Sprint(min(n/1_000_000, 99), "M")
}

// shortPrefix is the end of the first address of a block, as much of it as there is room for.
func shortPrefix(text string) string {
	const most = 7
	if len(text) > most {
		return "…" + text[len(text)-most+1:]
	}
	return text
}

// countsText says how many addresses are in which state.
func countsText(n *ipam.StateCounts) string {
	var parts []string
	for _, key := range keyOf() {
		if of := n.Of(ipam.AddressState(key.State)); of.Sign() > 0 {
			parts = append(parts, of.Text()+" "+key.Text)
		}
	}
	return strings.Join(parts, ", ")
}
