package pin

import (
	"fmt"
	"net/netip"
	"strings"
	"time"

	"berth/internal/cli"
	"berth/internal/docker/pin"
)

// wouldPin describes what pin would do with an endpoint.
func wouldPin(place *pin.Pin) string {
	switch {
	case place.Pinned:
		return "is pinned already"
	case !place.Connect:
		return "would be reserved for " + place.Owner + "; the container already requests it"
	case place.Runs():
		return "would be pinned for " + place.Owner + ", and the container would be cut off for a moment"
	}
	return "would be pinned for " + place.Owner + "; the container is not running"
}

// pinnedText describes the result for an endpoint that was not changed.
func pinnedText(place *pin.Pin) string {
	if place.Pinned {
		return "is pinned already"
	}
	return "is pinned: the container already requested it, and now it is reserved for " + place.Owner
}

// cutText returns how long a running container was disconnected.
func cutText(place *pin.Pin, moved pin.Moved) string {
	if !place.Runs() {
		return " (the container is not running)"
	}
	return fmt.Sprintf(" (cut off for %s)", moved.Cut.Round(10*time.Millisecond))
}

func addressWords(place *pin.Pin) string {
	if len(place.Addresses) == 0 {
		return joinAddrs(place.Asked)
	}
	return joinAddrs(place.Addresses)
}

func joinAddrs(addrs []netip.Addr) string {
	texts := make([]string, len(addrs))
	for i, addr := range addrs {
		texts[i] = addr.String()
	}
	return strings.Join(texts, " and ")
}

// isOrAre counts things, for the beginning of a sentence.
func isOrAre(n int, thing string) string {
	if n == 1 {
		return cli.Counted(n, thing) + " is"
	}
	return cli.Counted(n, thing) + " are"
}
