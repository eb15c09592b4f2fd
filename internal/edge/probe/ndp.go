package probe

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"net/netip"

	"berth/internal/edge/announce"

	"github.com/mdlayher/ndp"
	"golang.org/x/sys/unix"
)

// ndpSocket sends and receives neighbour discovery on one interface.
type ndpSocket struct {
	conn   *ndp.Conn
	parent *net.Interface
}

func openNDP(parent *net.Interface) (socket, error) {
	conn, err := announce.Neighbours(parent, ndp.LinkLocal)
	if err != nil {
		return nil, err
	}
	return &ndpSocket{conn, parent}, nil
}

// ask asks the possible holders of an address. The answer goes to the interface's own address (RFC 4861, 7.2.2).
func (e *ndpSocket) ask(a netip.Addr) error {
	to, err := ndp.SolicitedNodeMulticast(a)
	if err != nil {
		return err
	}
	err = e.conn.WriteTo(&ndp.NeighborSolicitation{TargetAddress: a, Options: []ndp.Option{
		&ndp.LinkLayerAddress{Direction: ndp.Source, Addr: e.parent.HardwareAddr}}}, nil, to)
	if err != nil && !errors.Is(err, unix.ENOBUFS) {
		return fmt.Errorf("cannot probe the LAN on %s for %s: %w", e.parent.Name, a, err)
	}
	return nil
}

func (e *ndpSocket) hear(tell func(netip.Addr, net.HardwareAddr)) {
	for {
		message, how, _, err := e.conn.ReadFrom()
		if err != nil {
			return
		}
		said, ok := message.(*ndp.NeighborAdvertisement)
		if !ok || how == nil || how.IfIndex != e.parent.Index {
			continue
		}
		for _, option := range said.Options {
			at, ok := option.(*ndp.LinkLayerAddress)
			if ok && at.Direction == ndp.Target && len(at.Addr) == 6 && !bytes.Equal(at.Addr, e.parent.HardwareAddr) {
				tell(said.TargetAddress, at.Addr)
			}
		}
	}
}

func (e *ndpSocket) close() error { return e.conn.Close() }
