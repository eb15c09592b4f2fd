package probe

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"time"
)

// mostHeard is the maximum number of returned claims.
const mostHeard = 4096

// Heard is a claim to an address.
type Heard struct {
	Address netip.Addr
	MAC     [6]byte
}

// Hear listens for a while on the LAN behind an interface. It returns who claims an address of a prefix in any ARP
// frame or neighbour advertisement. Each claim is returned once, in the order of arrival. Claims of this host's own
// interfaces are omitted.
func Hear(ctx context.Context, device string, prefix netip.Prefix, long time.Duration) (all []Heard, err error) {
	parent, err := lanBehind(device)
	if err != nil {
		return nil, err
	}
	own, err := ownMACs()
	if err != nil {
		return nil, err
	}
	open := openNDP
	if prefix.Addr().Is4() {
		open = openARP
	}
	_, said, end, err := listenTo(open, parent)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, end()) }()
	timer := time.NewTimer(long)
	defer timer.Stop()
	known := map[Heard]bool{}
	for {
		select {
		case h := <-said:
			one := Heard{h.addr, [6]byte(h.mac)}
			if prefix.Contains(h.addr) && !own[one.MAC] && !known[one] && len(all) < mostHeard {
				known[one] = true
				all = append(all, one)
			}
		case <-timer.C:
			return all, nil
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// ownMACs returns the MACs of this host's interfaces, because its bridges and its interfaces to containers claim
// addresses, too.
func ownMACs() (map[[6]byte]bool, error) {
	links, err := net.Interfaces()
	if err != nil {
		return nil, err
	}
	own := map[[6]byte]bool{}
	for _, link := range links {
		if len(link.HardwareAddr) == 6 {
			own[[6]byte(link.HardwareAddr)] = true
		}
	}
	return own, nil
}
