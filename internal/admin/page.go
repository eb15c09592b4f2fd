package admin

import (
	"encoding/base64"
	"iter"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"berth/internal/admin/api"
)

// maxPage is how many items an answer has at most, and has without ?limit= unless the operation says otherwise.
const maxPage = 1000

// page says which part of a list is wanted: at most limit items behind the one that the cursor stands for.
type page struct {
	limit int
	given bool     // a limit was asked for
	after []string // what the cursor says; nil: from the beginning
}

// pageOf reads the parameters limit and after. A cursor of the list has so many parts.
func pageOf(r *http.Request, q url.Values, parts int) (p page, err error) {
	p.limit = maxPage
	if text := q.Get("limit"); text != "" {
		if p.limit, err = strconv.Atoi(text); err != nil || p.limit < 1 || p.limit > maxPage {
			return p, invalid(`the parameter "limit" is %q; it is a number from 1 to %d`, text, maxPage)
		}
		p.given = true
	}
	text := q.Get("after")
	if text == "" {
		return p, nil
	}
	raw, err := base64.RawURLEncoding.DecodeString(text)
	p.after = strings.Split(string(raw), "\n")
	if err != nil || len(p.after) != parts {
		return p, invalid(`the parameter "after" is %q; it is the "next" of an answer of %s`, text, r.URL.Path)
	}
	return p, nil
}

// paged tells whether a page was asked for; some lists are whole where none was.
func (p page) paged() bool { return p.given || p.after != nil }

// cursor stands for the last item of a page; its parts have no line breaks.
func cursor(parts ...string) string {
	return base64.RawURLEncoding.EncodeToString([]byte(strings.Join(parts, "\n")))
}

// placeOf reads a cursor that is a space and an address.
func (p page) placeOf() (space string, addr netip.Addr, err error) {
	if p.after == nil {
		return "", addr, nil
	}
	addr, err = netip.ParseAddr(p.after[1])
	if err != nil || p.after[0] == "" {
		return "", addr, notNext()
	}
	return p.after[0], addr, nil
}

func notNext() *api.Problem { return invalid(`the parameter "after" is not the "next" of an answer`) }

// ownerCursor stands for an owner in a dynamic network, which has no place among addresses. No name has a space in it.
func ownerCursor(network, owner string) string { return cursor("", network+" "+owner) }

// ownerOf reads what ownerCursor wrote; empty for another cursor.
func (p page) ownerOf() (network, owner string) {
	if p.after == nil || p.after[0] != "" {
		return "", ""
	}
	network, owner, both := strings.Cut(p.after[1], " ")
	if !both {
		return "", ""
	}
	return network, owner
}

// addrOf reads a cursor that is an address.
func (p page) addrOf() (addr netip.Addr, err error) {
	if p.after == nil {
		return addr, nil
	}
	if addr, err = netip.ParseAddr(p.after[0]); err != nil {
		return addr, notNext()
	}
	return addr, nil
}

// take reads a page of a list, of which items has one more than the limit if there is another page behind it. cursorOf
// tells the cursor of an item. Items of one cursor, of two stores, stand on one page, if it is longer for that.
func take[T any](p page, items iter.Seq2[T, error], cursorOf func(*T) string) (list []T, next string, err error) {
	list = []T{} // in JSON a list, not null
	for item, err := range items {
		if err != nil {
			return nil, "", err
		}
		if n := len(list); n >= p.limit {
			if last := cursorOf(&list[n-1]); last != cursorOf(&item) {
				return list, last, nil
			}
		}
		list = append(list, item)
	}
	return list, "", nil
}

// behind is the part of a list, sorted by addrOf, that is behind an address; the zero Addr is before all.
func behind[T any](list []T, after netip.Addr, addrOf func(*T) netip.Addr) iter.Seq2[T, error] {
	slices.SortFunc(list, func(a, b T) int { return addrOf(&a).Compare(addrOf(&b)) })
	return func(yield func(T, error) bool) {
		for _, item := range list {
			if after.Less(addrOf(&item)) && !yield(item, nil) {
				return
			}
		}
	}
}

// link sets the header that leads to the next page (RFC 8288).
func link(w http.ResponseWriter, r *http.Request, next string) {
	if next == "" {
		return
	}
	q := r.URL.Query()
	q.Set("after", next)
	w.Header().Set("Link", "<"+r.URL.EscapedPath()+"?"+q.Encode()+`>; rel="next"`)
}
