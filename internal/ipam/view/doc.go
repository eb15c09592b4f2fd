// Package view reads current state and history, and changes nothing. An answer that fits one transaction is consistent.
// A longer one states where its page ends.
//
// query.go, networkquery.go and hosts.go list the current state, and lookup.go returns one thing. status.go computes
// sums, and export.go writes a plan. find.go finds a word, which findword.go parses. who.go and whohistory.go find the
// holders of an address over time, from the events. tail.go follows new events; tailshared.go does so on a shared
// store. environ.go and environevent.go make the variables of a hook.
package view
