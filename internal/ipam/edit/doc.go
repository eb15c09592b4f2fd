// Package edit changes the plan: networks, subnets, pools, exclusions, reservations, hosts, and addresses taken by
// hand. It promises that the edits of one call are made together or not at all, that what cannot be is refused with
// what is in the way, and that a dry run is the same transaction, which is then not committed.
//
// Editor.Edit (editing.go) runs each edit of ipam.Edit inside one change; the files with names in -edit hold the rules
// of each. A network that is edited is opened as a Plan (plan.go). Where pools, exclusions and bands may lie is said in
// ranges.go, for imports, too. Wishes find their addresses in pick.go, and what a whole call lacks is told by
// capacity.go. What the edits of an import know of one another is in importing.go; a network that one left unfinished
// goes by networkarrive.go. How things end: finish.go, ownerrelease.go, and unused.go for who is in the way.
package edit
