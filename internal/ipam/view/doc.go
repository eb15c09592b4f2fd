// Package view tells what is and what was, and changes nothing. It promises that an answer is of one moment where it
// fits a transaction, and says where a page ends where it does not.
//
// Lists of what is: query.go, networkquery.go, hosts.go, lookup.go for one thing, status.go in sums, export.go as a
// plan. At what a word is found: find.go, which reads the word by findword.go. Who had an address and when: who.go and
// whohistory.go, out of events. What happens from now on: tail.go and, where hosts share the store, tailshared.go. What
// a hook's program is told: environ.go and environevent.go.
package view
