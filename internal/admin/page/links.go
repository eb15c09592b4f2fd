package page

import (
	"net/http"
	"net/netip"
	"net/url"
	"strings"

	"berth/internal/ipam"
)

// The parameter that all views have.
const formParameter = "format"

// rootOf returns the relative link from a view to the root of the page, because a proxy may serve the page below any
// path.
func rootOf(r *http.Request) string {
	if n := strings.Count(r.URL.EscapedPath(), "/") - 1; n > 0 {
		return strings.Repeat("../", n)
	}
	return "./"
}

// link returns a link to a view below the root. The parameters are pairs of name and value; those without a value are
// omitted.
func link(root string, segments []string, pairs ...string) string {
	var b strings.Builder
	b.WriteString(root)
	for i, s := range segments {
		if i > 0 {
			b.WriteByte('/')
		}
		b.WriteString(url.PathEscape(s))
	}
	q := url.Values{}
	for i := 0; i+1 < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			q.Set(pairs[i], pairs[i+1])
		}
	}
	if len(q) > 0 {
		b.WriteString("?" + q.Encode())
	}
	return b.String()
}

// with returns a link to the same view with other parameters.
func with(r *http.Request, pairs ...string) string {
	q := r.URL.Query()
	for i := 0; i+1 < len(pairs); i += 2 {
		if q.Del(pairs[i]); pairs[i+1] != "" {
			q.Set(pairs[i], pairs[i+1])
		}
	}
	if len(q) == 0 {
		return rootOf(r) + strings.TrimPrefix(r.URL.EscapedPath(), "/") // "?" alone would be the same view to some browsers
	}
	return "?" + q.Encode()
}

// query returns the query parameters. It refuses unknown ones, because a misspelt one would show something else than
// requested.
func query(r *http.Request, known ...string) (url.Values, error) {
	q, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return nil, ipam.Refuse(ipam.ErrInvalid, "the query %q cannot be read: %v", r.URL.RawQuery, err)
	}
	for name, values := range q {
		is := name == formParameter
		for _, k := range known {
			is = is || k == name
		}
		switch {
		case !is && len(known) == 0:
			return nil, ipam.Refuse(ipam.ErrInvalid, "this view has no parameter %q; it has format", name)
		case !is:
			return nil, ipam.Refuse(ipam.ErrInvalid, "this view has no parameter %q; it has %s and format", name,
				strings.Join(known, ", "))
		case len(values) > 1:
			return nil, ipam.Refuse(ipam.ErrInvalid, "the parameter %q is given %d times; give it once", name,
				len(values))
		}
	}
	return q, nil
}

// The links to single objects.
func networkLink(root string, id ipam.ID) string { return link(root, []string{"network", id.String()}) }

func subnetLink(root string, id ipam.ID, within netip.Prefix) string {
	part := ""
	if within.IsValid() {
		part = within.String()
	}
	return link(root, []string{"subnet", id.String()}, "part", part)
}

func addressLink(root, space string, addr netip.Addr) string {
	if !addr.IsValid() {
		return ""
	}
	return link(root, []string{"address", addr.String()}, "space", space)
}
