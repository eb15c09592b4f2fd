package cli

import (
	"fmt"
	"strings"

	"berth/internal/ipam"
)

// ChangeLines describes the events of a dry run, one per line.
func ChangeLines(changes []ipam.Event) []string {
	if len(changes) == 0 {
		return []string{"nothing would change"}
	}
	lines := make([]string, len(changes))
	for i := range changes {
		e := &changes[i]
		lines[i] = Printable(strings.TrimRight(fmt.Sprintf("%-18s  %-24s  %s", e.Verb, e.Object(), e.Changed()), " "))
	}
	return lines
}
