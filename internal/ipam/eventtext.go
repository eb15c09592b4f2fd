package ipam

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Text describes the event in one line: the verb, its object, and the change.
func (e *Event) Text() string {
	text := e.Verb.String() + " " + e.Object()
	if changed := e.Changed(); changed != "" {
		text += " " + changed
	}
	return text
}

// Object names what an event happened to: its network, subnet, address and name, as far as set. If none is set, it is
// the space.
func (e *Event) Object() string {
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
		return e.Space
	}
	return strings.Join(object, " ")
}

// Changed describes an event's change. A thing made or removed reads `10.77.20.5-10.77.20.9 "printer"`. A difference
// reads `quarantine 5m -> 0`. A divided range reads `web A-D -> web A-B; web C-D`.
func (e *Event) Changed() string {
	was, is := factsIn(e.Before), factsIn(e.After)
	said := strings.Fields(e.Object())
	var text string
	switch {
	case len(was) == 1 && len(is) == 1 && e.Before[0] == '{' && e.After[0] == '{':
		text = differenceText(was[0], is[0], said)
	case len(was) > 0 && len(is) > 0:
		text = factsText(was, nil) + " -> " + factsText(is, nil)
	default:
		text = factsText(slices.Concat(was, is), said)
	}
	switch {
	case e.Detail == "" || strings.Contains(text, e.Detail):
		return text
	case text == "":
		return e.Detail
	}
	return text + " (" + e.Detail + ")"
}

// fact is a field of a record, with its value as people write it.
type fact struct{ name, value string }

// firstSlot is the place of an owner's address in its interface if it has one address, as most have. It is left out.
var firstSlot = fact{"slot", Slot{}.String()}

// plain reports whether the value is clear without the field's name.
func (f fact) plain() bool {
	return slices.Contains([]string{"name", "range", "cidr", "address", "owner", "note"}, f.name)
}

func (f fact) label() string { return strings.ReplaceAll(f.name, "_", " ") }

// differenceText writes the values that both have, once, and then the differences. It leaves out unchanged values that
// are in said.
func differenceText(was, is []fact, said []string) string {
	value := func(of []fact, name string) string {
		if i := slices.IndexFunc(of, func(f fact) bool { return f.name == name }); i >= 0 {
			return of[i].value
		}
		return "none"
	}
	var same, differs []string
	for _, f := range was {
		if now := value(is, f.name); now != f.value {
			differs = append(differs, f.label()+" "+f.value+" -> "+now)
		} else if f.plain() && !slices.Contains(said, f.value) {
			same = append(same, f.value)
		}
	}
	for _, f := range is {
		if !slices.ContainsFunc(was, func(o fact) bool { return o.name == f.name }) {
			differs = append(differs, f.label()+" none -> "+f.value)
		}
	}
	return strings.TrimSpace(strings.Join(same, " ") + " " + strings.Join(differs, ", "))
}

// factsText writes whole records. It leaves out plain values that are in said.
func factsText(records [][]fact, said []string) string {
	texts := make([]string, len(records))
	for i, facts := range records {
		var plain, labelled []string
		for _, f := range facts {
			switch {
			case f.plain() && slices.Contains(said, f.value):
			case f.plain():
				plain = append(plain, f.value)
			default:
				labelled = append(labelled, f.label()+" "+f.value)
			}
		}
		all := labelled
		if len(plain) > 0 {
			all = append([]string{strings.Join(plain, " ")}, labelled...)
		}
		texts[i] = strings.Join(all, ", ")
	}
	return strings.Join(texts, "; ")
}

// factsIn reads a JSON object, or an array of objects.
func factsIn(raw json.RawMessage) (all [][]fact) {
	var several []json.RawMessage
	if json.Unmarshal(raw, &several) != nil {
		several = []json.RawMessage{raw}
	}
	for _, one := range several {
		if facts := factsOf(one); len(facts) > 0 {
			all = append(all, facts)
		}
	}
	return all
}

// factsOf reads a JSON object and keeps the order of its fields.
func factsOf(raw json.RawMessage) (all []fact) {
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
		if f := (fact{fmt.Sprint(name), factValue(fmt.Sprint(name), value)}); f != firstSlot {
			all = append(all, f)
		}
	}
	return all
}

func factValue(name string, raw json.RawMessage) string {
	var s string
	var list []json.RawMessage
	switch {
	case json.Unmarshal(raw, &s) == nil:
	case json.Unmarshal(raw, &list) == nil:
		texts := make([]string, len(list))
		for i, one := range list {
			texts[i] = factValue("", one)
		}
		return "(" + strings.Join(texts, "; ") + ")"
	case len(factsIn(raw)) > 0:
		return factsText(factsIn(raw), nil)
	case string(raw) == "true":
		return "yes"
	case string(raw) == "false":
		return "no"
	case string(raw) == "null" || string(raw) == "{}":
		return "none"
	default:
		return string(raw)
	}
	if d, err := time.ParseDuration(s); err == nil && name == "quarantine" {
		return Duration(d).String()
	}
	switch {
	case s == "":
		return "none"
	case strings.HasSuffix(name, "note"):
		return strconv.Quote(s)
	}
	return s
}
