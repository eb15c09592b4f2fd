// Package ipam is the words of Berth's heart, as data: spaces, networks, subnets, reservations and leases as they are
// recorded, what can be asked for and how it is answered, the edits of a plan, and refusals with their codes. It
// promises that a text has one reading: owners, ranges, wishes and marks are parsed and written here and nowhere else.
// It knows no store, and decides nothing but what a text or a name means.
//
// A request begins as a struct of request.go or edit.go, is answered with one of info.go or show.go, and is refused
// with a Refusal (errors.go) that carries what helps (advice.go). What is recorded is in subnet.go, lease.go, owned.go
// (what an owner has) and event.go, its bytes by the means of codec.go; what a name means and whose an address is,
// in owner.go and ownerrule.go; elastic addresses are elastic.go and the two files beside it; what an
// engine and its witness say, engineview.go and known.go.
//
// The rooms beside it do the work, each on those before it: ledger (records and index), choose (which address),
// elastic, edit (changes of the plan), attach (the engine's requests), view (lists and history), stores (copies of whole
// stores); service joins them and imports plans, cluster makes two services one, and ipamtest is for tests.
package ipam
