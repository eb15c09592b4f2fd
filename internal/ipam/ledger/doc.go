// Package ledger keeps the records and the index, and runs changes. It promises that what a change wrote is durable
// as a whole or not there at all, that the index never stays behind or ahead of the records, and that a host which
// may not take part has nothing committed.
//
// A change enters through Ledger.Update (change.go): the membership is read (membership.go), the function runs, reads
// and writes records by their keys (keys.go), moves the index along (index.go, networkindex.go), and leaves. What
// others have committed comes in by follow.go; all is read at the start by load.go, and leases are put into the index
// beside that by filler.go. verify.go compares an index with one that is loaded afresh. What the index has of one noun
// is in the file of that noun: leases.go, owners.go, places.go, open.go (what may be given of a pool), elastic.go.
// Records are the truth and the index is advice. Other rooms ask the index by the methods of known.go in a change, and
// by those of read.go outside of one; nobody else locks it.
package ledger
