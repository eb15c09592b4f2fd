// Package stores looks after stores as wholes: copies of spaces from one store to another, backups that are put back,
// and checks of all records against one another. It promises that a copy which was cut off is gone on with or undone,
// and that nothing is in two stores at once.
//
// CopySpaces (copy.go) marks what it does (copymark.go), reads (copyread.go), writes (copywrite.go), compares
// (copycheck.go) and ends (copyend.go). PutBack (putback.go) is for a backup of a shared store. What both of them, and
// Fill, take over from another store goes through rangecopy.go: a range of records, page by page, written and read
// back. CheckStore (check.go) is for `berth state check`.
package stores
