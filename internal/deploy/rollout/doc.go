// Package rollout brings the containers of a Compose project to what its files say, one replica after the other, each
// with the addresses that are its own. It promises that what a Plan says is all that is done, that no more replicas of
// a service are away at once than it may have in flight, and that a canary which fails leaves the others as they were,
// or says which do not run.
//
// Draw (draw.go) holds what the files want against what the engine has, and makes a Plan (plan.go) of it, which changes
// nothing. A plan that was saved is held against one that was drawn afresh (stale.go). Run (run.go) does what it says
// in the order of BD-5 to BD-8; how one replica is exchanged for its successor is in exchange.go, what is told of it
// meanwhile in tell.go, and what is put back when it fails in restore.go.
package rollout
