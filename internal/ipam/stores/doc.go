// Package stores works on whole stores: it copies spaces to another store, restores backups, and checks all records. An
// interrupted copy is continued or undone. Nothing is ever in two stores at once.
//
// CopySpaces (copy.go) marks each part that it copies: a space, or the elastic addresses (copymark.go). A part is
// described once, as groups of records (copypart.go, copyelastic.go). That description drives writing and clearing
// (copypart.go), checking and comparing (copycheck.go), and ending or undoing (copyend.go). Events are copied
// separately, because the target may already use their ids (copyevents.go). PutBack (putback.go) restores a backup of a
// shared store. rangecopy.go copies long ranges in pieces. CheckStore (check.go) is for `berth state check`.
package stores
