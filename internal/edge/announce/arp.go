package announce

import (
	"encoding/binary"
	"net"
	"net/netip"
)

const (
	etherARP   = 0x0806
	arpRequest = 1
	arpReply   = 2
	arpLength  = 28
)

// arpFrame returns a frame that announces a MAC for an address, in either form that neighbours learn from.
func arpFrame(operation uint16, mac net.HardwareAddr, a netip.Addr) []byte {
	broadcast := []byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}
	frame := append(append([]byte{}, broadcast...), mac...)
	frame = binary.BigEndian.AppendUint16(frame, etherARP)
	frame = append(frame, 0, 1, 8, 0, 6, 4) // Ethernet and IPv4, with the lengths of their addresses
	frame = binary.BigEndian.AppendUint16(frame, operation)
	frame = append(append(frame, mac...), a.AsSlice()...)
	return append(append(frame, broadcast...), a.AsSlice()...)
}

// ARPSender returns the sender's MAC and address in an ARP frame.
func ARPSender(frame []byte) (net.HardwareAddr, netip.Addr, bool) {
	const header = 14
	if len(frame) < header+arpLength || binary.BigEndian.Uint16(frame[12:]) != etherARP {
		return nil, netip.Addr{}, false
	}
	body := frame[header:]
	if body[4] != 6 || body[5] != 4 {
		return nil, netip.Addr{}, false
	}
	a, ok := netip.AddrFromSlice(body[14:18])
	return net.HardwareAddr(body[8:14]), a, ok
}
