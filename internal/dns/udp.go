package dns

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"

	"github.com/miekg/dns"
	"golang.org/x/net/ipv4"
	"golang.org/x/net/ipv6"
)

// Each socket has a number of readers. Each has its own buffer, and answers before it reads again. Meanwhile packets
// wait in the kernel (udpBuffer), which drops what exceeds the buffer.
const (
	readers = 8
	udpSize = 4096 // maximum size of a question in bytes; a longer one is cut and then invalid
)

// Parts of a message's header (RFC 1035, 4.1.1).
const (
	headerSize  = 12
	responseBit = 1 << 15
	opcodeBits  = 0xf << 11
	desiredBit  = 1 << 8
)

// tellsWhere makes the kernel report the destination address of each packet, so that the answer comes from there.
func tellsWhere(conn *net.UDPConn) error {
	err6 := ipv6.NewPacketConn(conn).SetControlMessage(ipv6.FlagDst|ipv6.FlagInterface, true)
	err4 := ipv4.NewPacketConn(conn).SetControlMessage(ipv4.FlagDst|ipv4.FlagInterface, true)
	if err6 != nil && err4 != nil { // a socket of one family has no messages of the other
		return err4
	}
	return nil
}

// serveUDP answers the packets of a socket until ctx ends. It closes the socket.
func (s *Server) serveUDP(ctx context.Context, conn *net.UDPConn) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	closed := make(chan struct{})
	context.AfterFunc(ctx, func() { defer close(closed); _ = conn.Close() })
	errs := make([]error, readers)
	var wg sync.WaitGroup
	for i := range errs {
		wg.Go(func() {
			defer cancel()
			if err := s.readUDP(conn); err != nil && ctx.Err() == nil {
				errs[i] = fmt.Errorf("the DNS server stopped: %w", err)
			}
		})
	}
	wg.Wait()
	<-closed
	return errors.Join(errs...)
}

// readUDP answers one packet after the other until the socket is closed.
func (s *Server) readUDP(conn *net.UDPConn) error {
	local := addrOf(conn.LocalAddr())
	buffer := make([]byte, udpSize)
	for {
		n, session, err := dns.ReadFromSessionUDP(conn, buffer)
		var passing net.Error
		switch {
		case errors.As(err, &passing) && passing.Temporary(): //nolint:staticcheck // of sockets it says what is meant
			continue
		case err != nil:
			return err
		}
		from := addrOf(session.RemoteAddr())
		if wire := s.reply(buffer[:n], from, local); wire != nil {
			_, _ = dns.WriteToSessionUDP(conn, wire, session) // a client without an answer repeats its query
		}
	}
}

// reply returns the answer to a packet; nil: none. It reads only the question of a stranger's packet.
func (s *Server) reply(packet []byte, from, local netip.Addr) []byte {
	if len(packet) < headerSize || bits(packet)&responseBit != 0 {
		return nil
	}
	if !s.allows(from, local) {
		return s.short(packet, dns.RcodeRefused)
	}
	q := new(dns.Msg)
	if q.Unpack(packet) != nil {
		return s.short(packet, dns.RcodeFormatError)
	}
	m := s.answer(q, asker{allowed: true, udp: true, server: s.serverFor(from, local)})
	wire, err := m.Pack()
	if err != nil {
		return s.short(packet, dns.RcodeServerFailure)
	}
	if len(wire) > len(packet) && !s.isOwn(from, local) && !s.limit.take(from, s.cfg.Now()) {
		return s.byTCP(q)
	}
	s.count(m.Rcode)
	return wire
}

// byTCP returns an answer that directs the client to TCP. It is no longer than the question.
func (s *Server) byTCP(q *dns.Msg) []byte {
	m := new(dns.Msg).SetReply(q)
	m.Truncated, m.RecursionAvailable, m.AuthenticatedData, m.CheckingDisabled = true, false, false, false
	wire, err := m.Pack()
	if err != nil {
		return nil
	}
	s.count(m.Rcode)
	return wire
}

// short returns an answer with only a code and the question, if there is one. It is no longer than the packet.
func (s *Server) short(packet []byte, code int) []byte {
	end := questionEnd(packet)
	wire := append([]byte(nil), packet[:max(end, headerSize)]...)
	binary.BigEndian.PutUint16(wire[2:], bits(packet)&(opcodeBits|desiredBit)|responseBit|uint16(code))
	clear(wire[4:headerSize])
	if end > 0 {
		wire[5] = 1
	}
	s.count(code)
	return wire
}

// bits returns the flags in a header.
func bits(packet []byte) uint16 { return binary.BigEndian.Uint16(packet[2:]) }

// questionEnd returns the end of a packet's only question. It is 0 if there is none, several, or an incomplete one.
func questionEnd(packet []byte) int {
	if binary.BigEndian.Uint16(packet[4:]) != 1 {
		return 0
	}
	at := headerSize
	for at < len(packet) && packet[at] != 0 {
		if packet[at] > 63 { // a pointer, which cannot be valid in the first name
			return 0
		}
		at += 1 + int(packet[at])
	}
	if at += 1 + 4; at > len(packet) { // after the name come the type and the class
		return 0
	}
	return at
}
