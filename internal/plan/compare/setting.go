package compare

import (
	"fmt"
	"net/netip"
	"reflect"
	"strings"

	"berth/internal/ipam"
)

// settings finds the differences of a thing's own fields: those that the edit and both things have, by json tag, and
// that counts accepts. It sets them in the edit, and reports whether there are any.
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

// fieldOf returns the field of a key, or the zero Value.
func fieldOf(thing any, key string) reflect.Value {
	v := reflect.ValueOf(thing).Elem()
	for _, f := range reflect.VisibleFields(v.Type()) {
		if keyOf(f) == key {
			return v.FieldByIndex(f.Index)
		}
	}
	return reflect.Value{}
}

// said reports whether a document has a key of a network or a subnet.
func said(thing any, key string) bool {
	v := fieldOf(thing, key)
	return v.IsValid() && !v.IsZero() || fieldOf(thing, "cleared").Interface().(ipam.Cleared).Has(key)
}

// text returns a setting as a document writes it.
func text(key string, v reflect.Value) string {
	if addr, ok := v.Interface().(netip.Addr); ok && !addr.IsValid() {
		return ""
	}
	if key == "probe" && v.IsZero() {
		return "none"
	}
	return fmt.Sprint(v.Interface())
}
