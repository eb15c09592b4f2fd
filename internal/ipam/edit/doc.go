// Package edit changes the plan: networks, subnets, pools, exclusions, reservations, hosts, and addresses taken by
// hand. One call makes all of its edits or none. A refusal names the obstacle. A dry run is the same transaction
// without the commit.
//
// Editor.Edit (editing.go) runs each ipam.Edit inside one change; the files named ...edit.go hold the rules of each
// kind. An edited network is opened as a Plan (plan.go). ranges.go limits where pools, exclusions and bands may lie,
// also for imports. pick.go chooses addresses that match a request, and capacity.go reports how many addresses are
// missing for a call. importing.go holds the state that the edits of an import share, and networkarrive.go completes
// unfinished networks. finish.go completes interrupted removals, and ownerrelease.go releases the addresses of an
// owner; unused.go finds the users that prevent a removal.
package edit
