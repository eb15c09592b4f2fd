package cluster

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"berth/internal/ipam"
)

// If a request has taken an address and the host got no answer, no endpoint has the address: it was not given,
// or a headroom address was given instead. Once the store answers again, the address is released at the next
// look, or before the host's next request if that comes first. Until then other hosts are refused it, and the
// error names the MAC of the request.
func TestStrayEnds(t *testing.T) {
	for _, headroom := range []int{0, 2} {
		for _, asks := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				common, a, pool := newLan(t, headroom)
				b := newSharingHost(t, common, "b")
				b.open()
				theirs := b.pool()
				a.handle.CutNext(true, errCut)
				given, err := a.ask(ipam.AddressRequest{Pool: pool, MAC: testMAC(1), Name: "web"})
				if unknown := headroom == 0; isUnknown(err) != unknown || !unknown && err != nil {
					t.Fatal(given, err)
				}
				stray := a.outbox[0].Address
				if stray == given {
					t.Fatalf("%s was given, and is given back", given)
				}
				refused, err := b.ask(ipam.AddressRequest{Pool: theirs, MAC: testMAC(2), Preferred: stray})
				if !errors.Is(err, ipam.ErrInUse) || !strings.Contains(err.Error(), testMAC(1).String()) {
					t.Fatal(refused, err)
				}
				stop := a.runs(t)
				time.Sleep(time.Hour) // out of reach the address stays taken
				isLease(t, common, stray, ipam.Automatic, testMAC(1))
				a.handle.Heal()
				if asks {
					a.take(ipam.AddressRequest{Pool: pool, MAC: testMAC(3)})
				} else {
					time.Sleep(lookEvery)
					synctest.Wait()
				}
				if l := heldAt(t, common, stray); l != nil && l.MAC == testMAC(1) {
					t.Fatalf("headroom %d, asked %v: %s is held still: %+v", headroom, asks, stray, l)
				}
				fine(t, stop())
				if !asks {
					b.take(ipam.AddressRequest{Pool: theirs, MAC: testMAC(2), Preferred: stray})
				}
				b.sound()
			})
		}
	}
}

// If two leases in doubt have the same MAC, a request without a name means the later one, also out of reach,
// whatever got lost before.
func TestLatestInDoubtAway(t *testing.T) {
	plays(t, `
		lan 0
		take mac=1 web -> .2
		take mac=1 db -> .3
		later
		open
		cutnext lost
		take mac=1 web ! unknown
		take mac=1 -> .3
	`)
}
