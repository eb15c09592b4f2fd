// Package cluster makes a host's own store and the one that hosts share answer as one, and keeps the host going while
// the shared one is away. It promises that nothing is given which somebody else may have been given meanwhile, that
// what is released is delivered in the end, and that an etcd which went back to an earlier state is noticed and can be
// mended.
//
// A Service (service.go) sends what the engine asks for, and plans, to one of the stores; edits.go does so with edits,
// by what place.go says that they are about. What is only asked goes to the homes themselves (ledger.Homes). Shared (shared.go) is the shared store: sharedcall.go answers requests, also out of reach, and
// sharedrun.go keeps the connection. What a host writes down in its own store meanwhile: outbox.go has the releases
// that wait; headroom.go what may be given, headroomkeep.go how it is claimed ahead, headroomuse.go how it is used.
// recall.go remembers for a mending: mend.go is its way, mendplan.go and mendown.go what is put back of the plan and of
// a host's leases, mendseen.go what the engine says.
package cluster
