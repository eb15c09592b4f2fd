// Package bulk takes in whole plans: thousands of networks in many transactions, which can be cut off anywhere and be
// gone on with, or taken back. It promises that nobody sees a part of an import, and that undoing leaves what was there
// before.
//
// Importer.Import (import.go) checks the whole plan first (importcheck.go and the files of each noun), writes it down
// as steps in a journal (importstep.go, importjournal.go), and makes them (importapply.go) at a pace that lets others
// in (importpace.go). importundo.go takes them back. What a step writes is written by the room edit, as for an edit.
// importclaim.go has one host do it.
package bulk
