// Package lan keeps what DHCP servers of the LANs have given to containers (LN-15). It promises that a lease which
// somebody has, or that an owner keeps, is renewed in time by the host that has it; that one which was lost is said to
// be lost within a second of knowing it; and that nothing of it is only in memory: a daemon that is killed goes on
// where it was. What a server said while nothing can be written is remembered until it is; a daemon that is killed
// before asks once more.
//
// Nothing here speaks on a network: a question goes to the host's edge (ipam.AskLAN), outside of any change and of any
// lock. What a request asks comes through Sharing (ask.go); why it got nothing is said by refuse.go. A Lessee goes
// round each second (keep.go): due.go reads the records and says what is to be asked, and settle.go writes what came of
// it; gone.go gives back what there was in subnets that are gone.
package lan
