//go:build edge

package edge_test

import (
	"context"
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"berth/internal/arrivals"
	"berth/internal/ipam"
	"berth/test/lab"

	"github.com/sirupsen/logrus"
)

// TestArrivals: a container starts with another MAC on a bridge, and on a macvlan. Those who have talked to it before
// have its old MAC for some time. The announcement corrects that in the host, in another container and on the LAN.
func TestArrivals(t *testing.T) {
	newLab(t)
	onLAN := addr("10.9.0.50")
	script(t, fmt.Sprintf(`
		ip link add mv0 link eth0 netns %[1]s type macvlan mode bridge
		ip -n %[1]s addr add %[2]s/24 dev mv0
		ip -n %[1]s link set mv0 up`, guest, onLAN))
	const old = "02:00:00:00:00:99"
	knowing := []struct {
		ns, device string
		addr, from netip.Addr
		mac        string
	}{
		{"", "br0", guest4, addr("172.30.1.1"), macOf(t, guest)},
		{next, "eth0", guest4, next4, macOf(t, guest)},
		{peer, "eth0", onLAN, peer4, strings.Fields(run(t, "ip -n "+guest+" -br link show mv0"))[2]},
	}
	in := func(ns string) string {
		if ns == "" {
			return "ip "
		}
		return "ip -n " + ns + " "
	}
	for _, one := range knowing {
		run(t, in(one.ns)+"neigh replace "+one.addr.String()+" lladdr "+old+" dev "+one.device+" nud reachable")
		refused(t, one.ns, "tcp", one.addr)
	}
	ctx, cancel := context.WithCancel(t.Context())
	a := arrivals.New(arrivals.Here{Engine: "unix:///run/docker.sock"}, logrus.NewEntry(logrus.New()))
	done := make(chan error)
	go func() { done <- a.Run(ctx) }()
	a.See(&ipam.EngineView{})
	view := ipam.EngineView{Networks: []ipam.EngineNetwork{{ID: "b", Kind: "bridge", Link: "br0"},
		{ID: "m", Kind: "macvlan", Parent: "eth0"}}}
	for _, one := range []struct {
		network string
		i       int
	}{{"b", 0}, {"m", 2}} {
		mac, err := ipam.ParseMAC(knowing[one.i].mac)
		lab.Must(t, err)
		view.Containers = append(view.Containers, ipam.EngineContainer{Endpoints: []ipam.EngineEndpoint{
			{Network: one.network, MAC: mac, Addresses: []netip.Addr{knowing[one.i].addr}}}})
	}
	a.See(&view)
	for _, one := range knowing {
		lab.Await(t, 5*time.Second, func() error {
			entry := run(t, in(one.ns)+"neigh show "+one.addr.String()+" dev "+one.device)
			if !strings.Contains(entry, one.mac) {
				return fmt.Errorf("%q knows %s as %q, and not with %s", one.ns, one.addr, entry, one.mac)
			}
			return nil
		})
		expect(t, one.ns, "tcp", one.addr, guest, one.from)
	}
	cancel()
	lab.Check(t, <-done)
}
