// Package elastic holds the rules of elastic addresses: their accounts, the guests that they map to, and the mappings
// that the hosts' edges report. Wanted and applied mappings are recorded separately. A refusal changes nothing, and
// every edit may be repeated. A released address is free as soon as no edge reports a mapping of it.
//
// Apply (apply.go) makes each edit inside a change of package edit: accounts (account.go), ranges (range.go), addresses
// (allocate.go) and associations (associate.go). guest.go finds their guests. end.go ends an association whose owner or
// network ends, and releaseon.go one whose container ends. lookup.go finds associations.
//
// wanted.go works out a host's mappings, all of them, after each commit that bears on them (anew.go). sender.go sends
// the differences to the edge, with the grants of its session (grant.go). report.go takes the edge's reports, and
// applied.go forgets those of removed hosts. keep.go gives and takes back system addresses (system.go). show.go lists,
// usage.go sums up use, and asker.go limits an account to its own addresses.
package elastic
