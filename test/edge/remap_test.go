//go:build edge

package edge_test

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"berth/internal/edge"
	"berth/internal/edge/nft"
)

// unrelated is how many connections of others the kernel knows while an address gets another guest.
const unrelated = 20_000

// TestRemapOpen: when an address gets another guest of the host, connections of TCP that were open are cut, on both
// ways, and new ones are right, within 100 ms on a machine that does nothing else, however many connections of others
// there are; not one of those is forgotten. CS-9.
func TestRemapOpen(t *testing.T) {
	newLab(t)
	dockerIPTables(t)
	serve(t, peer)
	p := newProvider(t, nft.Config{})
	guests := []netip.Addr{guest4, next4}
	names := []string{guest, next}
	s := edge.State{Ranges: ranges(edge.Keep)}
	s.Mappings = []edge.Mapping{{Elastic: elastic4, Guest: guests[0], Subnet: subnet4}}
	set(t, p, s)
	strangers(t)
	var sets, news, ins, outs []time.Duration
	for n := range 20 {
		from, to := n%2, (n+1)%2
		in, out := opened(t, peer, "tcp", elastic4), opened(t, names[from], "tcp", peer4)
		warm(t, in)
		warm(t, out)
		before := tracked(t)
		s.Mappings = []edge.Mapping{{Elastic: elastic4, Guest: guests[to], Subnet: subnet4}}
		begin := time.Now()
		set(t, p, s)
		sets = append(sets, time.Since(begin))
		for got := ""; got != names[to]+" "+peer4.String(); {
			var err error
			var late net.Error // only that a busy machine answers late is no failure
			if got, err = ask(peer, "tcp", elastic4); err != nil && !(errors.As(err, &late) && late.Timeout()) {
				t.Errorf("round %d: a new connection: %v", n, err)
			}
			if time.Since(begin) > 5*time.Second {
				t.Fatalf("round %d: a new connection leads to %q", n, got)
			}
		}
		news = append(news, time.Since(begin))
		ins = append(ins, cut(t, in, fmt.Sprintf("round %d: into the guest of before", n), begin))
		outs = append(outs, cut(t, out, fmt.Sprintf("round %d: out of the guest of before", n), begin))
		after := tracked(t)
		for one, since := range before {
			if !strings.Contains(one, elastic4.String()+" ") && after[one] != since {
				t.Errorf("round %d: a connection of others was forgotten: %s", n, one)
			}
		}
	}
	for what, all := range map[string][]time.Duration{"the change": sets, "a new connection right": news,
		"an open one into it cut": ins, "an open one out of it cut": outs} {
		slices.Sort(all)
		t.Logf("beside %d connections of others, after %s: p50 %s, the longest %s", unrelated, what,
			all[len(all)/2].Round(100*time.Microsecond), all[len(all)-1].Round(100*time.Microsecond))
		if half := all[len(all)/2]; half > 8*100*time.Millisecond { // one may have had to wait for its turn
			t.Errorf("%s took %s in half of the rounds", what, half)
		}
	}
}

// strangers has the kernel know connections that have nothing to do with an elastic address.
func strangers(t *testing.T) {
	t.Helper()
	run(t, "sysctl -qw net.netfilter.nf_conntrack_udp_timeout=600")
	c, err := in(peer, func() (*net.UDPConn, error) { return net.ListenUDP("udp4", nil) })
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	for n := range unrelated {
		_, _ = c.WriteToUDP([]byte("?"), &net.UDPAddr{IP: host4.AsSlice(), Port: 1024 + n})
	}
	if n := len(tracked(t)); n < unrelated*9/10 {
		t.Fatalf("the kernel knows %d connections, not %d", n, unrelated)
	}
}

// cut waits until a connection that was open is at its end, and tells how long that took since a time.
func cut(t *testing.T, f flow, what string, since time.Time) time.Duration {
	t.Helper()
	for {
		_, err := f.ask()
		if err == nil {
			t.Errorf("%s: an open connection goes on", what)
			return time.Since(since)
		}
		if !errors.Is(err, os.ErrDeadlineExceeded) {
			return time.Since(since)
		}
		if time.Since(since) > 5*time.Second {
			t.Errorf("%s: it is neither cut nor answered: %v", what, err)
			return time.Since(since)
		}
	}
}
