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

// The parameters of a list that can be sorted and filtered.
const (
	sortParameter   = "sort" // the name of a column, with a leading - for descending order
	filterParameter = "filter"
)

// listed is a list of which only the shown rows are drawn, because most rows are not shown.
type listed[T any] struct {
	all   []T
	use   func(*T) *ipam.Use // for the column used
	cells func(*T) row       // draws a row
}

// arrange fills a table with the rows that match the filter, sorted by the requested column and cut to the requested
// page. It needs the complete list.
func arrange[T any](r *http.Request, t *table, usual string, l listed[T]) error {
	q := r.URL.Query()
	t.Filter, t.Sort = q.Get(filterParameter), cmp.Or(q.Get(sortParameter), usual)
	name, down := strings.CutPrefix(t.Sort, "-")
	at := slices.IndexFunc(t.Columns, func(c column) bool { return c.Name == name })
	if at < 0 {
		return ipam.Refuse(ipam.ErrInvalid, "the list has no column %q to sort by", name)
	}
	t.SortLink = func(by string) string { return with(r, sortParameter, by, "from", "") }
	t.Here = rootOf(r) + strings.TrimPrefix(r.URL.EscapedPath(), "/")
	t.Filtered = t.Filter != "" || len(l.all) >= leastFiltered
	if t.Filter != "" {
		t.None = "Nothing in the list contains " + strconv.Quote(t.Filter) + "."
		t.Begin = ""
	}
	keys, next, err := partFrom(r, q.Get("from"), l.sorted(at, name, down, strings.ToLower(t.Filter)))
	t.Next = next
	for _, k := range keys {
		t.add(l.cells(&l.all[k.row])...)
	}
	return err
}

// leastFiltered is the minimum number of rows for a filter field.
const leastFiltered = 8

// sortKey is the value that a row is sorted by.
type sortKey struct {
	row    int // its place in the list
	value  any
	amount float64 // the number or percentage in the cell
	count  bool    // amount is set
	text   string
}

// sorted returns the rows that contain a text, sorted by a column. Rows without a value are last in both directions.
func (l *listed[T]) sorted(at int, name string, down bool, wanted string) []sortKey {
	keys := make([]sortKey, 0, len(l.all))
	has := func(c cell) bool { return strings.Contains(strings.ToLower(c.Text), wanted) }
	for i := range l.all {
		one, byUse := &l.all[i], name == "used"
		var cells row
		if !byUse || wanted != "" {
			cells = l.cells(one)
		}
		switch {
		case wanted != "" && !slices.ContainsFunc(cells, has):
		case byUse:
			keys = append(keys, keyOfUse(i, l.use(one)))
		default:
			keys = append(keys, keyOfCell(i, cells[at]))
		}
	}
	slices.SortStableFunc(keys, func(a, b sortKey) int {
		switch {
		case a.value == nil && b.value == nil:
			return 0
		case a.value == nil:
			return 1
		case b.value == nil:
			return -1
		case down:
			return b.compare(a)
		}
		return a.compare(b)
	})
	return keys
}

// keyOfUse returns the sort key of the column used, without drawing the row.
func keyOfUse(row int, u *ipam.Use) sortKey {
	if percent, ok := u.Percent(); ok {
		return sortKey{row: row, value: percent, amount: float64(percent), count: true}
	}
	return sortKey{row: row}
}

func keyOfCell(row int, c cell) sortKey {
	amount, err := strconv.ParseFloat(cmp.Or(c.Exact, strings.TrimSuffix(c.Text, "%")), 64)
	return sortKey{row, c.Value, amount, err == nil, strings.ToLower(c.Text)}
}

// compare compares two values of a column.
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
