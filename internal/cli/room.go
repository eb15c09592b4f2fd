package cli

import (
	"slices"
	"unicode/utf8"
)

// width is how many characters a table has without --format wide.
const width = 80

// fill gives columns that are shortened the room that the others leave, the last ones first.
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

// widest is how many characters the longest cell of a column has, or its title.
func widest[T any](c *Column[T], items []T, whole bool) int {
	most := utf8.RuneCountInString(c.title)
	for i := range items {
		most = max(most, utf8.RuneCountInString(c.cell(&items[i], whole)))
	}
	return most
}
