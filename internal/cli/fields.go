package cli

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"berth/internal/ipam"
)

// Fields are the columns or the keys of a list, a row each: texts that name fields (Columns, Keys), or values of their
// own.
type Fields []any

// Columns returns the columns of a table. A column is a Column[T], or a text that names a field of T as a template of
// --format does: "Owner" is the field Owner with the title OWNER, "SUBNET=CIDR" has a title of its own, and
// "DHCP.Expires" is a field of a field. Options follow: "Note,wide" is a column of --format wide, "State,marked" has
// wrong states in colour, and "Note,most=30" has at most 30 characters. "Address,ref" is hidden, and identifies a row
// by its space, its network and that field (Ref).
func Columns[T any](all ...any) []Column[T] {
	columns := make([]Column[T], len(all))
	for i, one := range all {
		if column, ok := one.(Column[T]); ok {
			columns[i] = column
		} else {
			columns[i] = Field[T](one.(string))
		}
	}
	return columns
}

// Field returns the column of one field of T, from a text as in Columns.
func Field[T any](text string) Column[T] {
	text, options, _ := strings.Cut(text, ",")
	title, path, titled := strings.Cut(text, "=")
	if !titled {
		title, path = titleOf(text), text
	}
	values := valuesOf[T](path)
	column := Col(title, func(row *T) string { return strings.Join(values(row), ",") })
	for option := range strings.SplitSeq(options, ",") {
		name, value, _ := strings.Cut(option, "=")
		switch name {
		case "":
		case "wide":
			column = column.Wide()
		case "marked":
			column = column.Marked()
		case "ref":
			column = refCol(values)
		case "most":
			column.most, _ = strconv.Atoi(value)
		default:
			panic(fmt.Sprintf("a column has no option %s", option))
		}
	}
	return column
}

// refCol is a hidden column that identifies a row of a network for the noun's other commands.
func refCol[T any](thing func(*T) []string) Column[T] {
	space, network := valuesOf[T]("Space"), valuesOf[T]("Network")
	one := func(values []string) string { return strings.Join(values, "") }
	return RefCol(func(row *T) string { return Ref(one(space(row)), one(network(row)), one(thing(row))) })
}

// titleOf is the title of a field's column: GATEWAY NOTE of GatewayNote.
func titleOf(path string) string {
	var title strings.Builder
	small := false
	for _, r := range path[strings.LastIndex(path, ".")+1:] {
		if small && unicode.IsUpper(r) {
			title.WriteByte(' ')
		}
		small = unicode.IsLower(r)
		title.WriteRune(r)
	}
	return strings.ToUpper(title.String())
}

// valuesOf returns a function that reads the texts of a field. A list has several, an id also its short form. A field
// that T does not have is a mistake in the code.
func valuesOf[T any](path string) func(*T) []string {
	var steps [][]int
	at := reflect.TypeFor[T]()
	for name := range strings.SplitSeq(path, ".") {
		if at.Kind() == reflect.Pointer {
			at = at.Elem()
		}
		field, has := at.FieldByName(name)
		if !has {
			panic(fmt.Sprintf("%s has no field %s", at, path))
		}
		steps, at = append(steps, field.Index), field.Type
	}
	return func(row *T) []string {
		value := reflect.ValueOf(row).Elem()
		for _, step := range steps {
			if value = reflect.Indirect(value); !value.IsValid() {
				return nil // what the field is in is not there
			}
			value = value.FieldByIndex(step)
		}
		return textsOf(value)
	}
}

// textsOf returns a value as tables show it, or nothing if it has none.
func textsOf(value reflect.Value) []string {
	if value = reflect.Indirect(value); !value.IsValid() {
		return nil
	}
	switch v := value.Interface().(type) {
	case []string:
		return v
	case bool:
		return []string{YesNo(v)}
	case time.Time:
		return []string{ShortTime(v)}
	case ipam.ID:
		if v == (ipam.ID{}) {
			return nil
		}
		return []string{v.String(), v.Short()}
	case interface{ Text() string }:
		return []string{v.Text()}
	case interface{ IsValid() bool }: // an address or a prefix
		if !v.IsValid() {
			return nil
		}
	}
	return []string{fmt.Sprint(value.Interface())}
}

// choice is a key whose possible values are known.
type choice struct {
	text  string
	words []string
}

// Choice returns a key from a text as in Keys, with all its possible values.
func Choice(text string, words ...string) any { return choice{text, words} }

// Keys returns the keys of --filter. A key is a Key[T], a Choice, or a text: "host" is the key with the field Host of
// T, and "owner=Owner,Name" the one with these fields. The key tag has the row's tags or those of its network.
func Keys[T any](all ...any) []Key[T] {
	keys := make([]Key[T], len(all))
	for i, one := range all {
		switch one := one.(type) {
		case Key[T]:
			keys[i] = one
		case choice:
			keys[i] = fieldKey[T](one.text, one.words)
		default:
			keys[i] = fieldKey[T](one.(string), nil)
		}
	}
	return keys
}

func fieldKey[T any](text string, words []string) Key[T] {
	name, paths, said := strings.Cut(text, "=")
	switch {
	case said:
	case name == keyNetwork:
		paths = "Network,NetworkID"
	case name == keyID:
		paths = "ID"
	case name == keyTag:
		return fieldTags[T]()
	default:
		paths = strings.ToUpper(name[:1]) + name[1:]
	}
	var fields []func(*T) []string
	for path := range strings.SplitSeq(paths, ",") {
		fields = append(fields, valuesOf[T](path))
	}
	return ByAny(name, func(row *T) (values []string) {
		for _, field := range fields {
			values = slices.Concat(values, field(row))
		}
		return values
	}, words...)
}

// fieldTags is the key tag.
func fieldTags[T any]() Key[T] {
	row := reflect.TypeFor[T]()
	if tags, has := row.FieldByName("Tags"); has {
		return ByTag(func(row *T) map[string]string {
			return reflect.ValueOf(row).Elem().FieldByIndex(tags.Index).Interface().(map[string]string)
		})
	}
	network, _ := row.FieldByName("NetworkID")
	return Key[T]{name: keyTag, tagged: func(row *T) ipam.ID {
		return reflect.ValueOf(row).Elem().FieldByIndex(network.Index).Interface().(ipam.ID)
	}}
}
