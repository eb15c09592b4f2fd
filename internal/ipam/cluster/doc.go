// Package cluster makes a host's own store and the one that hosts share answer as one, and keeps the host going while
// the shared one is away. It promises that nothing is given which somebody else may have been given meanwhile, that
// what is released is delivered in the end, and that an etcd which went back to an earlier state is noticed and can be
// mended.
//
// An Estate (estate.go and the files beside it) finds out which store a request is about. Shared (shared.go) is the
// shared one: sharedcall.go answers requests, sharedrun.go keeps the connection, outbox.go holds the releases that
// wait, headroom.go and the files beside it what may be given meanwhile. recall.go remembers for a mending, which is
// mend.go and the files beside it.
package cluster
