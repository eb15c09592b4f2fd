// Package edit changes the plan: networks, subnets, pools, exclusions, reservations, hosts, and addresses taken by
// hand. The edits of one call are all made or none is. A refusal names the obstacle. A dry run is the same transaction
// without the commit.
//
// Editor.Edit (editing.go) runs each ipam.Edit inside one change; the files with names in -edit hold the rules of each.
// An edited network is opened as a Plan (plan.go). ranges.go limits where pools, exclusions and bands may lie, also for
// imports. pick.go finds addresses for wishes, and capacity.go reports how many a call lacks. importing.go holds the
// state that the edits of an import share, and networkarrive.go completes unfinished networks. finish.go and
// ownerrelease.go end things; unused.go finds the users that prevent a removal.
package edit
