// Package announce tells neighbours on a network which addresses are here, and hears when somebody else says so. It
// promises that an address is announced at once, and again for some seconds, that nothing is sent of one that this
// host may not answer for, and that one who contests an address is told of and answered.
//
// The Announcer (announcer.go) keeps a station for each device (station.go), which speaks ARP (arp.go) and neighbour
// discovery (ndp.go). Frames of ARP are sent by a packet socket, so the gate of internal/edge/nft stands on the device.
package announce
