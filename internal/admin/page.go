package admin

import (
	"encoding/base64"
	"iter"
	"net/netip"
	"slices"
	"strings"

	"berth/internal/admin/api"
)

// part reads a cursor with the given number of parts; nil: from the beginning.
func part(after string, parts int) ([]string, error) {
	if after == "" {
		return nil, nil
	}
	raw, err := base64.RawURLEncoding.DecodeString(after)
	all := strings.Split(string(raw), "\n")
	if err != nil || len(all) != parts {
		return nil, invalid(`the parameter "after" is %q; give the field "next" of an earlier answer of the same list`,
			after)
	}
	return all, nil
}

// cursor returns the cursor of the last item of a page. Its parts have no line breaks.
func cursor(parts ...string) string {
	return base64.RawURLEncoding.EncodeToString([]byte(strings.Join(parts, "\n")))
}

// placeOf reads a cursor that is a space and an address.
func placeOf(after string) (space string, addr netip.Addr, err error) {
	parts, err := part(after, 2)
	if parts == nil {
		return "", addr, err
	}
	addr, err = netip.ParseAddr(parts[1])
	if err != nil || parts[0] == "" {
		return "", addr, notNext()
	}
	return parts[0], addr, nil
}

func notNext() *api.Problem {
	return invalid(`the parameter "after" is not the field "next" of an earlier answer`)
}

// ownerCursor returns the cursor of an owner in a dynamic network, which has no address. No name contains a space.
func ownerCursor(network, owner string) string { return cursor("", network+" "+owner) }

// ownerOf reads a cursor of ownerCursor. It returns empty strings for another cursor.
func ownerOf(after string) (network, owner string) {
	parts, _ := part(after, 2)
	if parts == nil || parts[0] != "" {
		return "", ""
	}
	network, owner, both := strings.Cut(parts[1], " ")
	if !both {
		return "", ""
	}
	return network, owner
}

// addressAt reads a cursor that is an address.
func addressAt(after string) (addr netip.Addr, err error) {
	parts, err := part(after, 1)
	if parts == nil {
		return addr, err
	}
	if addr, err = netip.ParseAddr(parts[0]); err != nil {
		return addr, notNext()
	}
	return addr, nil
}

// take reads a page of a list. items yields one more than the limit if there is another page. cursorOf returns the
// cursor of an item. Items with the same cursor, which two stores can have, stay on one page, which may exceed the
// limit.
func take[T any](limit int, items iter.Seq2[T, error], cursorOf func(*T) string) (list []T, next string, err error) {
	list = []T{} // in JSON a list, not null
	for item, err := range items {
		if err != nil {
			return nil, "", err
		}
		if n := len(list); n >= limit {
			if last := cursorOf(&list[n-1]); last != cursorOf(&item) {
				return list, last, nil
			}
		}
		list = append(list, item)
	}
	return list, "", nil
}

// behind yields the part of a list after an address, sorted by addrOf. The zero Addr comes before all.
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

// pageOf reads a page of a list after an address. all is the whole list.
func pageOf[T any](p api.Page, all []T, addrOf func(*T) netip.Addr) (list []T, next string, err error) {
	after, err := addressAt(p.Cursor)
	if err != nil {
		return nil, "", err
	}
	return take(p.Most, behind(all, after, addrOf), func(one *T) string { return cursor(addrOf(one).String()) })
}
