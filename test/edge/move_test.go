//go:build edge

package edge_test

import (
	"errors"
	"flag"
	"net/netip"
	"testing"
	"time"

	"berth/test/lab"
)

var moves = flag.Int("moves", 10, "how often an address moves between two hosts")

// family names the family of an address, for test names.
func family(a netip.Addr) string {
	if a.Is4() {
		return "IPv4"
	}
	return "IPv6"
}

// newProbe asks an address from the peer every 5 ms until the test ends.
func newProbe(t *testing.T, a netip.Addr) *lab.Probe {
	t.Helper()
	f, err := open(peer, "udp", a)
	lab.Must(t, err)
	p := lab.NewProbe(f, 5*time.Millisecond)
	t.Cleanup(func() { _ = p.Stop() })
	return p
}

// TestMoves: an address moves between two hosts. Once `berth elastic associate` has returned, nothing reaches the
// old guest, not even packets of an open flow.
func TestMoves(t *testing.T) {
	c := newCluster(t, "")
	guests := []guestOn{c.hosts[0].newGuest("g1"), c.hosts[1].newGuest("g2")}
	for _, a := range both {
		t.Run(family(a), func(t *testing.T) { moveOften(t, c, guests, a) })
	}
}

// settles is how long answers are counted after the address has moved.
const settles = 300 * time.Millisecond

func moveOften(t *testing.T, c *cluster, guests []guestOn, a netip.Addr) {
	c.hosts[0].berth("elastic", "associate", a.String(), guests[0].mac)
	c.reaches(a, "g1", time.Second)
	p := newProbe(t, a)
	answered := func(by string, since time.Time) {
		t.Helper()
		within(t, time.Second, by+" answers", func() error {
			if p.By(by, since) == 0 {
				return errors.New("it does not")
			}
			return nil
		})
		time.Sleep(settles)
	}
	answered(guests[0].ns, time.Now())
	stray := 0
	for n := range *moves {
		from, to := n%2, (n+1)%2
		c.hosts[n/2%2].berth("elastic", "associate", a.String(), guests[to].mac, "--move")
		returned := time.Now()
		answered(guests[to].ns, returned)
		stray += p.By(guests[from].ns, returned)
	}
	if stray > 0 {
		t.Errorf("%d packets reached the guest of before", stray)
	}
}
