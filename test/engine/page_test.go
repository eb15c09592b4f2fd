//go:build engine

package engine

import (
	"regexp"
	"strings"
)

// shownAs returns the pattern for an output as a page shows it: an ellipsis stands for any text, on a line of its own
// for any number of lines.
func shownAs(says string) *regexp.Regexp {
	form := "^"
	for said := range strings.SplitSeq(strings.TrimSpace(says), "\n") {
		switch said {
		case "":
		case "…":
			form += `(.*\n)*`
		default:
			form += strings.ReplaceAll(regexp.QuoteMeta(said), "…", ".*") + ` *\n`
		}
	}
	return regexp.MustCompile(form + "$")
}
