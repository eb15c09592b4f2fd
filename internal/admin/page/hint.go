package page

import (
	"berth/internal/advice"
	"berth/internal/ipam"
	"berth/internal/shorten"
)

// refusalText returns a refusal for the reader of a form, with advice for the page.
func refusalText(err error) string {
	return advice.JoinIn(hintOf, shorten.Text(err.Error()), ipam.AdviceOf(err))
}

// hintOf returns advice in words for the page. It is empty if the page has no form for it.
func hintOf(a ipam.Advice) string {
	switch a.Do {
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
