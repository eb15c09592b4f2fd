package probe

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"

	"berth/internal/edge/announce"

	"github.com/mdlayher/packet"
	"golang.org/x/sys/unix"
)

const etherARP = 0x0806

// broadcast is the address of all machines on the LAN.
var broadcast = net.HardwareAddr{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}

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

// probeFrame asks all machines who has an address. It claims no address itself: the sender's is 0.0.0.0 (RFC 5227,
// 2.1.1).
func probeFrame(mac net.HardwareAddr, a netip.Addr) []byte {
	frame := append(append([]byte{}, broadcast...), mac...)
	frame = binary.BigEndian.AppendUint16(frame, etherARP)
	frame = append(frame, 0, 1, 8, 0, 6, 4, 0, 1) // Ethernet, IPv4, the lengths of their addresses, a request
	frame = append(append(frame, mac...), 0, 0, 0, 0)
	return append(append(frame, 0, 0, 0, 0, 0, 0), a.AsSlice()...)
}

func (e *arpSocket) ask(a netip.Addr) error {
	_, err := e.conn.WriteTo(probeFrame(e.mac, a), &packet.Addr{HardwareAddr: broadcast})
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
		mac, a, ok := announce.ARPSender(frame[:n])
		if ok && !bytes.Equal(mac, e.mac) {
			tell(a, bytes.Clone(mac))
		}
	}
}

func (e *arpSocket) close() error { return e.conn.Close() }
