package cli

import (
	"fmt"
	"strings"
	"time"
	"unicode"

	"berth/internal/ipam"
)

func Counted(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// Printable removes from a cell what would leave its line or column. Anyone who may create containers chooses their
// names.
func Printable(s string) string {
	if s == "" {
		return "-"
	}
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return '?'
		}
		return r
	}, s)
}

func ShortID(id ipam.ID, whole bool) string {
	switch {
	case id == ipam.ID{}:
		return ""
	case whole:
		return id.String()
	}
	return id.Short()
}

// LocalTime formats a time for a person, in this machine's zone. JSON has the exact time.
func LocalTime(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.Local().Format("2006-01-02 15:04:05 MST")
}

func Mark(b bool) string {
	if b {
		return "*"
	}
	return ""
}

func YesNo(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}

// StateText describes a host's state for a person.
func StateText(s ipam.HostState) string {
	if s == "" {
		return "active"
	}
	return string(s)
}

// Yes is the cell "yes", or an empty one.
func Yes(is bool) string {
	if is {
		return "yes"
	}
	return ""
}

// ShortTime formats a time for a table, to the minute, in this machine's zone.
func ShortTime(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.Local().Format("2006-01-02 15:04 MST")
}
