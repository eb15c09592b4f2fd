//go:build edge

package edge_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"berth/internal/admin"
	"berth/internal/admin/relay"
	"berth/internal/ipam"
	"berth/internal/ipam/service"
	"berth/store/mem"

	"github.com/sirupsen/logrus"
)

// answering is a daemon's admin API on a socket, with nothing behind it but the relay.
func answering(t testing.TB, socket string, lan *relay.Relay) (stop func()) {
	t.Helper()
	quiet := logrus.New()
	quiet.SetOutput(io.Discard)
	st := mem.New()
	s, err := service.Open(t.Context(), service.Config{Store: st, Host: "alpha"})
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	server := admin.New(admin.Config{Service: s, Log: logrus.NewEntry(quiet), GID: -1, TempDir: filepath.Dir(socket),
		Host: "alpha", LAN: lan})
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if err := server.Serve(ctx, l); err != nil {
			t.Error(err)
		}
	}()
	stop = func() { cancel(); <-ended }
	t.Cleanup(stop)
	return stop
}

// TestDHCPPath: a question of the daemon goes to `berth edge`, which has CAP_NET_RAW alone, by it to the LAN's server,
// and back. An edge that is killed and one that is started, and a daemon that is started again, are found again.
func TestDHCPPath(t *testing.T) {
	eachServer(t, nil, func(t *testing.T, l *dhcpLAN) {
		berth := buildBerth(t)
		socket := filepath.Join(l.server.dir, "a.sock")
		lan := relay.New()
		stop := answering(t, socket, lan)
		ask := func() (ipam.LANAnswer, time.Duration) {
			begun := time.Now()
			a, err := lan.Ask(t.Context(), ipam.LANAsk{Verb: ipam.LANTake, Parent: lanParent, IPv6: l.ipv6,
				Client: owner(1), Subnet: l.terms.own.Masked(), Within: ipam.Duration(8 * time.Second)})
			if err != nil {
				t.Fatal(err)
			}
			return a, time.Since(begun)
		}
		if a, took := ask(); a.Failure != ipam.LANNoEdge || took > 5*time.Second {
			t.Errorf("without an edge: %+v, after %s", a, took)
		}
		start := func() *program {
			return l.server.cluster.start(l.hostNamespace(), "edge", "setpriv", "--bounding-set=-all,+net_raw",
				"--inh-caps=-all", "--no-new-privs", berth, "edge", "--provider", "none", "--admin-socket", socket)
		}
		answered := func(what string) ipam.LANLease {
			t.Helper()
			var lease ipam.LANLease
			within(t, 5*time.Second, what, func() error {
				a, _ := ask()
				if lease = a.Lease; a.Failure != "" {
					return errors.New(a.Error)
				}
				return nil
			})
			return lease
		}
		edge := start()
		got := answered("the edge answers")
		l.checkLease(got)
		edge.kill()
		within(t, 2*time.Second, "the edge is gone", func() error {
			if lan.Connected() > 0 {
				return errors.New("it is connected")
			}
			return nil
		})
		edge = start()
		if again := answered("another edge answers"); again.Address != got.Address {
			t.Errorf("it has %s now, and had %s", again.Address, got.Address)
		}
		stop()
		lan = relay.New()
		answering(t, socket, lan)
		if again := answered("the edge comes back"); again.Address != got.Address {
			t.Errorf("it has %s now, and had %s", again.Address, got.Address)
		}
		edge.kill()
	})
}

// hostNamespace names the namespace of the test process, in which programs are started as in any other.
func (l *dhcpLAN) hostNamespace() string {
	const name = "me"
	if _, err := os.Stat("/run/netns/" + name); err != nil {
		// by a process that it starts: its first thread may be in another one, where a test had it
		run(l.t, "ip netns attach "+name+" $$")
	}
	return name
}

// BenchmarkDHCP starts 100 new containers on a LAN with a DHCP server, and has a client that does nothing else ask for as
// many addresses. It tells how long each takes: from the engine's request to the recorded lease, and from DISCOVER to
// ACK. The pool has room for two iterations.
func BenchmarkDHCP(b *testing.B) {
	for _, m := range makers {
		for _, ipv6 := range []bool{false, true} {
			b.Run(fmt.Sprintf("%s/v6=%t", m.name, ipv6), func(b *testing.B) {
				l := newLAN(b, ipv6)
				if !ipv6 {
					l.terms.from, l.terms.to = addr("192.168.7.10"), addr("192.168.7.254")
				}
				l.server = l.newServer(m, "dh", l.terms)
				network := l.newHost("h1").network(l, lanParent)
				started := 0
				for b.Loop() {
					tell(b, "", func(n int) {
						started++
						network.take(fmt.Sprint("web-", started), started)
					})
					tell(b, "client-", func(n int) { l.done(ipam.LANTake, owner(1000+n)) })
				}
			})
		}
	}
}

// tell reports how long 100 requests take.
func tell(b *testing.B, what string, ask func(n int)) {
	b.Helper()
	took := make([]time.Duration, 0, 100)
	for n := range 100 {
		begun := time.Now()
		ask(n)
		took = append(took, time.Since(begun))
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[50].Microseconds())/1000, what+"p50-ms")
	b.ReportMetric(float64(took[98].Microseconds())/1000, what+"p99-ms")
}
