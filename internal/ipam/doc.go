// Package ipam defines Berth's data: records, requests, answers, edits of a plan, and refusals with their codes. Every
// text has one reading, because owners, ranges, wishes and marks are parsed and written only here. The package knows no
// store and decides nothing but the meaning of texts and names.
//
// A request is a struct of request.go or edit.go. Its answer is in info.go or show.go, or it is a Refusal (errors.go)
// with advice (advice.go). Records are in subnet.go, lease.go, owned.go (an owner's property) and event.go; codec.go
// encodes them. owner.go and ownerrule.go interpret names. elastic.go and its two sibling files define elastic
// addresses; engineview.go and known.go define the observations of engine and witness.
//
// The packages below it do the work: ledger (records and index), elastic, edit (the plan), lan (DHCP leases), names
// (DNS), view (lists and history) and stores (whole stores). internal/allocator answers the engine's requests. service
// joins them and imports plans, cluster joins two services, and ipamtest is for tests.
package ipam
