package plan

import (
	"cmp"
	"net/netip"
	"reflect"
	"strconv"
	"strings"
	"time"

	"berth/internal/alloc"
	"berth/internal/ipam"
)

// A document follows the structs of ipam: each field is a key, by its json tag, and a column of a table. A tag `plan`
// changes that: "name" is another key, "-" is none, ",last" writes it after all others, and ",with=Field" writes it
// also if the other field is set.

// field is a key of a document.
type field struct {
	key   string
	index []int
	omit  bool   // left out if zero
	reset bool   // written with its default, it resets the present value
	with  []int  // written also if this field is set; nil: none
	as    *codec // nil: a list or a mapping
}

// codec reads and writes a value that is one text.
type codec struct {
	set  func(to reflect.Value, text string) error
	text func(reflect.Value) string
	bare bool // written without quotes, such as true or 10m
	any  bool // accepts any text
}

// codecOf makes a codec from a parser and a formatter.
func codecOf[T any](parse func(string) (T, error), text func(T) string) *codec {
	return &codec{text: func(v reflect.Value) string { return text(v.Convert(reflect.TypeFor[T]()).Interface().(T)) },
		set: func(to reflect.Value, s string) error {
			v, err := parse(s)
			if err == nil {
				to.Set(reflect.ValueOf(v).Convert(to.Type()))
			}
			return err
		}}
}

func asIs(text string) (string, error) { return text, nil }

func bare(c *codec) *codec { c.bare = true; return c }

// shapes has the fields of structs and the codec of each type.
type shapes struct {
	fields map[reflect.Type][]field
	codecs map[reflect.Type]*codec
	words  map[string]*codec // of keys with a fixed set of words
}

func newShapes() *shapes {
	self := func(s string) string { return s }
	text := codecOf(asIs, self)
	text.any = true
	return &shapes{fields: map[reflect.Type][]field{}, codecs: map[reflect.Type]*codec{
		reflect.TypeFor[string]():        text,
		reflect.TypeFor[bool]():          bare(codecOf(ipam.ParseBool, strconv.FormatBool)),
		reflect.TypeFor[int]():           bare(codecOf(parseNumber, strconv.Itoa)),
		reflect.TypeFor[ipam.Duration](): bare(codecOf(parseDuration, ipam.Duration.String)),
		reflect.TypeFor[time.Time]():     codecOf(parseTime, formatTime),
		reflect.TypeFor[netip.Addr]():    codecOf(alloc.ParseAddr, netip.Addr.String),
		reflect.TypeFor[netip.Prefix]():  codecOf(alloc.ParsePrefix, netip.Prefix.String),
		reflect.TypeFor[ipam.Range]():    codecOf(parseRange, ipam.Range.String),
		reflect.TypeFor[ipam.LANID]():    codecOf(ipam.ParseLANID, ipam.LANID.String),
	}, words: map[string]*codec{"elastic": codecOf(parseElastic, self), "put_back": codecOf(parsePutBack, self),
		"type": codecOf(parseType, self)}}
}

// cellShapes returns the shapes of tables, whose cells may also hold small lists.
func cellShapes() *shapes {
	s := newShapes()
	s.words["space"] = codecOf(spaceOf, func(space string) string { return space })
	s.codecs[reflect.TypeFor[netip.Addr]()] = codecOf(parseHost, netip.Addr.String)
	s.codecs[reflect.TypeFor[[]ipam.OwnerRule]()] = codecOf(parseRules, formatRules)
	s.codecs[reflect.TypeFor[[]ipam.PlannedBand]()] = codecOf(parseBands, formatBands)
	s.codecs[reflect.TypeFor[map[string]string]()] = codecOf(parseTags, formatTags)
	s.codecs[reflect.TypeFor[[]string]()] = codecOf(parseNames, func(all []string) string { return strings.Join(all, ";") })
	s.codecs[reflect.TypeFor[[]ipam.Link]()] = codecOf(parseLinks, formatLinks)
	return s
}

// codec returns the codec of a key's value; nil: a list or a mapping.
func (s *shapes) codec(t reflect.Type, key string) *codec {
	if t.Kind() == reflect.String && s.words[key] != nil {
		return s.words[key]
	}
	if t.Kind() != reflect.Pointer || s.codecs[t.Elem()] == nil {
		return s.codecs[t]
	}
	of := *s.codecs[t.Elem()]
	set, text := of.set, of.text
	of.text = func(v reflect.Value) string { return text(v.Elem()) }
	of.set = func(to reflect.Value, s string) error {
		to.Set(reflect.New(t.Elem()))
		return set(to.Elem(), s)
	}
	return &of
}

// of returns the keys of a struct in writing order.
func (s *shapes) of(t reflect.Type) []field {
	if all, known := s.fields[t]; known {
		return all
	}
	var all, last []field
	for _, f := range reflect.VisibleFields(t) {
		key, options, _ := strings.Cut(f.Tag.Get("plan"), ",")
		name, omit, _ := strings.Cut(f.Tag.Get("json"), ",")
		if key = cmp.Or(key, name); f.Anonymous || key == "" || key == "-" || f.Name == "Line" {
			continue
		}
		one := field{key: key, index: f.Index, omit: omit != "" || name == "-",
			reset: name != "-" && key != "space", as: s.codec(f.Type, key)}
		if other, is := strings.CutPrefix(options, "with="); is {
			with, _ := t.FieldByName(other)
			one.with, one.reset = with.Index, false
		}
		if options == "last" {
			last = append(last, one)
		} else {
			all = append(all, one)
		}
	}
	s.fields[t] = append(all, last...)
	return s.fields[t]
}

// leftOut reports whether a field is not written.
func (f *field) leftOut(of reflect.Value) bool {
	v := of.FieldByIndex(f.index)
	switch {
	case f.with != nil && !of.FieldByIndex(f.with).IsZero():
		return false
	case v.Kind() == reflect.Slice || v.Kind() == reflect.Map:
		return v.Len() == 0
	}
	return f.omit && v.IsZero()
}

// clear notes in a struct that the field is written with its default.
func (f *field) clear(of reflect.Value) {
	cleared := of.FieldByName("Cleared")
	if cleared.IsValid() && f.as != nil && f.reset && of.FieldByIndex(f.index).IsZero() {
		cleared.Set(reflect.Append(cleared, reflect.ValueOf(f.key)))
	}
}

// keys lists the keys of fields, for errors.
func keys(of []field) string {
	all := make([]string, len(of))
	for i := range of {
		all[i] = of[i].key
	}
	return strings.Join(all, ", ")
}
