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

// Printable keeps a cell to its line and its column: names come from whoever may create containers.
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

// LocalTime is a time for a person, as the clock of this machine shows it, with the zone; JSON has the exact one.
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

// StateText is a host's state for a person.
func StateText(s ipam.HostState) string {
	if s == "" {
		return "active"
	}
	return string(s)
}

// Yes is a cell that says whether; no is empty.
func Yes(is bool) string {
	if is {
		return "yes"
	}
	return ""
}

// ShortTime is a time in a table: to the minute, as the clock of this machine shows it, with the zone.
func ShortTime(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.Local().Format("2006-01-02 15:04 MST")
}
