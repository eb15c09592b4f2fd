package cli

import (
	"fmt"
	"strings"

	"berth/internal/ipam"
)

// Use shows the use of pools as a percentage and a bar: 50% █████░░░░░. The bar is ASCII if the locale is not UTF-8.
// Without a pool the text is empty.
func (o Output) Use(u ipam.Use) string {
	percent, ok := u.Percent()
	if !ok {
		return ""
	}
	full, empty := "#", "."
	if o.program.utf8() {
		full, empty = "█", "░"
	}
	const cells = 10
	filled := ipam.Cells(percent, cells)
	return fmt.Sprintf("%3d%% %s%s", percent, strings.Repeat(full, filled), strings.Repeat(empty, cells-filled))
}

// Use formats a use like in tables.
func (p *Program) Use(u ipam.Use) string { return Output{program: p}.Use(u) }

// utf8 reports whether the locale is UTF-8. The first set variable counts (setlocale(3)).
func (p *Program) utf8() bool {
	for _, name := range []string{"LC_ALL", "LC_CTYPE", "LANG"} {
		if value := p.Env(name); value != "" {
			value = strings.ToLower(value)
			return strings.Contains(value, "utf-8") || strings.Contains(value, "utf8")
		}
	}
	return false
}
