package page

import (
	"cmp"
	"math/big"
	"net/http"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"berth/internal/ipam"
)

// The parameters of a list that is sorted by any of its columns.
const (
	sortParameter   = "sort" // the name of a column; with a - before it from the greatest down
	filterParameter = "filter"
)

// arrange keeps the rows in which the filter is found, sorts them by the column that is asked for, and cuts out the page
// that is asked for. All rows are there: a list that is read in part is not arranged.
func (p *Page) arrange(r *http.Request, t *table, usual string) (err error) {
	q := r.URL.Query()
	t.Filter, t.Sort = q.Get(filterParameter), cmp.Or(q.Get(sortParameter), usual)
	name, down := strings.CutPrefix(t.Sort, "-")
	at := slices.IndexFunc(t.Columns, func(c column) bool { return c.Name == name })
	if at < 0 {
		return ipam.Refuse(ipam.ErrInvalid, "the list has no column %q to sort by", name)
	}
	t.SortLink = func(by string) string { return with(r, sortParameter, by, "from", "") }
	t.Here = rootOf(r) + strings.TrimPrefix(r.URL.EscapedPath(), "/")
	t.Filtered = t.Filter != "" || len(t.Rows) >= leastFiltered
	if t.Filter != "" {
		t.None = "Nothing in the list has " + strconv.Quote(t.Filter) + "."
		t.Begin = ""
		wanted := strings.ToLower(t.Filter)
		t.Rows = slices.DeleteFunc(t.Rows, func(cells row) bool {
			return !slices.ContainsFunc(cells, func(c cell) bool { return strings.Contains(strings.ToLower(c.Text), wanted) })
		})
	}
	slices.SortStableFunc(t.Rows, func(a, b row) int {
		switch empty := func(c cell) bool { return c.Value == nil }; {
		case empty(a[at]) || empty(b[at]): // last, in both directions
			return number(empty(a[at])) - number(empty(b[at]))
		case down:
			return compareCells(b[at], a[at])
		}
		return compareCells(a[at], b[at])
	})
	t.Rows, t.Next, err = partFrom(r, q.Get("from"), t.Rows)
	return err
}

// leastFiltered is how many rows a list has at least that is worth a filter.
const leastFiltered = 8

func number(is bool) int {
	if is {
		return 1
	}
	return 0
}

// compareCells orders two values of a column.
func compareCells(a, b cell) int {
	switch v := a.Value.(type) {
	case time.Time:
		if w, is := b.Value.(time.Time); is {
			return v.Compare(w)
		}
	case netip.Addr:
		if w, is := b.Value.(netip.Addr); is {
			return v.Compare(w)
		}
	case netip.Prefix:
		if w, is := b.Value.(netip.Prefix); is {
			return cmp.Or(v.Addr().Compare(w.Addr()), cmp.Compare(v.Bits(), w.Bits()))
		}
	}
	if x, is := amount(a); is {
		if y, is := amount(b); is {
			return x.Cmp(y)
		}
	}
	return strings.Compare(strings.ToLower(a.Text), strings.ToLower(b.Text))
}

// amount is the number that a cell is, or its percentage.
func amount(c cell) (*big.Int, bool) {
	return new(big.Int).SetString(cmp.Or(c.Exact, strings.TrimSuffix(c.Text, "%")), 10)
}
