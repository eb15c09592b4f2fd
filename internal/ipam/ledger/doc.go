// Package ledger keeps the records and the index, and runs changes. A change is durable as a whole or not at all. The
// index always matches the records. A host without a valid membership in its cluster cannot commit.
//
// Ledger.Update (change.go) runs a change. It reads the membership (membership.go) and calls the function, which reads
// and writes records by their keys (keys.go). Then it updates the index (index.go, networkindex.go). follow.go applies
// commits of other hosts. load.go reads all records at start. verify.go compares the index with a fresh one.
//
// The index of each noun is in that noun's file: reservation.go, places.go, open.go (free addresses of a pool),
// elastic.go. The records are the truth, and the index is derived. Other packages read the index through known.go
// inside a change and through read.go outside; only this package locks it.
package ledger
