package probe

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"net/netip"

	"berth/internal/arp"

	"github.com/mdlayher/packet"
	"golang.org/x/sys/unix"
)

// arpSocket sends and receives ARP on one interface.
type arpSocket struct {
	conn *packet.Conn
	mac  net.HardwareAddr
	name string
}

func openARP(parent *net.Interface) (socket, error) {
	conn, err := packet.Listen(parent, packet.Raw, unix.ETH_P_ARP, nil)
	if err != nil {
		return nil, fmt.Errorf("cannot probe the LAN on %s (CAP_NET_RAW is needed): %w", parent.Name, err)
	}
	return &arpSocket{conn, parent.HardwareAddr, parent.Name}, nil
}

func (e *arpSocket) ask(a netip.Addr) error {
	_, err := e.conn.WriteTo(arp.Probe(arp.Broadcast, e.mac, a), &packet.Addr{HardwareAddr: arp.Broadcast})
	if err != nil && !errors.Is(err, unix.ENOBUFS) { // the queue is full; the next round asks again
		return fmt.Errorf("cannot probe the LAN on %s for %s: %w", e.name, a, err)
	}
	return nil
}

func (e *arpSocket) hear(tell func(netip.Addr, net.HardwareAddr)) {
	frame := make([]byte, 128)
	for {
		n, _, err := e.conn.ReadFrom(frame)
		if errors.Is(err, unix.ENETDOWN) { // returned once; the interface may come up again
			continue
		}
		if err != nil {
			return
		}
		mac, a, ok := arp.Sender(frame[:n])
		if ok && !bytes.Equal(mac, e.mac) {
			tell(a, bytes.Clone(mac))
		}
	}
}

func (e *arpSocket) close() error { return e.conn.Close() }
