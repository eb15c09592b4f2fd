package cli

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"berth/internal/ipam"
)

// ChangeLines shows events of a dry run.
func ChangeLines(changes []ipam.Event) []string {
	if len(changes) == 0 {
		return []string{"nothing would change"}
	}
	lines := make([]string, len(changes))
	for i := range changes {
		lines[i] = changeLine(&changes[i])
	}
	return lines
}

// changeLine is an event of the plan for a person: what happens, in which network, to what, and what is before and
// after.
func changeLine(e *ipam.Event) string {
	var object []string
	if e.Network != "" {
		object = append(object, e.Network)
	}
	if e.Subnet.IsValid() {
		object = append(object, e.Subnet.String())
	}
	if e.Address.IsValid() {
		object = append(object, e.Address.String())
	}
	if e.Name != "" && e.Name != e.Network {
		object = append(object, e.Name)
	}
	if len(object) == 0 {
		object = []string{e.Space}
	}
	parts := []string{fmt.Sprintf("%-18s", e.Verb), fmt.Sprintf("%-24s", strings.Join(object, " ")),
		difference(e.Before, e.After)}
	if e.Detail != "" && !strings.Contains(parts[2], "="+e.Detail) {
		parts = append(parts, "("+e.Detail+")")
	}
	parts = slices.DeleteFunc(parts, func(s string) bool { return s == "" })
	return Printable(strings.TrimRight(strings.Join(parts, "  "), " "))
}

// difference writes what was made as "name=lan", what was removed as "was name=lan", what was modified as
// "name=lan->lan2", and what was split as "was range=A-D, is range=A-B, range=C-D".
func difference(before, after json.RawMessage) string {
	was, is := objects(before), objects(after)
	switch {
	case len(was) == 1 && len(is) == 1 && before[0] == '{' && after[0] == '{':
		return modified(was[0], is[0])
	case len(was) == 0:
		return joinObjects(is)
	case len(is) == 0:
		return "was " + joinObjects(was)
	}
	return "was " + joinObjects(was) + ", is " + joinObjects(is)
}

// modified writes the fields of one object that became another; what is the same in both once.
func modified(was, is []field) string {
	var texts []string
	for _, f := range was {
		value := "none"
		if i := slices.IndexFunc(is, func(other field) bool { return other.name == f.name }); i >= 0 {
			value = is[i].value
		}
		if value != f.value {
			value = f.value + "->" + value
		}
		texts = append(texts, f.name+"="+value)
	}
	for _, f := range is {
		if !slices.ContainsFunc(was, func(other field) bool { return other.name == f.name }) {
			texts = append(texts, f.name+"=none->"+f.value)
		}
	}
	return strings.Join(texts, " ")
}

// field is one field of a JSON object, its value as a person would write it.
type field struct{ name, value string }

// objects reads a JSON object, or an array of them; none of what is absent.
func objects(raw json.RawMessage) (all [][]field) {
	var several []json.RawMessage
	if json.Unmarshal(raw, &several) != nil {
		several = []json.RawMessage{raw}
	}
	for _, one := range several {
		if f := fields(one); len(f) > 0 {
			all = append(all, f)
		}
	}
	return all
}

// fields reads a JSON object, in the order in which it is written.
func fields(raw json.RawMessage) (all []field) {
	d := json.NewDecoder(bytes.NewReader(raw))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return nil
	}
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return all
		}
		var value json.RawMessage
		if err := d.Decode(&value); err != nil {
			return all
		}
		text := string(value)
		var s string
		if json.Unmarshal(value, &s) == nil {
			text = cmp.Or(s, "none")
		} else if several := objects(value); value[0] == '[' && len(several) > 0 {
			text = "(" + joinObjects(several) + ")"
		}
		all = append(all, field{fmt.Sprint(name), text})
	}
	return all
}

func joinObjects(all [][]field) string {
	texts := make([]string, len(all))
	for i, object := range all {
		for _, f := range object {
			texts[i] += " " + f.name + "=" + f.value
		}
		texts[i] = strings.TrimPrefix(texts[i], " ")
	}
	return strings.Join(texts, ", ")
}
