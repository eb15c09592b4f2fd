// Package lan keeps the leases that the LANs' DHCP servers gave to containers. The host of a lease renews it in time
// while a container or an owner keeps it. A lost lease is recorded within a second. All of it is on disk, so a killed
// daemon continues after its restart. If the store cannot be written, answers wait in memory; a daemon killed then asks
// again.
//
// This package does not use the network itself. It sends questions to the host's edge (ipam.AskLAN), outside of changes
// and locks. Sharing (ask.go) sends equal questions of parallel requests once. A Renewer runs every second (keep.go):
// due.go reads the records for due questions, settle.go writes the answers, and gone.go releases leases of removed
// subnets.
package lan
