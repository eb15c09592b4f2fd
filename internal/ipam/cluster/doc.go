// Package cluster makes a host's own store and the one that hosts share answer as one, and keeps the host going while
// the shared one is away. It promises that nothing is given which somebody else may have been given meanwhile, that
// what is released is delivered in the end, and that an etcd which went back to an earlier state is noticed and can be
// mended.
//
// An Estate (estate.go) finds out which store a request is about (estateplace.go): engines' requests are
// estatecall.go, edits estateedit.go, lists estateread.go, events estateevent.go, owners that change stores
// estatemove.go. Shared (shared.go) is the shared store: sharedcall.go answers requests, also out of reach, and
// sharedrun.go keeps the connection. What a host writes down in its own store meanwhile: outbox.go has the releases
// that wait; headroom.go what may be given, headroomkeep.go how it is claimed ahead, headroomuse.go how it is used.
// recall.go remembers for a mending: mend.go is its way, mendplan.go and mendown.go what is put back of the plan and of
// a host's leases, mendseen.go what the engine says.
package cluster
