package page

import (
	"net/http"
	"net/netip"
	"net/url"
	"strings"

	"berth/internal/ipam"
)

// The parameters that all views have.
const formParameter = "format"

// rootOf leads from a view to the root of the page: a proxy may have put that below a path of its own.
func rootOf(r *http.Request) string {
	if n := strings.Count(r.URL.EscapedPath(), "/") - 1; n > 0 {
		return strings.Repeat("../", n)
	}
	return "./"
}

// link leads to a view below the root, with parameters as pairs of name and value; those without a value are left out.
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

// with is a link to the same view with other parameters.
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

// query returns the parameters of a request, and refuses one that the view does not have: a misspelt one would
// otherwise show something else than was asked for.
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

// The links to views of one thing.
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
