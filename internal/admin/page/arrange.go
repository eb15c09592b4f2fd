package page

import (
	"cmp"
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

// arrange keeps the rows in which the filter is found, sorts them by the column that is asked for, and cuts out the
// page that is asked for. All rows are there: a list that is read in part is not arranged.
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
	t.sort(at, down)
	t.Rows, t.Next, err = partFrom(r, q.Get("from"), t.Rows)
	return err
}

// leastFiltered is how many rows a list has at least that is worth a filter.
const leastFiltered = 8

// sortKey is what a row is sorted by.
type sortKey struct {
	cells  row
	value  any
	amount float64 // the number that the cell is, or its percentage
	count  bool    // it is one
	text   string
}

// sort sorts the rows by a column. Those without a value are last, in both directions.
func (t *table) sort(at int, down bool) {
	keys := make([]sortKey, len(t.Rows))
	for i, cells := range t.Rows {
		c := cells[at]
		amount, err := strconv.ParseFloat(cmp.Or(c.Exact, strings.TrimSuffix(c.Text, "%")), 64)
		keys[i] = sortKey{cells, c.Value, amount, err == nil, strings.ToLower(c.Text)}
	}
	slices.SortStableFunc(keys, func(a, b sortKey) int {
		switch {
		case a.value == nil || b.value == nil:
			return cmp.Compare(len(b.text), len(a.text))
		case down:
			return b.compare(a)
		}
		return a.compare(b)
	})
	for i := range keys {
		t.Rows[i] = keys[i].cells
	}
}

// compare orders two values of a column.
func (k sortKey) compare(other sortKey) int {
	switch v := k.value.(type) {
	case time.Time:
		if w, is := other.value.(time.Time); is {
			return v.Compare(w)
		}
	case netip.Addr:
		if w, is := other.value.(netip.Addr); is {
			return v.Compare(w)
		}
	case netip.Prefix:
		if w, is := other.value.(netip.Prefix); is {
			return cmp.Or(v.Addr().Compare(w.Addr()), cmp.Compare(v.Bits(), w.Bits()))
		}
	}
	if k.count && other.count {
		return cmp.Compare(k.amount, other.amount)
	}
	return strings.Compare(k.text, other.text)
}
