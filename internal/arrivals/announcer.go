// Package arrivals announces the IPv4 addresses of containers that have just started, so that their neighbours find
// them at once: the host, other containers on the bridge, and the LAN of a macvlan network. Engines from 28 on draw a
// new MAC at each start and announce it themselves. With a remote IPAM driver they announce 0.0.0.0 instead of the
// address, because they copy the first four of its sixteen bytes (l2disco/unsol_arp_linux.go in moby's libnetwork). A
// neighbour would then use the old MAC for up to 45 s. IPv6 is right there.
//
// An Announcer (announcer.go) compares each view of the engine with the one before. What it finds, it sends through a
// Link (link.go), in the frames of internal/arp. Nothing waits for it, and no failure of it matters to anything else.
package arrivals

import (
	"bytes"
	"context"
	"maps"
	"net"
	"net/netip"
	"slices"
	"sync"
	"time"

	"berth/internal/arp"
	"berth/internal/ipam"

	"github.com/sirupsen/logrus"
)

// after has the times of an announcement. Kernels ignore a second change within a second, and the first frame may be
// lost while the container's interface comes up.
var after = [...]time.Duration{0, 1100 * time.Millisecond, 2300 * time.Millisecond}

// Announcer announces the addresses of started containers.
type Announcer struct {
	link  Link
	log   *logrus.Entry
	woken chan struct{}
	told  bool // the log has a failure

	mu   sync.Mutex // guards the fields below
	last map[place]ipam.MAC
	due  map[place]*arrival
}

// place is an address on a Docker network.
type place struct {
	network string // its id
	addr    netip.Addr
}

// arrival is a container's address that is being announced.
type arrival struct {
	addr   netip.Addr
	mac    ipam.MAC
	device device
	since  time.Time
	said   int // how many times
}

// device is an interface of the host that leads to a network.
type device struct {
	name   string // empty: none
	bridge bool   // the host itself is a neighbour there
}

// New returns an Announcer that has seen nothing yet.
func New(link Link, log *logrus.Entry) *Announcer {
	return &Announcer{link: link, log: log, woken: make(chan struct{}, 1), due: map[place]*arrival{}}
}

// See takes the next view of the engine and never waits. What has another MAC than in the view before, or was not
// there, is announced. The first view announces nothing.
func (a *Announcer) See(view *ipam.EngineView) {
	now := time.Now()
	a.mu.Lock()
	defer a.mu.Unlock()
	there, devices := map[place]ipam.MAC{}, devicesOf(view)
	for i := range view.Containers {
		for _, ep := range view.Containers[i].Endpoints {
			on, known := devices[ep.Network]
			if !known || ep.MAC == (ipam.MAC{}) {
				continue
			}
			for _, addr := range ep.Addresses {
				at := place{ep.Network, addr}
				there[at] = ep.MAC
				if a.last != nil && a.last[at] != ep.MAC && addr.Is4() && ep.MAC != derived(addr) {
					a.due[at] = &arrival{addr: addr, mac: ep.MAC, device: on, since: now}
				}
			}
		}
	}
	maps.DeleteFunc(a.due, func(at place, one *arrival) bool { return there[at] != one.mac })
	a.last = there
	select {
	case a.woken <- struct{}{}:
	default:
	}
}

// devicesOf returns the interfaces of the networks of a view, by the network's id. An ipvlan has its parent's MAC,
// which never changes. A swarm's networks have no interface in the host's namespace.
func devicesOf(view *ipam.EngineView) map[string]device {
	all := map[string]device{}
	for i := range view.Networks {
		n := &view.Networks[i]
		var on device
		switch n.Kind {
		case "bridge":
			on = device{n.Bridge(), true}
		case "macvlan":
			on.name = n.Parent
		}
		if on.name != "" && !n.Swarm {
			all[n.ID] = on
		}
	}
	return all
}

// derived returns the MAC that engines before 28 derive from an address. No neighbour has another for it.
func derived(addr netip.Addr) ipam.MAC {
	b := addr.As4()
	return ipam.MAC{0x02, 0x42, b[0], b[1], b[2], b[3]}
}

// Run announces until ctx ends.
func (a *Announcer) Run(ctx context.Context) error {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-a.woken:
		case <-timer.C:
		}
		now, next := time.Now(), time.Time{}
		for on, all := range a.take(now, &next) {
			a.send(on, all)
		}
		timer.Stop()
		if !next.IsZero() {
			timer.Reset(next.Sub(now))
		}
	}
}

// take returns what is to be announced now, by device, and sets the time when something is next.
func (a *Announcer) take(now time.Time, next *time.Time) map[device][]arrival {
	a.mu.Lock()
	defer a.mu.Unlock()
	all := map[device][]arrival{}
	for at, one := range a.due {
		if now.Sub(one.since) >= after[one.said] {
			one.said++
			all[one.device] = append(all[one.device], *one)
		}
		if one.said == len(after) {
			delete(a.due, at)
			continue
		}
		if then := one.since.Add(after[one.said]); next.IsZero() || then.Before(*next) {
			*next = then
		}
	}
	return all
}

// send announces addresses on a device. The log gets a failure only at the last time, because a network that is being
// removed may have lost its device before a view shows that; and only once, because the cause is always the same.
func (a *Announcer) send(on device, all []arrival) {
	slices.SortFunc(all, func(x, y arrival) int { return x.addr.Compare(y.addr) })
	err := a.link.Send(on.name, func(own net.HardwareAddr) (frames [][]byte) {
		for _, one := range all {
			frames = append(frames, framesFor(one, on.bridge, own)...)
		}
		return frames
	})
	last := slices.ContainsFunc(all, func(one arrival) bool { return one.said == len(after) })
	if err == nil || !last || a.told {
		return
	}
	a.told = true
	a.log.Warnf("cannot announce the addresses of started containers: %v; on Docker 28 and newer, a machine that knew "+
		"a container before may not reach it for up to a minute after its restart; run this process in the host's "+
		"network, with CAP_NET_RAW", err)
}

// framesFor returns the frames that announce an address. The first one is for all others on the network. The host
// itself does not receive what it sends on its bridge. So the second one asks the container, and the host learns from the
// answer.
func framesFor(one arrival, bridge bool, own net.HardwareAddr) [][]byte {
	mac := net.HardwareAddr(bytes.Clone(one.mac[:]))
	frames := [][]byte{arp.Announcement(arp.Request, mac, one.addr)}
	if bridge {
		frames = append(frames, arp.Probe(mac, own, one.addr))
	}
	return frames
}
