// Package ipam is the words of Berth's heart, as data: spaces, networks, subnets, reservations and leases as they are
// recorded, what can be asked for and how it is answered, the edits of a plan, and refusals with their codes. It
// promises that a text has one reading: owners, ranges, wishes and marks are parsed and written here and nowhere else.
// It knows no store and decides nothing.
//
// A request begins as a struct of request.go or edit.go, is answered with one of info.go or show.go, and is refused
// with a Refusal (errors.go). What is recorded is in subnet.go, lease.go and event.go, with its bytes (codec.go). The
// rooms beside it do the work, each on those before it: ledger, choose, edit, attach, view, bulk, stores; service joins
// them, and cluster makes two services one.
package ipam
