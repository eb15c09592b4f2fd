// Package stores looks after stores as wholes: copies of spaces from one store to another, backups that are put back,
// and checks of all records against one another. It promises that a copy which was cut off is gone on with or undone,
// and that nothing is in two stores at once.
//
// CopySpaces (copy.go) marks each part that it copies: a space, or the elastic addresses (copymark.go). A part is
// described once, as groups of records that the target must have (copypart.go, copyelastic.go). From that description
// it is written and cleared (copypart.go), checked and compared (copycheck.go), and ended or undone (copyend.go).
// Events have ids that may be taken in the target, so they go by themselves (copyevents.go). PutBack (putback.go) restores a
// backup of a shared store. Long ranges of records go through rangecopy.go, part by part. CheckStore (check.go) is for
// `berth state check`.
package stores
