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

// What UDP may cost: so many read from a socket, each into a buffer of its own, and answer what they have read before
// they read on. What comes meanwhile waits in the kernel, in udpBuffer, and is dropped where that is full.
const (
	readers = 8
	udpSize = 4096 // bytes of a question; what is longer is cut, and is none then
)

// Parts of a message's header (RFC 1035, 4.1.1).
const (
	headerSize  = 12
	responseBit = 1 << 15
	opcodeBits  = 0xf << 11
	desiredBit  = 1 << 8
)

// tellsWhere lets the kernel say of each packet which address it came to, so that the answer comes from there.
func tellsWhere(conn *net.UDPConn) error {
	err6 := ipv6.NewPacketConn(conn).SetControlMessage(ipv6.FlagDst|ipv6.FlagInterface, true)
	err4 := ipv4.NewPacketConn(conn).SetControlMessage(ipv4.FlagDst|ipv4.FlagInterface, true)
	if err6 != nil && err4 != nil { // a socket of one family has no messages of the other
		return err4
	}
	return nil
}

// serveUDP answers what comes to a socket until ctx ends. It closes the socket.
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
				errs[i] = fmt.Errorf("the names: %w", err)
			}
		})
	}
	wg.Wait()
	<-closed
	return errors.Join(errs...)
}

// readUDP answers one question after the other until the socket is closed.
func (s *Server) readUDP(conn *net.UDPConn) error {
	local, _ := addrOf(conn.LocalAddr())
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
		from, _ := addrOf(session.RemoteAddr())
		if wire := s.reply(buffer[:n], from, local); wire != nil {
			_, _ = dns.WriteToSessionUDP(conn, wire, session) // who does not hear it asks again
		}
	}
}

// reply is what is answered to a packet; nil: nothing is. A stranger's is not read beyond its question.
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

// byTCP says that the answer is to be had by TCP, in no more bytes than the question has.
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

// short answers with a code and the question alone, where there is one: it is no longer than the packet.
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

// bits are those of a header that say what a message is.
func bits(packet []byte) uint16 { return binary.BigEndian.Uint16(packet[2:]) }

// questionEnd is where the only question of a packet ends; 0: it has none, or several, or one that is not whole.
func questionEnd(packet []byte) int {
	if binary.BigEndian.Uint16(packet[4:]) != 1 {
		return 0
	}
	at := headerSize
	for at < len(packet) && packet[at] != 0 {
		if packet[at] > 63 { // a pointer, of which there is nothing to point to yet
			return 0
		}
		at += 1 + int(packet[at])
	}
	if at += 1 + 4; at > len(packet) { // the end of the name, the type and the class
		return 0
	}
	return at
}
