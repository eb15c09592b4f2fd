package page

import (
	"strings"

	"berth/internal/ipam"
	"berth/internal/shorten"
)

// refusalText is a refusal for the reader of a form. It has no code, which is for programs, and what helps on the page.
func refusalText(err error) string {
	text := shorten.Text(err.Error())
	if code := ipam.CodeOf(err); code != "" {
		text = strings.Replace(text, string(code)+": ", "", 1)
	}
	for _, a := range ipam.AdviceOf(err) {
		say := hintOf(a.Do)
		switch {
		case say == "" || strings.Contains(text, say):
		case a.Or:
			text += ", or " + say
		default:
			text += "; " + say
		}
	}
	return text
}

// hintOf is advice that a person can follow on the page; empty where the page has no form for it. The command line has
// its own sentences.
func hintOf(do ipam.Do) string {
	switch do {
	case ipam.DoTakeExcluded, ipam.DoEndExclusion, ipam.DoShrinkExclusion:
		return "remove that exclusion first, in the list of its network"
	case ipam.DoEndReservation, ipam.DoReplaceReservation, ipam.DoReleaseTaken:
		return "release that address first, in its own view"
	case ipam.DoReleaseDead:
		return "if there is no such container, release the address first, in its own view"
	case ipam.DoAddSubnetTo:
		return "add a subnet, in the view of the network"
	case ipam.DoAddPoolTo, ipam.DoEnlargePools, ipam.DoEnlargeNetwork:
		return "add a pool, in the view of the network"
	}
	return ""
}
