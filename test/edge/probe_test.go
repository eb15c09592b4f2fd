//go:build edge

package edge_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sirupsen/logrus"
	"go4.org/netipx"

	"berth/internal/admin"
	"berth/internal/admin/relay"
	"berth/internal/ipam"
	"berth/internal/ipam/service"
	"berth/internal/neighbours"
	"berth/store/mem"
	"berth/test/lab"
)

// prober is a daemon's admin API with a network on the lab's LAN, and a `berth edge`.
type prober struct {
	t      *testing.T
	s      *service.Service
	lan    *relay.Relay
	socket string
}

// newProber makes a daemon with the lab's LAN as network home, probed through an interface or not at all.
func newProber(t *testing.T, probe string) *prober {
	t.Helper()
	newLab(t)
	quiet := logrus.New()
	quiet.SetOutput(io.Discard)
	s, err := service.Open(t.Context(), service.Config{Store: mem.New(), Host: "alpha"})
	lab.Must(t, err)
	p := &prober{t: t, s: s, lan: relay.New(), socket: filepath.Join(t.TempDir(), "a.sock")}
	l, err := net.Listen("unix", p.socket)
	lab.Must(t, err)
	server := admin.New(admin.Config{Service: s, Log: logrus.NewEntry(quiet), GID: -1, TempDir: t.TempDir(),
		Host: "alpha", LAN: p.lan})
	p.background(func(ctx context.Context) error { return server.Serve(ctx, l) })
	edits := []ipam.Edit{&ipam.CreateNetwork{Name: "home", Probe: probe, Subnets: []ipam.SubnetSpec{
		{CIDR: netip.MustParsePrefix("10.9.0.0/24"), Gateway: addr("10.9.0.1")},
		{CIDR: netip.MustParsePrefix("2001:db8::/64"), Gateway: addr("2001:db8::1")}}}}
	for _, whole := range []string{"10.9.0.0/24", "2001:db8::/64"} {
		edits = append(edits, &ipam.AddPool{Network: "home",
			Range: ipam.Range{IPRange: netipx.RangeOfPrefix(netip.MustParsePrefix(whole))}})
	}
	if _, err := s.Edit(t.Context(), ipam.EditOptions{}, edits...); err != nil {
		t.Fatal(err)
	}
	p.background(neighbours.New(neighbours.Config{Host: "alpha", ToProbe: s.ToProbe, Edit: s.Edit, Ask: p.lan.Ask,
		Log: logrus.NewEntry(quiet)}).Run)
	return p
}

func (p *prober) background(run func(context.Context) error) {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		lab.Check(p.t, run(ctx))
	}()
	p.t.Cleanup(func() { cancel(); <-ended })
}

// edge starts `berth edge` with only CAP_NET_RAW.
func (p *prober) edge() {
	p.t.Helper()
	edge := lab.Start(p.t, exec.Command("setpriv", "--bounding-set=-all,+net_raw", "--inh-caps=-all", "--no-new-privs",
		buildBerth(p.t), "edge", "--provider", "none", "--admin-socket", p.socket))
	p.t.Cleanup(func() {
		edge.Stop(p.t)
		if p.t.Failed() {
			p.t.Logf("the edge's log:\n%s", edge.Log())
		}
	})
}

// excluded are the exclusions with their notes.
func (p *prober) excluded() map[netip.Addr]string {
	p.t.Helper()
	n, err := p.s.Network(p.t.Context(), "home")
	lab.Must(p.t, err)
	all := map[netip.Addr]string{}
	for _, sub := range n.Subnets {
		for _, x := range sub.Exclusions {
			all[x.Start] = x.Note
		}
	}
	return all
}

// TestProbe: Berth excludes addresses of unknown machines on the LAN, and of the host itself, with their MACs,
// before it leases them. It excludes no other address.
func TestProbe(t *testing.T) {
	p := newProber(t, "eth0")
	p.edge()
	want := map[netip.Addr]string{peer4: macOf(t, peer), other4: macOf(t, other), host4: macOf(t, ""),
		peer6: macOf(t, peer), other6: macOf(t, other), host6: macOf(t, "")}
	p.finds(want)
	run(t, "ip -n "+other+" addr add 10.9.0.22/24 dev eth0") // outside the stock until the next leases
	for _, ten := range []string{"10.9.0.3", "10.9.0.4"} {
		p.take(ten)
	}
	want[addr("10.9.0.22")] = macOf(t, other)
	p.finds(want)
	next, err := p.s.NextFree(t.Context(), "home", ipam.FreeFilter{})
	if err != nil || len(next) != 2 || next[0].Start != addr("10.9.0.5") || next[1].Start != addr("2001:db8::3") {
		t.Errorf("given next: %v, %v", next, err)
	}
}

// TestScan: a scan lists all machines that answer on the LAN, with MAC and record. Once recorded, they are
// devices.
func TestScan(t *testing.T) {
	p := newProber(t, "") // a probed network may be asked about once more
	p.edge()
	command := func(flags ...string) *exec.Cmd {
		return exec.Command(buildBerth(t), append([]string{"--admin-socket", p.socket, "lan", "scan", "home",
			"--parent", "eth0", "--format", "{{.Address}} {{.MAC}} {{.State}} {{.Holder}}"}, flags...)...)
	}
	within(t, 2*time.Second, "the edge is connected", func() error {
		said, err := command().CombinedOutput()
		if err != nil {
			return fmt.Errorf("%w: %s", err, said)
		}
		return nil
	})
	p.take("10.9.0.2")
	scan := func(flags ...string) string {
		t.Helper()
		cmd := command(flags...)
		var complaint strings.Builder
		cmd.Stderr = &complaint
		said, err := cmd.Output()
		if err != nil || !strings.Contains(complaint.String(), "2001:db8::/64 has too many addresses") {
			t.Fatalf("%v: %s", err, complaint.String())
		}
		return string(said)
	}
	own, others := macOf(t, ""), macOf(t, other)
	taken := fmt.Sprintf("10.9.0.2 %s leased a10-9-0-2\n", macOf(t, peer))
	if got, want := scan(), taken+fmt.Sprintf("10.9.0.11 %s free \n10.9.0.12 %s free \n", own, others); got != want {
		t.Errorf("got:\n%s\nwant:\n%s", got, want)
	}
	recorded := taken + fmt.Sprintf("10.9.0.11 %[1]s leased %[1]s\n10.9.0.12 %[2]s leased %[2]s\n", own, others)
	for _, flags := range [][]string{{"--record"}, {}, {"--record"}} {
		if got := scan(flags...); got != recorded {
			t.Errorf("%v: got:\n%s\nwant:\n%s", flags, got, recorded)
		}
	}
}

// take has an owner take an address.
func (p *prober) take(one string) {
	p.t.Helper()
	take := &ipam.TakeAddress{Network: "home", Owner: "a" + strings.ReplaceAll(one, ".", "-"),
		Interface: ipam.Interface{Wishes: []ipam.Wish{{Address: addr(one)}}}}
	if _, err := p.s.Edit(p.t.Context(), ipam.EditOptions{}, take); err != nil {
		p.t.Fatal(err)
	}
}

// finds waits until exactly these addresses are excluded, each with a note that contains the MAC.
func (p *prober) finds(want map[netip.Addr]string) {
	p.t.Helper()
	within(p.t, 8*time.Second, "they are excluded", func() error {
		got := p.excluded()
		for one, mac := range want {
			if !strings.Contains(got[one], mac) {
				return fmt.Errorf("%s, which %s has, has the note %q", one, mac, got[one])
			}
		}
		if len(got) != len(want) {
			return fmt.Errorf("excluded are %v", got)
		}
		return nil
	})
}

// TestForeignAnswer: Berth finds a machine that claims a container's address on the LAN, with its MAC. It does not
// report the container itself or this host.
func TestForeignAnswer(t *testing.T) {
	p := newProber(t, "eth0")
	l := p.listensFor("10.9.0.0/24", "10.9.0.30", "10.9.0.31")
	run(t, "ip -n "+peer+" addr add 10.9.0.30/24 dev eth0\nip -n "+other+" addr add 10.9.0.31/24 dev eth0\n"+
		"ip addr add 10.9.0.32/24 dev eth0")
	p.findsForeign(l, "10.9.0.31", func() {
		for ns, from := range map[string]string{peer: "10.9.0.30", other: "10.9.0.31"} {
			asksFor(t, ns, addr(from), addr("10.9.0.99")) // no one answers, but all hear the asker's address
		}
	})
}

// TestForeignAdvertisement: the same for IPv6, by neighbour advertisements (RFC 4861, 7.2.6).
func TestForeignAdvertisement(t *testing.T) {
	p := newProber(t, "eth0")
	l := p.listensFor("2001:db8::/64", "2001:db8::30", "2001:db8::31")
	p.findsForeign(l, "2001:db8::31", func() {
		advertise(t, peer, addr("2001:db8::30"))
		advertise(t, other, addr("2001:db8::31"))
		advertise(t, "", addr("2001:db8::31")) // Berth never reports this host's own
	})
}

// asksFor sends from a namespace's address to another one, which starts with an ARP request to all of the LAN.
func asksFor(t *testing.T, ns string, from, to netip.Addr) {
	t.Helper()
	if _, err := in(ns, func() (none struct{}, err error) {
		c, err := net.DialUDP("udp", net.UDPAddrFromAddrPort(netip.AddrPortFrom(from, 0)),
			net.UDPAddrFromAddrPort(netip.AddrPortFrom(to, 9)))
		if err != nil {
			return none, err
		}
		_, err = c.Write([]byte("?"))
		return none, errors.Join(err, c.Close())
	}); err != nil {
		t.Fatal(err)
	}
}

// listensFor makes the edge listen, and gives containers addresses of a subnet: the first with the peer's MAC, the
// others with MACs that no machine has.
func (p *prober) listensFor(subnet string, addrs ...string) *neighbours.Listener {
	p.t.Helper()
	quiet := logrus.New()
	quiet.SetOutput(io.Discard)
	l := neighbours.NewListener(neighbours.ListenConfig{Host: "alpha", Networks: p.s.Networks, Network: p.s.Network,
		Leases: p.s.Leases,
		SeenBy: func(string, netip.Addr, uint64) *ipam.SeenBy { return nil }, Ask: p.lan.Ask, Log: logrus.NewEntry(quiet)})
	p.background(l.Run)
	p.edge()
	cidr := netip.MustParsePrefix(subnet)
	grant, err := p.s.RequestPool(p.t.Context(), ipam.PoolRequest{Network: "home", CIDR: cidr, IPv6: cidr.Addr().Is6()})
	lab.Must(p.t, err)
	container := ipam.MAC(parseMAC(p.t, macOf(p.t, peer))) // it sends too
	for i, one := range addrs {
		if _, err := p.s.RequestAddress(p.t.Context(), ipam.AddressRequest{Pool: grant.ID, MAC: container,
			Name: fmt.Sprint("web", i), Preferred: addr(one)}); err != nil {
			p.t.Fatal(err)
		}
		container[5]++
	}
	return l
}

// findsForeign waits until Berth finds that the other host claims an address, and no other finding. It calls say
// all the time.
func (p *prober) findsForeign(l *neighbours.Listener, address string, say func()) {
	p.t.Helper()
	within(p.t, 40*time.Second, "it is found", func() error {
		say()
		found := l.Findings()
		if len(found) == 0 {
			return errors.New("nothing is found")
		}
		if f := found[0]; len(found) != 1 || f.Kind != ipam.ForeignAnswer || f.Address != addr(address) ||
			f.MAC.String() != macOf(p.t, other) {
			p.t.Fatalf("found: %+v", found)
		}
		return nil
	})
}

func parseMAC(t *testing.T, text string) net.HardwareAddr {
	t.Helper()
	mac, err := net.ParseMAC(text)
	lab.Must(t, err)
	return mac
}
