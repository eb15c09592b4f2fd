package cli

import (
	"fmt"
	"strings"

	"berth/internal/ipam"
)

// Use is how much of pools is in use, as a percentage and a bar: 50% █████░░░░░. The bar is of ASCII where the locale
// is not UTF-8. It is empty where there is no pool.
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

// Use is a Use as tables show it.
func (p *Program) Use(u ipam.Use) string { return Output{program: p}.Use(u) }

// utf8 tells whether the locale is one of UTF-8 (setlocale(3): the first of these that is set counts).
func (p *Program) utf8() bool {
	for _, name := range []string{"LC_ALL", "LC_CTYPE", "LANG"} {
		if value := p.Env(name); value != "" {
			value = strings.ToLower(value)
			return strings.Contains(value, "utf-8") || strings.Contains(value, "utf8")
		}
	}
	return false
}
