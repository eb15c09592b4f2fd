//go:build engine

package engine

import (
	"regexp"
	"strings"
)

// shownAs is what a page shows of what a command says, as a pattern: an ellipsis stands for whatever there is, alone
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
