package compare

import (
	"net/netip"
	"reflect"
	"strconv"
	"strings"
	"time"

	"berth/internal/ipam"
)

// settings finds what is otherwise of a thing as a whole: of each field that the edit and both things have, by its json
// tag, and that counts. It sets that in the edit, and answers whether there is anything.
func (c *comparison) settings(of Change, edit, wanted, was any, counts func(key string) bool) (edited bool) {
	e := reflect.ValueOf(edit).Elem()
	for i := range e.NumField() {
		key := keyOf(e.Type().Field(i))
		is, before := reflect.Indirect(fieldOf(wanted, key)), reflect.Indirect(fieldOf(was, key))
		if !is.IsValid() || e.Field(i).Type() != reflect.PointerTo(is.Type()) || !counts(key) ||
			text(key, is) == text(key, before) {
			continue
		}
		of.Field = key
		c.found("~", of, text(key, before), text(key, is))
		value := reflect.New(is.Type())
		value.Elem().Set(is)
		e.Field(i).Set(value)
		edited = true
	}
	return edited
}

func keyOf(f reflect.StructField) string {
	key, _, _ := strings.Cut(f.Tag.Get("json"), ",")
	return key
}

// fieldOf is the field of a key; the zero Value: there is none.
func fieldOf(thing any, key string) reflect.Value {
	v := reflect.ValueOf(thing).Elem()
	for _, f := range reflect.VisibleFields(v.Type()) {
		if keyOf(f) == key {
			return v.FieldByIndex(f.Index)
		}
	}
	return reflect.Value{}
}

// said tells whether a document says anything of a key.
func said(thing any, key string) bool {
	v := fieldOf(thing, key)
	return v.IsValid() && !v.IsZero()
}

// text is a setting as a document writes it.
func text(key string, v reflect.Value) string {
	switch one := v.Interface().(type) {
	case bool:
		return strconv.FormatBool(one)
	case int:
		return strconv.Itoa(one)
	case ipam.Duration:
		return durationText(time.Duration(one))
	case netip.Addr:
		if one.IsValid() {
			return one.String()
		}
		return ""
	case netip.Prefix:
		return one.String()
	}
	if key == "probe" && v.IsZero() {
		return "none"
	}
	return v.String()
}

// durationText is how a document writes it: 10m, not 10m0s.
func durationText(d time.Duration) string {
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}
