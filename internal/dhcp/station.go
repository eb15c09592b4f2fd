package dhcp

import (
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"time"

	"berth/internal/ipam"

	"github.com/mdlayher/packet"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// restful is how long a socket is kept that nobody uses: renewals of many leases come one after the other.
const restful = time.Minute

// station speaks on one interface, for many exchanges at a time.
type station struct {
	place
	users int         // of the Client, by its lock
	rest  *time.Timer // when nobody has used it for a while

	mu    sync.Mutex
	ear   *ear                 // nil: none is open
	under map[uint32]*exchange // by their transaction ids
}

// ear is a socket, for as long as its interface is the same.
type ear struct {
	conn  *packet.Conn
	index int           // of the interface
	ended chan struct{} // closed when it hears nothing any more
}

// parent is the interface as it is at the moment.
type parent struct {
	name  string
	index int
	mac   net.HardwareAddr
	local netip.Addr // its link-local address, where that is asked for
}

func newStation(at place) *station { return &station{place: at, under: map[uint32]*exchange{}} }

// begin makes an exchange with a number that no other one has.
func (s *station) begin(within time.Duration) (*exchange, error) {
	x := &exchange{station: s, heard: make(chan datagram, heardAtOnce), begun: time.Now(), within: within}
	s.mu.Lock()
	defer s.mu.Unlock()
	for x.id == 0 || s.under[x.id] != nil {
		var random [4]byte
		if _, err := rand.Read(random[:]); err != nil { // a guess would let any machine of the LAN answer
			return nil, fmt.Errorf("no transaction id can be made: %w", err)
		}
		x.id = binary.BigEndian.Uint32(random[:])
		if s.ipv6 {
			x.id &= 1<<24 - 1 // RFC 8415, 8
		}
	}
	s.under[x.id] = x
	return x, nil
}

func (s *station) end(x *exchange) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.under, x.id)
}

// say sends a message to all servers of the LAN.
func (s *station) say(message []byte) error {
	p, err := s.look()
	if err != nil {
		return err
	}
	frame, to := frame4(p.mac, message), broadcast
	if s.ipv6 {
		frame, to = frame6(p.mac, p.local, message), allServers
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.listen(p); err != nil {
		return err
	}
	_, err = s.ear.conn.WriteTo(frame, &packet.Addr{HardwareAddr: to})
	if err != nil && !errors.Is(err, unix.ENOBUFS) { // a queue that is full: what is lost is said again
		return s.unfit("cannot be spoken on: %v", err)
	}
	return nil
}

// listen sees to it that what comes by the interface is heard. An interface that went and came back, be it under the
// same name, has another socket.
func (s *station) listen(p *parent) error {
	if s.ear != nil && !s.ear.over() && s.ear.index == p.index {
		return nil
	}
	s.ear.close()
	s.ear = nil
	protocol, filter := unix.ETH_P_IP, filter4
	if s.ipv6 {
		protocol, filter = unix.ETH_P_IPV6, filter6
	}
	device := &net.Interface{Index: p.index, Name: p.name, HardwareAddr: p.mac}
	conn, err := packet.Listen(device, packet.Raw, protocol, &packet.Config{Filter: filter()})
	if err != nil {
		return s.unfit("cannot be spoken on (CAP_NET_RAW is needed): %v", err)
	}
	s.ear = &ear{conn: conn, index: p.index, ended: make(chan struct{})}
	go s.hear(s.ear)
	return nil
}

// hear hands what comes to whom it is for, until the socket is closed, or the interface goes: then the next message
// that is said opens another one.
func (s *station) hear(e *ear) {
	defer close(e.ended)
	frame := make([]byte, 1<<14)
	for {
		n, _, err := e.conn.ReadFrom(frame)
		if err != nil {
			return
		}
		s.deliver(frame[:n])
	}
}

// deliver hands one frame to its exchange. What is of none is not looked at any further, and who hears too much at
// once misses some.
func (s *station) deliver(frame []byte) {
	read := readFrame4
	if s.ipv6 {
		read = readFrame6
	}
	d, id, ok := read(frame)
	if !ok {
		return
	}
	s.mu.Lock()
	x := s.under[id]
	s.mu.Unlock()
	if x == nil {
		return
	}
	select {
	case x.heard <- d.clone():
	default:
	}
}

func (e *ear) over() bool {
	select {
	case <-e.ended:
		return true
	default:
		return false
	}
}

// close closes it; nil is closed. Its end is not waited for: whoever closes may hold the lock that it delivers by.
func (e *ear) close() {
	if e != nil {
		_ = e.conn.Close() // nothing is lost by it
	}
}

func (s *station) close() {
	s.mu.Lock()
	e := s.ear
	s.ear = nil
	s.mu.Unlock()
	if e != nil {
		e.close()
		<-e.ended
	}
}

// look is the interface as it is now, or why it cannot be spoken on.
func (s *station) look() (*parent, error) {
	link, err := netlink.LinkByName(s.parent)
	var none netlink.LinkNotFoundError
	switch {
	case errors.As(err, &none):
		return nil, s.unfit("is not there")
	case err != nil:
		return nil, s.unfit("cannot be looked at: %v", err)
	}
	a := link.Attrs()
	switch {
	case a.Flags&net.FlagUp == 0:
		return nil, s.unfit("is down")
	case a.EncapType != "ether" || len(a.HardwareAddr) != 6:
		return nil, s.unfit("is no Ethernet interface")
	case a.Flags&net.FlagRunning == 0:
		return nil, s.unfit("has no carrier: its cable, or what is at the other end of it, is not there")
	}
	p := &parent{name: a.Name, index: a.Index, mac: a.HardwareAddr}
	if s.ipv6 {
		if p.local, err = s.linkLocal(link); err != nil {
			return nil, err
		}
	}
	return p, nil
}

// linkLocal is the address that DHCPv6 is spoken from (RFC 8415, 13.1). One that the kernel still looks for on the
// LAN may not be used yet, which takes it a second or two after the interface came up.
func (s *station) linkLocal(link netlink.Link) (netip.Addr, error) {
	all, err := netlink.AddrList(link, netlink.FAMILY_V6)
	if err != nil {
		return netip.Addr{}, s.unfit("cannot be looked at: %v", err)
	}
	for _, a := range all {
		local, ok := netip.AddrFromSlice(a.IP)
		if ok && local.IsLinkLocalUnicast() && a.Flags&(unix.IFA_F_TENTATIVE|unix.IFA_F_DADFAILED) == 0 {
			return local, nil
		}
	}
	return netip.Addr{}, &failure{kind: ipam.LANParent, soon: true, text: fmt.Sprintf("the interface %s has no "+
		"link-local address, from which DHCPv6 is spoken", s.parent)}
}

// unfit is the failure of an interface that cannot be spoken on.
func (s *station) unfit(format string, args ...any) error {
	text := fmt.Sprintf("the interface %s ", s.parent) + fmt.Sprintf(format, args...)
	return &failure{kind: ipam.LANParent, text: text}
}
