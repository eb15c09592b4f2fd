package plan

import (
	"strings"

	"berth/internal/ipam"
)

// Other tools allow any characters in names. A table of theirs is imported with names that Berth allows.

// Renamed is a name of another tool that Berth does not allow, and the one made of it.
type Renamed struct {
	Line           int
	Noun, From, To string
}

// longestName is the maximum length of a name (ipam.CheckName), and of a part of an owner.
const longestName = 63

// foreignName is a name that is taken from another tool.
type foreignName struct{ noun, name string }

// rename replaces a name that check refuses by one made of it. It refuses a name that two texts would get, and one of
// which nothing is left.
func (rd *reading[T]) rename(name *string, noun string, check func(string) error, line int) {
	text, made := *name, *name
	refusal := check(text)
	if refusal != nil {
		made = nameOf(text)
		if check(made) != nil { // a name that may be no path, or an empty part of a path
			made = nameOf(strings.ReplaceAll(text, "/", " "))
		}
		if check(made) != nil {
			rd.Add(line, "%v", refusal)
			return
		}
	}
	key := foreignName{noun, made}
	switch other, known := rd.made[key]; {
	case known && other != text:
		rd.Add(line, "%q and %q would both be the %s %s; rename one of them", other, text, noun, made)
		return
	case !known && made != text:
		rd.notes.Renamed = append(rd.notes.Renamed, Renamed{line, noun, text, made})
	}
	rd.made[key] = text
	*name = made
}

// nameOf makes a name of a text, or a path of one with slashes: a hyphen stands for all that a name cannot have.
func nameOf(text string) string {
	segments := strings.Split(text, "/")
	for i, segment := range segments {
		name := strings.Trim(strings.Join(strings.FieldsFunc(segment, isForeign), "-"), "-_.")
		segments[i] = strings.TrimRight(name[:min(len(name), longestName)], "-_.")
	}
	return strings.Join(segments, "/")
}

func isForeign(r rune) bool {
	return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("_.-", r))
}

// vrf returns the space for a cell of NetBox's column, or the cell if no space can be named so.
func (rd *reading[T]) vrf(text string, line int) string {
	space, err := spaceOf(text)
	if err == nil && space != "" {
		rd.rename(&space, "space", func(s string) error { return ipam.CheckName("space", s) }, line)
		return space
	}
	return text
}
