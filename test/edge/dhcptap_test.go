//go:build edge

package edge_test

import (
	"encoding/binary"
	"encoding/hex"
	"net"
	"net/netip"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/insomniacslk/dhcp/dhcpv4"
	"github.com/insomniacslk/dhcp/dhcpv6"
	"github.com/insomniacslk/dhcp/iana"
)

// tap records all DHCP and DHCPv6 messages at a server.
type tap struct {
	mu   sync.Mutex
	said []said
}

// said is one message.
type said struct {
	at      time.Time
	from    string     // the MAC in the frame: which host, or the server
	kind    string     // the message type: as in RFC 2131, or for DHCPv6 as in the package dhcpv6
	client  string     // its identifier after the type 0, or its DUID in hexadecimal digits
	address netip.Addr // the address that the message is about; zero: none
	no      bool       // the server refuses, or revokes something
}

// newTap records the messages in a server's namespace until the test ends.
func newTap(t testing.TB, ns string) *tap {
	t.Helper()
	c, p := socketIn(t, ns), &tap{}
	go func() {
		frame := make([]byte, 1<<14)
		for {
			n, _, err := c.ReadFrom(frame)
			if err != nil {
				return
			}
			one, ok := read4(frame[:n])
			if !ok {
				one, ok = read6(frame[:n])
			}
			if ok {
				p.mu.Lock()
				p.said = append(p.said, one)
				p.mu.Unlock()
			}
		}
	}()
	return p
}

// of are the messages that satisfy a condition.
func (p *tap) of(is func(said) bool) []said {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(p.said), func(s said) bool { return !is(s) })
}

func newSaid(frame []byte) said {
	return said{at: time.Now(), from: net.HardwareAddr(frame[6:12]).String()}
}

// read4 reads a DHCP message.
func read4(frame []byte) (s said, ok bool) {
	if len(frame) < 14+20+8 || binary.BigEndian.Uint16(frame[12:]) != 0x0800 || frame[14+9] != 17 {
		return s, false
	}
	s = newSaid(frame)
	udp := frame[14+4*int(frame[14]&15):]
	if len(udp) < 8 || !slices.Contains([]uint16{67, 68}, binary.BigEndian.Uint16(udp)) {
		return s, false
	}
	m, err := dhcpv4.FromBytes(udp[8:])
	if err != nil {
		return s, false
	}
	s.kind, s.no = m.MessageType().String(), m.MessageType() == dhcpv4.MessageTypeNak
	if id := m.Options.Get(dhcpv4.OptionClientIdentifier); len(id) > 1 {
		s.client = string(id[1:])
	}
	for _, ip := range []net.IP{m.YourIPAddr, m.ClientIPAddr, m.RequestedIPAddress()} {
		if a, ok := netip.AddrFromSlice(ip.To4()); ok && !a.IsUnspecified() && !s.address.IsValid() {
			s.address = a
		}
	}
	return s, true
}

// read6 reads a DHCPv6 message.
func read6(frame []byte) (s said, ok bool) {
	if len(frame) < 14+40+8 || binary.BigEndian.Uint16(frame[12:]) != 0x86dd || frame[14+6] != 17 {
		return s, false
	}
	s = newSaid(frame)
	udp := frame[14+40:]
	if port := binary.BigEndian.Uint16(udp); port != 546 && port != 547 {
		return s, false
	}
	m, err := dhcpv6.MessageFromBytes(udp[8:])
	if err != nil {
		return s, false
	}
	s.kind = m.MessageType.String()
	if id := m.Options.ClientID(); id != nil {
		s.client = hex.EncodeToString(id.ToBytes())
	}
	for _, ia := range m.Options.IANA() {
		for _, one := range ia.Options.Addresses() {
			if a, ok := netip.AddrFromSlice(one.IPv6Addr); ok {
				s.address, s.no = a, s.no || one.ValidLifetime == 0
			}
		}
		status := ia.Options.Status()
		s.no = s.no || status != nil && status.StatusCode != iana.StatusSuccess
	}
	s.no = s.no && m.MessageType == dhcpv6.MessageTypeReply
	return s, true
}

// renewal reports whether a client asks to keep its address or to extend its lease.
func (s said) renewal() bool { return s.kind == "REQUEST" || s.kind == "RENEW" || s.kind == "REBIND" }
