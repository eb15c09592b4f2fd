package arrivals

import (
	"errors"
	"fmt"
	"net"
	"strings"

	"github.com/mdlayher/packet"
	"golang.org/x/sys/unix"
)

// Link sends frames on the interfaces of a host.
type Link interface {
	// Send sends, on an interface, the frames that the function returns for its MAC.
	Send(name string, frames func(own net.HardwareAddr) [][]byte) error
}

// Here is the Link of the host of this process.
type Here struct {
	Engine string // URL of the engine whose containers are announced; empty: none
}

// Send implements Link. Each call has its own socket: an interface may be replaced at any time.
func (h Here) Send(name string, frames func(own net.HardwareAddr) [][]byte) error {
	if !strings.HasPrefix(h.Engine, "unix://") { // an interface of that name may be another one here
		return fmt.Errorf("the engine at %s may be on another machine", h.Engine)
	}
	on, err := net.InterfaceByName(name)
	if err != nil {
		return fmt.Errorf("no interface %s: %w", name, err)
	}
	if len(on.HardwareAddr) != 6 {
		return fmt.Errorf("%s is not an Ethernet interface", name)
	}
	conn, err := packet.Listen(on, packet.Raw, 0, nil) // protocol 0: it receives nothing
	if err != nil {
		return fmt.Errorf("cannot send on %s: %w", name, err)
	}
	for _, frame := range frames(on.HardwareAddr) {
		_, err = conn.WriteTo(frame, &packet.Addr{HardwareAddr: frame[:6]})
		if errors.Is(err, unix.ENOBUFS) { // the queue is full; the next time may have room
			err = nil
		}
		if err != nil {
			err = fmt.Errorf("cannot send on %s: %w", name, err)
			break
		}
	}
	return errors.Join(err, conn.Close())
}
