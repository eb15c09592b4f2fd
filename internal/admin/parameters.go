package admin

import (
	"net/http"
	"net/netip"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"berth/internal/admin/api"
	"berth/internal/ipam"
)

// readParameters reads the path and the query of a request into a value of its type.
func readParameters(r *http.Request, into reflect.Value) error {
	fields := api.FieldsOf(into.Type())
	var known []string
	for i := range fields {
		if fields[i].In == "query" {
			known = append(known, fields[i].Name)
		}
	}
	q, err := query(r, known...)
	if err != nil {
		return err
	}
	for i := range fields {
		f, text := &fields[i], ""
		switch f.In {
		case "path":
			text = r.PathValue(f.Name)
		case "query":
			text = q.Get(f.Name)
		}
		if text == "" {
			text = f.Default
		}
		if text == "" {
			continue
		}
		if err := readParameter(f, text, into.FieldByIndex(f.Index).Addr().Interface()); err != nil {
			return err
		}
	}
	return nil
}

// readParameter reads one of them.
func readParameter(f *api.Field, text string, into any) (err error) {
	switch to := into.(type) {
	case *string:
		*to = text
	case *[]string:
		*to = strings.Split(text, ",")
	case *bool:
		if *to = text == "true"; !*to && text != "false" { // as openapi.yaml describes it
			return invalid("the parameter %q is %q; give true or false", f.Name, text)
		}
	case *int:
		if *to, err = strconv.Atoi(text); err != nil || *to < f.Min || *to > f.Max {
			return invalid("the parameter %q is %q; give a number from %d to %d", f.Name, text, f.Min, f.Max)
		}
	case *time.Time:
		if *to, err = time.Parse(time.RFC3339, text); err != nil {
			return invalid("the parameter %q is %q; give a time such as 2026-01-31T08:00:00Z (RFC 3339)", f.Name, text)
		}
	case *netip.Addr:
		*to, err = netip.ParseAddr(text)
		switch {
		case f.In == "path" && err != nil:
			return invalid("%q is not an address", text)
		case f.In == "query" && (err != nil || to.Zone() != "" || to.Is4In6()):
			return invalid("the parameter %s is %q; give one address such as 192.0.2.7 or 2001:db8::7", f.Name, text)
		}
	case *netip.Prefix:
		if *to, err = netip.ParsePrefix(text); err != nil {
			return invalid("the %s %q is not a prefix such as 10.1.0.0/24", f.Name, text)
		}
		*to = to.Masked()
	case *ipam.MAC:
		if *to, err = ipam.ParseMAC(text); err != nil {
			return invalid("the parameter %q is %q; give a MAC address such as 02:42:0a:00:00:02", f.Name, text)
		}
	case *ipam.ID:
		*to, err = ipam.ParseID(text)
		return err
	case **ipam.EventMark:
		*to = new(ipam.EventMark)
		if err := (*to).UnmarshalText([]byte(text)); err != nil {
			return invalid("the parameter %q is %q; give the mark of an earlier answer", f.Name, text)
		}
	default:
		panic("no parameter can be a " + reflect.TypeOf(into).String())
	}
	return nil
}

// readBodyInto reads the body of a request into its field, if the type has one.
func readBodyInto(r *http.Request, into reflect.Value) error {
	for _, f := range api.FieldsOf(into.Type()) {
		if f.In != "body" {
			continue
		}
		body, err := readBody(r)
		if err != nil {
			return err
		}
		return decode(body, into.FieldByIndex(f.Index).Addr().Interface())
	}
	return nil
}

// query returns the query parameters. It refuses unknown ones, because a misspelt filter would list everything.
func query(r *http.Request, known ...string) (url.Values, error) {
	if r.URL.RawQuery == "" {
		return nil, nil
	}
	q, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return nil, invalid("the query %q cannot be read: %v", r.URL.RawQuery, err)
	}
	for name, values := range q {
		switch {
		case !slices.Contains(known, name):
			return nil, invalid("%s has no parameter %q; it has %s", r.URL.Path, name, orNone(known))
		case len(values) > 1:
			return nil, invalid("the parameter %q is given %d times; give it once", name, len(values))
		}
	}
	return q, nil
}

func orNone(names []string) string {
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ", ")
}
