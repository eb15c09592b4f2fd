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

// restful is how long an unused socket stays open, because renewals of many leases follow one another.
const restful = time.Minute

// station sends and receives on one interface, for any number of exchanges.
type station struct {
	place
	users int         // number of open questions, guarded by the Client's lock
	rest  *time.Timer // closes the socket after a while without use

	mu       sync.Mutex
	listener *listener            // the open socket, or nil
	under    map[uint32]*exchange // the open exchanges by transaction id

	addresses func() map[netip.Addr]string // of this host, with their interfaces
}

// listener is a socket of one instance of an interface.
type listener struct {
	conn  *packet.Conn
	index int           // of the interface
	ended chan struct{} // closed when it stops receiving
}

// parent is the current state of the interface.
type parent struct {
	name  string
	index int
	mac   net.HardwareAddr
	local netip.Addr // its link-local address, if that is needed
}

func newStation(at place) *station {
	return &station{place: at, under: map[uint32]*exchange{}, addresses: hostAddresses}
}

// hostHas returns the interface of this host that has an address, or nothing.
func (s *station) hostHas(addr netip.Addr) string {
	if s == nil || s.addresses == nil {
		return ""
	}
	return s.addresses()[addr]
}

// hostAddresses returns the addresses of all interfaces of this host, with the interfaces' names. What cannot be read
// is missing.
func hostAddresses() map[netip.Addr]string {
	all := map[netip.Addr]string{}
	links, err := net.Interfaces()
	if err != nil {
		return all
	}
	for _, link := range links {
		addrs, err := link.Addrs()
		if err != nil {
			continue
		}
		for _, a := range addrs {
			if p, ok := a.(*net.IPNet); ok {
				if addr, ok := netip.AddrFromSlice(p.IP); ok {
					all[addr.Unmap()] = link.Name
				}
			}
		}
	}
	return all
}

// begin creates an exchange with a unique transaction id.
func (s *station) begin(within time.Duration) *exchange {
	x := &exchange{station: s, heard: make(chan datagram, heardAtOnce), begun: time.Now(), within: within}
	s.mu.Lock()
	defer s.mu.Unlock()
	for x.id == 0 || s.under[x.id] != nil {
		var random [4]byte
		rand.Read(random[:]) // never fails; with a predictable id, any machine on the LAN could answer
		x.id = binary.BigEndian.Uint32(random[:])
		if s.ipv6 {
			x.id &= 1<<24 - 1 // RFC 8415, 8
		}
	}
	s.under[x.id] = x
	return x
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
	_, err = s.listener.conn.WriteTo(frame, &packet.Addr{HardwareAddr: to})
	if err != nil && !errors.Is(err, unix.ENOBUFS) { // ENOBUFS is a full queue; the message is sent again
		return s.unfit("cannot be used: %v", err)
	}
	return nil
}

// listen opens a socket on the interface, if necessary. An interface that was removed and created again needs a new
// socket, even with the same name.
func (s *station) listen(p *parent) error {
	if s.listener != nil && !s.listener.over() && s.listener.index == p.index {
		return nil
	}
	s.listener.close()
	s.listener = nil
	protocol, filter := unix.ETH_P_IP, filter4
	if s.ipv6 {
		protocol, filter = unix.ETH_P_IPV6, filter6
	}
	device := &net.Interface{Index: p.index, Name: p.name, HardwareAddr: p.mac}
	conn, err := packet.Listen(device, packet.Raw, protocol, &packet.Config{Filter: filter()})
	if err != nil {
		return s.unfit("cannot be used (Berth needs CAP_NET_RAW for it): %v", err)
	}
	s.listener = &listener{conn: conn, index: p.index, ended: make(chan struct{})}
	go s.hear(s.listener)
	return nil
}

// hear delivers frames until the socket is closed or the interface is removed. The next message opens a new socket.
func (s *station) hear(e *listener) {
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

// deliver passes a frame to its exchange. It drops frames of no exchange, and answers that an exchange does not read
// fast enough.
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

func (e *listener) over() bool {
	select {
	case <-e.ended:
		return true
	default:
		return false
	}
}

// close closes the socket; nil does nothing. It does not wait for the reader, because the caller may hold a lock that
// the reader needs.
func (e *listener) close() {
	if e != nil {
		_ = e.conn.Close() // nothing is lost by an error
	}
}

func (s *station) close() {
	s.mu.Lock()
	e := s.listener
	s.listener = nil
	s.mu.Unlock()
	if e != nil {
		e.close()
		<-e.ended
	}
}

// look returns the current state of the interface, or why it cannot be used.
func (s *station) look() (*parent, error) {
	link, err := netlink.LinkByName(s.parent)
	var none netlink.LinkNotFoundError
	switch {
	case errors.As(err, &none):
		return nil, s.unfit("does not exist")
	case err != nil:
		return nil, s.unfit("cannot be examined: %v", err)
	}
	a := link.Attrs()
	switch {
	case a.Flags&net.FlagUp == 0:
		return nil, s.unfit("is down")
	case a.EncapType != "ether" || len(a.HardwareAddr) != 6:
		return nil, s.unfit("is not an Ethernet interface")
	case a.Flags&net.FlagRunning == 0:
		return nil, s.unfit("has no carrier: its cable or the device at the other end is missing")
	}
	p := &parent{name: a.Name, index: a.Index, mac: a.HardwareAddr}
	if s.ipv6 {
		if p.local, err = s.linkLocal(link); err != nil {
			return nil, err
		}
	}
	return p, nil
}

// linkLocal returns the source address for DHCPv6 (RFC 8415, 13.1). A tentative address, for which the kernel still
// checks for duplicates, cannot be used yet. The check takes a second or two after the interface comes up.
func (s *station) linkLocal(link netlink.Link) (netip.Addr, error) {
	all, err := netlink.AddrList(link, netlink.FAMILY_V6)
	if err != nil {
		return netip.Addr{}, s.unfit("cannot be examined: %v", err)
	}
	for _, a := range all {
		local, ok := netip.AddrFromSlice(a.IP)
		if ok && local.IsLinkLocalUnicast() && a.Flags&(unix.IFA_F_TENTATIVE|unix.IFA_F_DADFAILED) == 0 {
			return local, nil
		}
	}
	return netip.Addr{}, &failure{kind: ipam.LANParent, soon: true, text: fmt.Sprintf("the interface %s has no "+
		"link-local address, which DHCPv6 needs", s.parent)}
}

// unfit returns the failure for an unusable interface.
func (s *station) unfit(format string, args ...any) error {
	text := fmt.Sprintf("the interface %s ", s.parent) + fmt.Sprintf(format, args...)
	return &failure{kind: ipam.LANParent, text: text}
}
