package elastic_test

import "testing"

// TestReleaseOn: with destroy an address is released when its container was removed, with stop when it has
// stopped, and with never not at all. It is not released before the container has run, nor by a restart or by a
// container that replaces it, reserved or not (CS-17). A start of the daemon restarts the count.
func TestReleaseOn(t *testing.T) {
	const kept, free = "allocated default web", "free"
	const reserved = `
		reserve net1 web G9
		to E0 web
		look 1h
		show E0 -> allocated default web
	`
	eachWay(t, map[string][]string{
		"never":                {"$ON", "never", "$RESERVED", "", "$STOPPED", kept, "$REMOVED", kept},
		"never, reserved":      {"$ON", "never", "$RESERVED", reserved, "$STOPPED", kept, "$REMOVED", kept},
		"on destroy":           {"$ON", "destroy", "$RESERVED", "", "$STOPPED", kept, "$REMOVED", free},
		"on destroy, reserved": {"$ON", "destroy", "$RESERVED", reserved, "$STOPPED", kept, "$REMOVED", free},
		"on stop":              {"$ON", "stop", "$RESERVED", "", "$STOPPED", free, "$REMOVED", free},
		"on stop, reserved":    {"$ON", "stop", "$RESERVED", reserved, "$STOPPED", free, "$REMOVED", free},
	}, `
		freeze
		allocate E0 on=$ON
		on E0 -> $ON
		$RESERVED
		run web
		there web
		to E0 web
		look 1h
		stop web
		gone web
		# a moment less than what a container may be away for
		look 119s
		run web
		there web
		look 1h
		show E0 -> allocated default web
		stop web
		look 119s
		restart
		look 119s
		show E0 -> allocated default web
		look 1s
		show E0 -> $STOPPED
		gone web
		look 119s
		show E0 -> $STOPPED
		look 1s
		show E0 -> $REMOVED
	`)
}

// onEach lists the ways to release an address.
var onEach = map[string][]string{"on destroy": {"$ON", "destroy"}, "on stop": {"$ON", "stop"}}

// TestReleaseOnUnheard: while the engine cannot be heard, nothing is released. The two minutes must pass without
// a break.
func TestReleaseOnUnheard(t *testing.T) {
	eachWay(t, onEach, `
		freeze
		allocate E0 on=$ON
		run web
		to E0 web
		look 1h
		stop web
		deaf
		look 1h
		show E0 -> allocated default web
		hears
		look 119s
		deaf
		look 1s
		hears
		look 119s
		show E0 -> allocated default web
		look 1s
		show E0 -> free
	`)
}

// TestReleaseOnEnds: the address is released at once with its owner and with its network, but not if a person
// ends the association.
func TestReleaseOnEnds(t *testing.T) {
	eachWay(t, map[string][]string{
		"its owner":   {"$END", "end web", "$NOW", "free"},
		"its network": {"$END", "detach\nnetwork.rm net1 force", "$NOW", "free"},
		"by hand":     {"$END", "off E0", "$NOW", "allocated default"},
	}, `
		freeze
		allocate E0 on=destroy
		reserve net1 web G9
		to E0 web
		$END
		show E0 -> $NOW
	`)
}

// TestReleaseOnSaid: a repeated allocation changes the setting only if it names it.
func TestReleaseOnSaid(t *testing.T) {
	begins(t, `
		allocate E2 on=reboot ! -; destroy; never; reboot
		allocate E2 on=stop
		allocate E2
		on E2 -> stop
		allocate E2 on=destroy
		allocate E2
		on E2 -> destroy
		allocate E2 on=never
		on E2 -> never
	`)
}

// TestReleaseOnHosts: only the host on which the container last ran releases the address. The engines of other
// hosts do not know the container.
func TestReleaseOnHosts(t *testing.T) {
	for _, on := range []string{"destroy", "stop"} {
		p := pair(t)
		p.plays(`
			h1: elastic net1 on
			h1: freeze
			h2: freeze
			h1: allocate E0 on=` + on + `
			h1: run web
			h1: to E0 web
			h1: look 1h
			h1: stop web
			h2: look 1h
			h2: show E0 -> allocated default web
			h2: run web
			h2: look 1h
			h1: look 1h
			h2: stop web
			h1: look 2m
			h1: show E0 -> allocated default web
			h2: look 2m
			h2: show E0 -> free
		`)
	}
}
