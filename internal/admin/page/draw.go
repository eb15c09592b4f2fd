package page

import (
	"fmt"
	"math/big"
	"strings"

	"berth/internal/ipam"
)

// drawing is a map of addresses in rows of cells.
type drawing struct {
	Title, Text   string
	Width, Height int
	Cells         []mapCell
	Rows          []mapLabel
	Key           []mapKey
}

// mapCell is one address or a block of addresses.
type mapCell struct {
	X, Y  int
	State string // of one address
	Sign  string
	Title string
	Link  string
	Fills []mapFill // of a block: the part of each state
}

// mapFill is a part of a cell, starting from the bottom.
type mapFill struct {
	State   string
	Y, High float64
}

// mapLabel is the text next to a row.
type mapLabel struct {
	Y    int
	Text string
}

// mapKey explains a sign and its colour.
type mapKey struct{ State, Sign, Text string }

// The measures of a map in its own units.
const (
	mapColumns = 16
	cellSize   = 20
	cellStep   = 22
	labelWidth = 46
)

// keyOf returns the key of a map: the names of the states.
func keyOf() (all []mapKey) {
	for _, l := range ipam.Legend() {
		all = append(all, mapKey{string(l.State), l.Sign, l.Word})
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
			c := mapCell{X: x, Y: y, State: string(row.State), Sign: row.State.Legend().Sign,
				Title: addr.String() + ": " + row.State.Legend().Word, Link: addressLink(root, l.Subnet.Space, addr)}
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

// partMap draws each part of a layout with its fill.
func partMap(l *ipam.Layout, root string) *drawing {
	figure := "percentage"
	if l.Within.Addr().Is6() { // where each part is nearly empty
		figure = "number"
	}
	d := &drawing{Title: "Map of " + l.Within.String(), Key: keyOf(),
		Text: fmt.Sprintf("Each cell is a part of this range and shows the %s of its addresses that are %s. "+
			"In all: %s. The table of parts says the same.",
			figure, ipam.MarkWords(ipam.MarkTaken), countsText(&l.Sum))}
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
				high = max(high, 2) // one address of very many is still visible
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

// percentSign returns a share as two digits, or a dot for zero.
func percentSign(n, all float64) string {
	switch {
	case n == 0:
		return "·"
	case n == all:
		return "100"
	}
	return fmt.Sprint(min(max(int(100*n/all+.5), 1), 99))
}

// numberSign returns a number in three characters, or a dot for zero.
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

// shortPrefix returns the end of a block's first address, as much as fits.
func shortPrefix(text string) string {
	const most = 7
	if len(text) > most {
		return "…" + text[len(text)-most+1:]
	}
	return text
}

// countsText returns the number of addresses in each state, in words.
func countsText(n *ipam.StateCounts) string {
	var parts []string
	for _, key := range keyOf() {
		if of := n.Of(ipam.AddressState(key.State)); of.Sign() > 0 {
			parts = append(parts, of.Text()+" "+key.Text)
		}
	}
	return strings.Join(parts, ", ")
}
