// Package announce announces this host's addresses to the neighbours on a network and detects conflicts. It announces
// an address at once and repeats that for some seconds. It sends nothing for an address that this host may not answer
// for. It replies to a machine that contests an address, and reports the conflict.
//
// The Announcer (announcer.go) keeps a station per device (station.go), which speaks ARP (internal/arp) and neighbour
// discovery (ndp.go). ARP frames leave through a packet socket, which nftables sees only
// at the device: internal/edge/nft blocks them there.
package announce
