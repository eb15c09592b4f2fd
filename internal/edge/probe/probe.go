// Package probe asks the neighbours on a LAN which addresses they have. Probes change no neighbour's tables (RFC 5227,
// 2.1), and their rate is too low to disturb a LAN. Either every address is probed several times, or the result is
// marked incomplete.
//
// Ask (probe.go) uses ARP (arp.go) and IPv6 neighbour discovery (ndp.go). Hear (hear.go) only listens.
package probe

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"time"
)

// most is the maximum number of addresses in one call.
const most = 256

const (
	// rounds is how often each address is probed. A frame may be lost, or a machine may be asleep.
	rounds = 3
	// pace is the pause between two probes.
	pace = time.Millisecond
	// patience is the wait for answers after the last probe of a round. RFC 5227 waits one to two seconds for a host
	// that takes the address at once. Here the next rounds receive late answers.
	patience = 400 * time.Millisecond
)

// Answers are the holders of addresses.
type Answers map[netip.Addr]net.HardwareAddr

// socket sends and receives one protocol on one interface.
type socket interface {
	ask(netip.Addr) error
	// hear calls the function for each claim to an address, until close.
	hear(func(netip.Addr, net.HardwareAddr))
	close() error
}

// Ask asks on the LAN behind an interface who has the addresses, and returns after the wait for answers. It answers for
// this host's own addresses itself, with the interface's MAC, because no other machine would answer.
func Ask(ctx context.Context, device string, addrs []netip.Addr) (Answers, error) {
	if len(addrs) > most {
		return nil, fmt.Errorf("%d addresses are too many for one probe: at most %d are allowed", len(addrs), most)
	}
	parent, err := lanBehind(device)
	if err != nil {
		return nil, err
	}
	own, err := ownAddresses()
	if err != nil {
		return nil, err
	}
	answers := Answers{}
	var four, six []netip.Addr
	for _, a := range addrs {
		switch {
		case own[a]:
			answers[a] = parent.HardwareAddr
		case a.Is4():
			four = append(four, a)
		default:
			six = append(six, a)
		}
	}
	if err := askBy(ctx, openARP, parent, four, answers); err != nil {
		return nil, err
	}
	return answers, askBy(ctx, openNDP, parent, six, answers)
}

// lanBehind returns the interface with a name, if it can lead to a LAN.
func lanBehind(device string) (*net.Interface, error) {
	parent, err := net.InterfaceByName(device)
	if err != nil {
		return nil, fmt.Errorf("cannot probe the LAN on %s: %w", device, err)
	}
	if len(parent.HardwareAddr) != 6 {
		return nil, fmt.Errorf("cannot probe the LAN on %s: it is not an Ethernet device", device)
	}
	if parent.Flags&net.FlagUp == 0 {
		return nil, fmt.Errorf("cannot probe the LAN on %s: the interface is down", device)
	}
	return parent, nil
}

func ownAddresses() (map[netip.Addr]bool, error) {
	all, err := net.InterfaceAddrs()
	if err != nil {
		return nil, fmt.Errorf("cannot list this host's own addresses: %w", err)
	}
	own := map[netip.Addr]bool{}
	for _, one := range all {
		if p, ok := one.(*net.IPNet); ok {
			if a, ok := netip.AddrFromSlice(p.IP); ok {
				own[a.Unmap()] = true
			}
		}
	}
	return own, nil
}

// heard is one answer.
type heard struct {
	addr netip.Addr
	mac  net.HardwareAddr
}

// askBy asks for addresses with one protocol, and adds the answers.
func askBy(ctx context.Context, open func(*net.Interface) (socket, error), parent *net.Interface, addrs []netip.Addr,
	answers Answers) (err error) {
	if len(addrs) == 0 {
		return nil
	}
	e, said, end, err := listenTo(open, parent)
	if err != nil {
		return err
	}
	defer func() {
		if closed := end(); err == nil {
			err = closed
		}
	}()
	r := &round{ctx: ctx, socket: e, said: said, wanted: map[netip.Addr]bool{}, answers: answers}
	for _, a := range addrs {
		r.wanted[a] = true
	}
	for range rounds {
		if err := r.run(addrs); err != nil {
			return err
		}
	}
	return nil
}

// listenTo receives answers of one protocol until end is called.
func listenTo(open func(*net.Interface) (socket, error), parent *net.Interface) (e socket, said <-chan heard,
	end func() error, err error) {
	if e, err = open(parent); err != nil {
		return nil, nil, nil, err
	}
	all, ended, stop := make(chan heard), make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		e.hear(func(a netip.Addr, mac net.HardwareAddr) {
			select {
			case all <- heard{a, mac}:
			case <-stop:
			}
		})
	}()
	return e, all, func() error {
		close(stop)
		err := e.close()
		<-ended
		return err
	}, nil
}

// round is the state of one call of Ask.
type round struct {
	ctx     context.Context
	socket  socket
	said    <-chan heard
	wanted  map[netip.Addr]bool // addresses without an answer
	answers Answers
}

// run asks once for all addresses without an answer, and waits for answers.
func (r *round) run(addrs []netip.Addr) error {
	for _, a := range addrs {
		if !r.wanted[a] {
			continue
		}
		if err := r.socket.ask(a); err != nil {
			return err
		}
		if err := r.listen(pace); err != nil {
			return err
		}
	}
	if len(r.wanted) == 0 {
		return nil
	}
	return r.listen(patience)
}

// listen receives answers for a while.
func (r *round) listen(long time.Duration) error {
	timer := time.NewTimer(long)
	defer timer.Stop()
	for {
		select {
		case h := <-r.said:
			if r.wanted[h.addr] {
				delete(r.wanted, h.addr)
				r.answers[h.addr] = h.mac
			}
		case <-timer.C:
			return nil
		case <-r.ctx.Done():
			return fmt.Errorf("the probe of the LAN did not end in time: %w", r.ctx.Err())
		}
	}
}
