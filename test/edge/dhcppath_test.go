//go:build edge

package edge_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"berth/internal/ipam"
)

// BenchmarkDHCP starts 100 new containers on a LAN with a DHCP server, and requests as many addresses with a bare
// client. It reports how long each takes: from the engine's request to the recorded lease, and from DISCOVER to
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

// tell reports the times of 100 requests.
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
