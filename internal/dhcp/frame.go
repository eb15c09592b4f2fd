package dhcp

import (
	"encoding/binary"
	"net"
	"net/netip"
)

// Lengths, protocol numbers and ports of the headers.
const (
	etherLength = 14
	ipv4Length  = 20
	ipv6Length  = 40
	udpLength   = 8
	etherIPv4   = 0x0800
	etherIPv6   = 0x86dd
	protoUDP    = 17
	server4     = 67
	client4     = 68
	server6     = 547
	client6     = 546
	hops        = 64
)

// The destinations of messages: all servers and relays on the LAN.
var (
	broadcast  = net.HardwareAddr{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}
	allServers = net.HardwareAddr{0x33, 0x33, 0, 1, 0, 2} // of ff02::1:2 (RFC 2464, 7)
	servers6   = netip.MustParseAddr("ff02::1:2")
)

// frame4 returns a DHCP message from 0.0.0.0 to broadcast, as a client without an address sends it (RFC 2131, 4.1).
func frame4(from net.HardwareAddr, message []byte) []byte {
	b := append(append(make([]byte, 0, etherLength+ipv4Length+udpLength+len(message)), broadcast...), from...)
	b = binary.BigEndian.AppendUint16(b, etherIPv4)
	header := make([]byte, ipv4Length)
	header[0] = 4<<4 | ipv4Length/4
	binary.BigEndian.PutUint16(header[2:], short(ipv4Length+udpLength+len(message)))
	header[8], header[9] = hops, protoUDP
	copy(header[16:], []byte{255, 255, 255, 255})
	binary.BigEndian.PutUint16(header[10:], fold(sum(header)))
	b = append(b, header...)
	udp := udpOf(client4, server4, message)
	pseudo := sum(header[12:20]) + protoUDP + uint32(len(udp)) //nolint:gosec // a packet's length
	return append(b, checked(udp, pseudo)...)
}

// frame6 returns a DHCPv6 message from a link-local address to all servers and relays (RFC 8415, 13).
func frame6(from net.HardwareAddr, local netip.Addr, message []byte) []byte {
	b := append(append(make([]byte, 0, etherLength+ipv6Length+udpLength+len(message)), allServers...), from...)
	b = binary.BigEndian.AppendUint16(b, etherIPv6)
	udp := udpOf(client6, server6, message)
	b = append(b, 6<<4, 0, 0, 0)
	b = binary.BigEndian.AppendUint16(b, short(len(udp)))
	b = append(b, protoUDP, hops)
	b = append(append(b, local.AsSlice()...), servers6.AsSlice()...)
	pseudo := sum(b[etherLength+8:]) + protoUDP + uint32(len(udp)) //nolint:gosec // a packet's length
	return append(b, checked(udp, pseudo)...)
}

// udpOf returns a datagram without its checksum.
func udpOf(from, to uint16, message []byte) []byte {
	b := binary.BigEndian.AppendUint16(make([]byte, 0, udpLength+len(message)), from)
	b = binary.BigEndian.AppendUint16(b, to)
	b = binary.BigEndian.AppendUint16(b, short(udpLength+len(message)))
	return append(append(b, 0, 0), message...)
}

// checked sets the checksum. pseudo is the sum of the pseudo-header.
func checked(udp []byte, pseudo uint32) []byte {
	c := fold(pseudo + sum(udp))
	if c == 0 { // 0 would mean that there is none (RFC 768)
		c = 0xffff
	}
	binary.BigEndian.PutUint16(udp[6:], c)
	return udp
}

// sum adds 16-bit words for a checksum (RFC 1071).
func sum(b []byte) (total uint32) {
	for ; len(b) > 1; b = b[2:] {
		total += uint32(b[0])<<8 | uint32(b[1])
	}
	if len(b) == 1 {
		total += uint32(b[0]) << 8
	}
	return total
}

func fold(total uint32) uint16 {
	for total > 0xffff {
		total = total>>16 + total&0xffff
	}
	return ^uint16(total) //nolint:gosec // folded
}

// short converts a length for a header. A message is far below 64 KiB.
func short(n int) uint16 { return uint16(n) } //nolint:gosec

// readFrame4 reads a DHCP message and its transaction id from a frame. Bytes after the datagram are padding. It ignores
// the datagram's checksum, because veth pairs and cards that compute it leave it empty. It checks the header's
// checksum.
func readFrame4(frame []byte) (d datagram, id uint32, ok bool) {
	const head = 240 // the fields before the options, with the magic cookie
	if len(frame) < etherLength+ipv4Length || binary.BigEndian.Uint16(frame[12:]) != etherIPv4 {
		return d, 0, false
	}
	ip := frame[etherLength:]
	length, total := int(ip[0]&0xf)*4, int(binary.BigEndian.Uint16(ip[2:]))
	whole := binary.BigEndian.Uint16(ip[6:])&0x3fff == 0 // no fragment
	if ip[0]>>4 != 4 || length < ipv4Length || total < length || total > len(ip) || !whole || ip[9] != protoUDP ||
		fold(sum(ip[:length])) != 0 {
		return d, 0, false
	}
	payload, ok := readUDP(ip[length:total], client4)
	if !ok || len(payload) < head {
		return d, 0, false
	}
	from := netip.AddrFrom4([4]byte(ip[12:16]))
	return datagram{payload, from}, binary.BigEndian.Uint32(payload[4:]), true
}

// readFrame6 is readFrame4 for DHCPv6.
func readFrame6(frame []byte) (d datagram, id uint32, ok bool) {
	const head = 4 // type and transaction id
	if len(frame) < etherLength+ipv6Length || binary.BigEndian.Uint16(frame[12:]) != etherIPv6 {
		return d, 0, false
	}
	ip := frame[etherLength:]
	length := int(binary.BigEndian.Uint16(ip[4:]))
	if ip[0]>>4 != 6 || ip[6] != protoUDP || length > len(ip)-ipv6Length {
		return d, 0, false
	}
	payload, ok := readUDP(ip[ipv6Length:ipv6Length+length], client6)
	if !ok || len(payload) < head {
		return d, 0, false
	}
	from := netip.AddrFrom16([16]byte(ip[8:24]))
	return datagram{payload, from}, binary.BigEndian.Uint32(payload) & (1<<24 - 1), true
}

// readUDP returns the payload of a datagram to a port.
func readUDP(udp []byte, to uint16) (payload []byte, ok bool) {
	if len(udp) < udpLength || binary.BigEndian.Uint16(udp[2:]) != to {
		return nil, false
	}
	length := int(binary.BigEndian.Uint16(udp[4:]))
	if length < udpLength || length > len(udp) {
		return nil, false
	}
	return udp[udpLength:length], true
}
