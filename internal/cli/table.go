package cli

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"berth/internal/ipam"

	"golang.org/x/term"
)

// PlainTable returns a table in columns, without flags. wide shows all columns.
func PlainTable[T any](p *Program, w io.Writer, columns []Column[T], wide bool) *Table[T] {
	return &Table[T]{W: w, columns: columns, format: "table", wide: wide, whole: wide, colour: p.colours()}
}

// Alarm is the colour of a cell on a terminal (ECMA-48).
type Alarm string

// Colours: for nearly full, and for full, wrong or gone.
const (
	Warned  Alarm = "\x1b[33m"
	Wrong   Alarm = "\x1b[31m"
	noAlarm       = "\x1b[0m"
)

// Percentages of use at which a pool is nearly full, and full.
const (
	nearlyFull = 80
	wholeFull  = 90
)

// UseCol is the column USE. It marks nearly full pools, and sorts the fullest first.
func UseCol[T any](out Output, use func(*T) ipam.Use) Column[T] {
	c := Col("USE", func(row *T) string { return out.Use(use(row)) })
	c.large = true
	c.alarm = func(row *T) Alarm {
		u := use(row)
		switch percent, ok := u.Percent(); {
		case !ok || percent < nearlyFull:
			return ""
		case percent < wholeFull:
			return Warned
		}
		return Wrong
	}
	return c
}

// states are the words that are marked in tables: waiting, and wrong or gone.
var states = map[string]Alarm{
	"draining": Warned, "leaving": Warned, "releasing": Warned, "replaced": Warned, "unconfirmed": Warned,
	"conflict": Wrong, "ended without a word": Wrong, "expired": Wrong, "failed": Wrong, "lock lost": Wrong,
	"lock taken away": Wrong, "lost": Wrong, "refused": Wrong, "removed": Wrong,
	"taken": Wrong,
}

// Marked returns the column c, which shows states, with wrong, gone and waiting ones in colour.
func (c Column[T]) Marked() Column[T] {
	return c.Stands(func(row *T) Alarm { return states[c.value(row)] })
}

// colours reports whether the output is a terminal on which colours are allowed (https://no-color.org).
func (p *Program) colours() bool {
	out, ok := p.Out.(*os.File)
	return ok && term.IsTerminal(int(out.Fd())) && p.Env("NO_COLOR") == "" && p.Env("TERM") != "dumb"
}

// table writes all items in columns with titles.
func (t *Table[T]) table(items []T) error {
	widths := make([]int, len(t.columns))
	for i := range t.columns {
		widths[i] = widest(&t.columns[i], items, t.whole)
	}
	var b strings.Builder
	line := func(cell func(*Column[T]) (string, Alarm)) {
		for i := range t.columns {
			text, alarm := cell(&t.columns[i])
			pad := widths[i] - utf8.RuneCountInString(text) + gap
			if t.colour && alarm != "" {
				text = string(alarm) + text + noAlarm
			}
			b.WriteString(text)
			if i < len(t.columns)-1 {
				b.WriteString(strings.Repeat(" ", pad))
			}
		}
		b.WriteByte('\n')
	}
	if !t.bare {
		line(func(c *Column[T]) (string, Alarm) { return c.title, "" })
	}
	for i := range items {
		line(func(c *Column[T]) (text string, alarm Alarm) {
			if c.alarm != nil {
				alarm = c.alarm(&items[i])
			}
			return c.cell(&items[i], t.whole), alarm
		})
	}
	_, err := io.WriteString(t.W, b.String())
	return err
}

// sortBy parses --sort.
func (t *Table[T]) sortBy(by string) error {
	if by == "" {
		return nil
	}
	name, backwards := strings.CutPrefix(by, "-")
	var known []string
	for _, c := range t.columns {
		if c.title == "" {
			continue
		}
		field := strings.ToLower(strings.ReplaceAll(c.title, " ", "-"))
		known = append(known, field)
		if field != name {
			continue
		}
		t.sort = func(a, b *T) int {
			order := compareCells(c.value(a), c.value(b))
			if backwards != c.large {
				return -order
			}
			return order
		}
	}
	if t.sort == nil {
		return fmt.Errorf("--sort has no column %q here; its columns are %s", name, strings.Join(known, ", "))
	}
	return nil
}

// compareCells compares cells as addresses or prefixes, then as numbers, and otherwise as texts.
func compareCells(a, b string) int {
	x, y := addressIn(a), addressIn(b)
	if x.IsValid() && y.IsValid() {
		return cmp.Or(x.Compare(y), strings.Compare(a, b))
	}
	n, one := numberIn(a)
	m, other := numberIn(b)
	if one && other {
		return cmp.Compare(n, m)
	}
	return strings.Compare(a, b)
}

// addressIn returns the address at the beginning of a cell.
func addressIn(cell string) netip.Addr {
	if i := strings.IndexAny(cell, "/-, "); i >= 0 {
		cell = cell[:i]
	}
	addr, _ := netip.ParseAddr(cell)
	return addr
}

// numberIn returns the number at the beginning of a cell, such as 7, 2e19, 2^64 or 83%.
func numberIn(cell string) (float64, bool) {
	first, _, _ := strings.Cut(strings.TrimLeft(cell, " "), " ")
	if power, is := strings.CutPrefix(first, "2^"); is {
		n, err := strconv.ParseFloat(power, 64)
		return math.Exp2(n), err == nil
	}
	n, err := strconv.ParseFloat(strings.TrimSuffix(first, "%"), 64)
	return n, err == nil
}

// width is the number of characters of a table without --format wide.
const width = 80

// fill widens shortened columns by the room that is left, the last ones first.
func fill[T any](columns []Column[T], items []T) {
	shortened := func(c Column[T]) bool { return c.most > 0 }
	if !slices.ContainsFunc(columns, shortened) {
		return
	}
	room := width + gap
	for i := range columns {
		room -= widest(&columns[i], items, false) + gap
	}
	for i := len(columns) - 1; i >= 0 && room > 0; i-- {
		c := &columns[i]
		if more := min(room, widest(c, items, true)-c.most); shortened(*c) && more > 0 {
			c.most += more
			room -= more
		}
	}
}

// widest is the number of characters of a column's longest cell or its title.
func widest[T any](c *Column[T], items []T, whole bool) int {
	most := utf8.RuneCountInString(c.title)
	for i := range items {
		most = max(most, utf8.RuneCountInString(c.cell(&items[i], whole)))
	}
	return most
}
