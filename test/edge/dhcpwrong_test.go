//go:build edge

package edge_test

import (
	"encoding/binary"
	"net"
	"net/netip"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"berth/internal/ipam"

	"github.com/insomniacslk/dhcp/dhcpv4"
	"github.com/insomniacslk/dhcp/iana"
	"github.com/mdlayher/packet"
)

// wrongServer is a DHCP server that answers what a test wants.
type wrongServer struct {
	own  netip.Addr
	edit func(answer *dhcpv4.DHCPv4)

	mu       sync.Mutex
	next     netip.Addr
	declined []netip.Addr
}

// newWrongServer puts the server on the LAN, in its own namespace.
func (l *dhcpLAN) newWrongServer(edit func(answer *dhcpv4.DHCPv4)) *wrongServer {
	l.t.Helper()
	const ns = "dhw"
	script(l.t, strings.ReplaceAll(`
		ip netns add NS
		ip -n NS link set lo up
		ip -n sw link add NS type veth peer name eth0 netns NS
		ip -n sw link set NS master `+l.bridge+` up
		ip -n NS link set eth0 up`, "NS", ns))
	l.t.Cleanup(func() { _ = exec.Command("ip", "netns", "del", ns).Run() })
	s := &wrongServer{own: l.terms.own.Addr(), edit: edit, next: l.terms.from}
	c := socketIn(l.t, ns)
	go func() {
		frame := make([]byte, 1<<14)
		for {
			n, _, err := c.ReadFrom(frame)
			if err != nil {
				return
			}
			if answer := s.answer(frame[:n]); answer != nil {
				_, _ = c.WriteTo(answer, &packet.Addr{HardwareAddr: net.HardwareAddr(answer[:6])})
			}
		}
	}()
	return s
}

// answer returns the frame that answers one, or nil.
func (s *wrongServer) answer(frame []byte) []byte {
	if len(frame) < 14+20+8 || binary.BigEndian.Uint16(frame[12:]) != 0x0800 || frame[14+9] != 17 ||
		binary.BigEndian.Uint16(frame[14+20+2:]) != 67 {
		return nil
	}
	asked, err := dhcpv4.FromBytes(frame[14+20+8:])
	if err != nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	kind := dhcpv4.MessageTypeOffer
	switch asked.MessageType() {
	case dhcpv4.MessageTypeDiscover:
	case dhcpv4.MessageTypeRequest:
		kind = dhcpv4.MessageTypeAck
	case dhcpv4.MessageTypeDecline:
		at, _ := netip.AddrFromSlice(asked.RequestedIPAddress().To4())
		s.declined, s.next = append(s.declined, at), s.next.Next()
		return nil
	default:
		return nil
	}
	m := &dhcpv4.DHCPv4{OpCode: dhcpv4.OpcodeBootReply, HWType: iana.HWTypeEthernet, TransactionID: asked.TransactionID,
		ClientHWAddr: asked.ClientHWAddr, YourIPAddr: s.next.AsSlice(), Options: dhcpv4.Options{}}
	for _, o := range []dhcpv4.Option{dhcpv4.OptMessageType(kind), dhcpv4.OptServerIdentifier(s.own.AsSlice()),
		dhcpv4.OptIPAddressLeaseTime(time.Minute), dhcpv4.OptSubnetMask(net.IPMask{255, 255, 255, 0})} {
		m.UpdateOption(o)
	}
	if s.edit != nil {
		s.edit(m)
	}
	return frameFrom(frame[6:12], s.own, m.ToBytes())
}

// frameFrom is a broadcast datagram of a server in a frame. It has no checksum of UDP.
func frameFrom(mac []byte, own netip.Addr, message []byte) []byte {
	b := append(slices.Repeat([]byte{0xff}, 6), mac...)
	b[6] ^= 2 // another machine's
	b = binary.BigEndian.AppendUint16(b, 0x0800)
	header := make([]byte, 20)
	header[0], header[8], header[9] = 0x45, 64, 17
	binary.BigEndian.PutUint16(header[2:], uint16(20+8+len(message)))
	copy(header[12:], own.AsSlice())
	copy(header[16:], []byte{255, 255, 255, 255})
	sum := uint32(0)
	for i := 0; i < len(header); i += 2 {
		sum += uint32(binary.BigEndian.Uint16(header[i:]))
	}
	for sum > 0xffff {
		sum = sum>>16 + sum&0xffff
	}
	binary.BigEndian.PutUint16(header[10:], ^uint16(sum))
	b = append(b, header...)
	for _, word := range []int{67, 68, 8 + len(message), 0} {
		b = binary.BigEndian.AppendUint16(b, uint16(word))
	}
	return append(b, message...)
}

// TestDHCPWrong: an offer that breaks a rule is not taken. The error names the server, what it offered, and the rule.
func TestDHCPWrong(t *testing.T) {
	for _, c := range []struct {
		name string
		edit func(*dhcpv4.DHCPv4)
		want []string
	}{
		{"no time", func(m *dhcpv4.DHCPv4) { delete(m.Options, 51) },
			[]string{"192.168.7.1 offered 192.168.7.100", "without a lease time"}},
		{"no server", func(m *dhcpv4.DHCPv4) { delete(m.Options, 54) },
			[]string{"192.168.7.1 offered 192.168.7.100", "without saying which server it is"}},
		{"no address", func(m *dhcpv4.DHCPv4) { m.YourIPAddr = net.IPv4zero }, []string{"192.168.7.1 offered no address"}},
		{"everybody's address", func(m *dhcpv4.DHCPv4) { m.YourIPAddr = net.IPv4bcast },
			[]string{"offered 255.255.255.255, which is not a host address"}},
		{"its own address", func(m *dhcpv4.DHCPv4) { m.YourIPAddr = net.IP{192, 168, 7, 1} },
			[]string{"192.168.7.1 offered 192.168.7.1, which is the server's own address"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := newLAN(t, false)
			l.newWrongServer(c.edit)
			a := l.fails(ipam.LANWrong, ipam.LANTake, owner(1), func(q *ipam.LANAsk) { q.Within = ipam.Duration(time.Second) })
			for _, want := range append(c.want, lanParent) {
				if !strings.Contains(a.Error, want) {
					t.Errorf("it is refused without %q: %s", want, a.Error)
				}
			}
		})
	}
}

// TestDHCPHostsOwn: an address that the host itself has is declined. The client gets the next one.
func TestDHCPHostsOwn(t *testing.T) {
	l := newLAN(t, false)
	s := l.newWrongServer(nil)
	run(t, "ip addr add "+l.terms.from.String()+"/24 dev "+silentParent)
	if got, want := l.done(ipam.LANTake, owner(1)).Address, l.terms.from.Next(); got != want {
		t.Errorf("it gets %s, and not %s", got, want)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if !slices.Equal(s.declined, []netip.Addr{l.terms.from}) {
		t.Errorf("declined are %v", s.declined)
	}
}
