package cli

import (
	"slices"
	"unicode/utf8"
)

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
