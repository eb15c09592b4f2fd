package announce

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"time"

	"github.com/mdlayher/ndp"
	"golang.org/x/net/ipv6"
	"golang.org/x/sys/unix"
)

// settling is the maximum number of attempts, one per millisecond, to send from an address that is not usable yet.
const settling = 50

// neighbours sends and receives neighbour discovery on one device. Its messages pass the kernel's tables.
type neighbours struct {
	conn   *ndp.Conn
	device *net.Interface
}

func listenNeighbours(device *net.Interface) (*neighbours, error) {
	conn, err := Neighbours(device, ndp.Unspecified)
	if err != nil {
		return nil, err
	}
	return &neighbours{conn, device}, nil
}

// Neighbours opens a connection for neighbour discovery on a device from one of its addresses. It receives only
// advertisements, each with the number of its device.
func Neighbours(device *net.Interface, from ndp.Addr) (*ndp.Conn, error) {
	// Zone names are cached for a minute, and a device can be another one by then. So the zone is the device's number.
	numbered := &net.Interface{Index: device.Index, MTU: device.MTU, Name: strconv.Itoa(device.Index)}
	conn, _, err := ndp.Listen(numbered, from)
	if err != nil {
		return nil, fmt.Errorf("cannot speak neighbour discovery on %s: %w", device.Name, err)
	}
	var only ipv6.ICMPFilter
	only.SetAll(true)
	only.Accept(ipv6.ICMPTypeNeighborAdvertisement)
	err = errors.Join(conn.SetICMPFilter(&only), conn.SetControlMessage(ipv6.FlagInterface, true))
	if err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return conn, nil
}

// say announces an address to all nodes and overrides what they have learned. The address is also the source, so the
// kernel blocks the message if this host may not answer.
func (n *neighbours) say(a netip.Addr) error {
	message := &ndp.NeighborAdvertisement{
		Override:      true,
		TargetAddress: a,
		Options: []ndp.Option{
			&ndp.LinkLayerAddress{Direction: ndp.Target, Addr: n.device.HardwareAddr},
		},
	}
	how := &ipv6.ControlMessage{HopLimit: ndp.HopLimit, Src: a.AsSlice(), IfIndex: n.device.Index}
	for tries := 0; ; tries++ {
		err := n.conn.WriteTo(message, how, netip.IPv6LinkLocalAllNodes())
		// The kernel makes a new address usable a moment later.
		if !errors.Is(err, unix.EINVAL) || tries == settling {
			return err
		}
		time.Sleep(time.Millisecond)
	}
}

// hear returns the next claim to an address.
func (n *neighbours) hear() (net.HardwareAddr, netip.Addr, error) {
	for {
		message, how, _, err := n.conn.ReadFrom()
		if err != nil {
			return nil, netip.Addr{}, err
		}
		said, ok := message.(*ndp.NeighborAdvertisement)
		if !ok || how == nil || how.IfIndex != n.device.Index {
			continue
		}
		for _, option := range said.Options {
			if at, ok := option.(*ndp.LinkLayerAddress); ok && at.Direction == ndp.Target {
				return at.Addr, said.TargetAddress, nil
			}
		}
	}
}

func (n *neighbours) close() error { return n.conn.Close() }
