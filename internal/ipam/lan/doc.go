// Package lan keeps the leases that the LANs' DHCP servers gave to containers (LN-15). The host of a lease renews it in
// time while a container or an owner keeps it. A lost lease is recorded within a second. All of it is on disk, so a
// killed daemon continues after its restart. If the store cannot be written, answers wait in memory; a daemon killed
// then asks again.
//
// This package speaks on no network: questions go to the host's edge (ipam.AskLAN), outside of changes and locks.
// Requests ask through Sharing (ask.go). A Lessee works each second (keep.go): due.go reads the records for due
// questions, settle.go writes the answers, and gone.go releases leases of removed subnets.
package lan
