package announce

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"

	"berth/internal/arp"

	"github.com/mdlayher/packet"
	"golang.org/x/sys/unix"
)

// station sends and receives on one device.
type station struct {
	device *net.Interface
	arp    *packet.Conn
	ndp    *neighbours // nil if the device has no IPv6
	heard  func(device string, mac net.HardwareAddr, a netip.Addr)
	ears   sync.WaitGroup
}

func openStation(name string, heard func(string, net.HardwareAddr, netip.Addr)) (*station, error) {
	device, err := net.InterfaceByName(name)
	if err != nil {
		return nil, fmt.Errorf("cannot announce on %s: %w", name, err)
	}
	if len(device.HardwareAddr) != 6 {
		return nil, fmt.Errorf("cannot announce on %s: it is not an Ethernet device", name)
	}
	conn, err := packet.Listen(device, packet.Raw, unix.ETH_P_ARP, nil)
	if err != nil {
		return nil, fmt.Errorf("cannot announce on %s (CAP_NET_RAW is needed): %w", name, err)
	}
	s := &station{device: device, arp: conn, heard: heard}
	s.ndp, err = listenNeighbours(device)
	if err != nil && !errors.Is(err, unix.EAFNOSUPPORT) {
		return nil, errors.Join(err, conn.Close())
	}
	s.ears.Go(s.hearARP)
	if s.ndp != nil {
		s.ears.Go(s.hearNeighbours)
	}
	return s, nil
}

// stale reports whether the device was replaced or has another MAC.
func (s *station) stale() bool {
	now, err := net.InterfaceByName(s.device.Name)
	return err != nil || now.Index != s.device.Index || !bytes.Equal(now.HardwareAddr, s.device.HardwareAddr)
}

// say announces an address once, and returns the number of frames. A message that the kernel blocks, because the host
// may not answer for the address any more, is not an error.
func (s *station) say(a netip.Addr) (int, error) {
	frames, err := s.send(a)
	if errors.Is(err, unix.ENOBUFS) || errors.Is(err, unix.EPERM) {
		err = nil
	}
	return frames, err
}

func (s *station) send(a netip.Addr) (int, error) {
	if a.Is6() {
		if s.ndp == nil {
			return 0, fmt.Errorf("cannot announce %s on %s: it has no IPv6", a, s.device.Name)
		}
		err := s.ndp.say(a)
		if err != nil {
			return 0, fmt.Errorf("cannot announce %s on %s: %w", a, s.device.Name, err)
		}
		return 1, nil
	}
	for i, operation := range []arp.Operation{arp.Request, arp.Reply} { // neighbours learn from either
		to := &packet.Addr{HardwareAddr: arp.Broadcast}
		_, err := s.arp.WriteTo(arp.Announcement(operation, s.device.HardwareAddr, a), to)
		if err != nil {
			return i, fmt.Errorf("cannot announce %s on %s: %w", a, s.device.Name, err)
		}
	}
	return 2, nil
}

func (s *station) hearARP() {
	frame := make([]byte, 128)
	for {
		n, _, err := s.arp.ReadFrom(frame)
		if errors.Is(err, unix.ENETDOWN) { // returned once; the device may come up again
			continue
		}
		if err != nil {
			return
		}
		mac, a, ok := arp.Sender(frame[:n])
		if ok && !bytes.Equal(mac, s.device.HardwareAddr) {
			s.heard(s.device.Name, bytes.Clone(mac), a)
		}
	}
}

func (s *station) hearNeighbours() {
	for {
		mac, a, err := s.ndp.hear()
		if err != nil {
			return
		}
		if !bytes.Equal(mac, s.device.HardwareAddr) {
			s.heard(s.device.Name, mac, a)
		}
	}
}

func (s *station) close() error {
	err := s.arp.Close()
	if s.ndp != nil {
		err = errors.Join(err, s.ndp.close())
	}
	s.ears.Wait()
	return err
}
