// Package arp makes and reads the frames of ARP, for IPv4 on Ethernet (RFC 826). It opens no socket.
//
// Announcement and Probe return whole frames, with the header of Ethernet. Sender reads who sent one.
package arp

import (
	"encoding/binary"
	"net"
	"net/netip"
)

// Operation is what a frame does.
type Operation uint16

// The operations. Neighbours learn an address from both.
const (
	Request Operation = 1
	Reply   Operation = 2
)

// Broadcast is the address of all machines on the LAN.
var Broadcast = net.HardwareAddr{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}

const (
	etherType    = 0x0806
	headerLength = 14
	length       = 28
)

// Announcement returns a frame that announces to all machines that a has the MAC.
func Announcement(operation Operation, mac net.HardwareAddr, a netip.Addr) []byte {
	return frame(Broadcast, operation, mac, a, Broadcast, a)
}

// Probe returns a frame in which the machine from asks the machine to whether it has a; with Broadcast it asks all. It
// claims no address itself: the sender's is 0.0.0.0 (RFC 5227, 2.1.1).
func Probe(to, from net.HardwareAddr, a netip.Addr) []byte {
	return frame(to, Request, from, netip.IPv4Unspecified(), make(net.HardwareAddr, 6), a)
}

func frame(to net.HardwareAddr, operation Operation, sender net.HardwareAddr, senderAddr netip.Addr,
	target net.HardwareAddr, targetAddr netip.Addr) []byte {
	all := make([]byte, 0, headerLength+length)
	all = append(append(all, to...), sender...)
	all = binary.BigEndian.AppendUint16(all, etherType)
	all = append(all, 0, 1, 8, 0, 6, 4) // Ethernet and IPv4, with the lengths of their addresses
	all = binary.BigEndian.AppendUint16(all, uint16(operation))
	all = append(append(all, sender...), senderAddr.AsSlice()...)
	return append(append(all, target...), targetAddr.AsSlice()...)
}

// Sender returns the sender's MAC and address in a frame.
func Sender(frame []byte) (net.HardwareAddr, netip.Addr, bool) {
	if len(frame) < headerLength+length || binary.BigEndian.Uint16(frame[12:]) != etherType {
		return nil, netip.Addr{}, false
	}
	body := frame[headerLength:]
	if body[4] != 6 || body[5] != 4 {
		return nil, netip.Addr{}, false
	}
	a, ok := netip.AddrFromSlice(body[14:18])
	return net.HardwareAddr(body[8:14]), a, ok
}
