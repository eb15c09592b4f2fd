// Package bulk takes in whole plans: thousands of networks in many transactions. It promises that each network that is
// new is there whole or not at all, and that importing a plan again, after whatever cut it off, adds the rest.
//
// Importer.Import (import.go) checks the whole plan first (importcheck.go and the files of each noun), makes it steps
// (importstep.go), and takes them (importapply.go) at a pace that lets others in (importpace.go). What a step writes is
// written by the package edit, as for an edit. A new network is hidden until its last step, and package edit removes one
// that no import writes any more.
package bulk
