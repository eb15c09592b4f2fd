package edit_test

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"berth/internal/ipam"
	"berth/internal/ipam/ipamtest"
	"berth/store"
	"berth/store/storetest"
)

// BO-11: an owner with an end has its address until then. Then anybody can get the address at once, and an event
// tells of the end.
func TestBO11ShortLived(t *testing.T) {
	const job = `
			network n subnet=192.0.2.0/30,pool
			attach A net=n
			reserve n job/1 for=1h -> 192.0.2.1
			owned n -> job/1=192.0.2.1:a~
			ask A x mac=9 -> 192.0.2.2
			wait 59m59s
			ask A y mac=8 ! exhausted; =NotEnoughCapacity
			ask A y mac=8 ip=192.0.2.1 ! inuse; =AlreadyInUse; job/1
			reserve n y ! exhausted; =NotEnoughCapacity
			take n y 192.0.2.1 ! inuse; =AlreadyInUse; job/1
			wait 1s
	`
	const told = "\nevents 3 reservation.remove -> reservation.remove:192.0.2.1\n"
	ipamtest.RunScripts(t, []ipamtest.Script{
		{"given to a container", job + `ask A y mac=8 -> 192.0.2.1` + told + `owned n -> `},
		{"given to one who asks by address", job + `ask A y mac=8 ip=192.0.2.1 -> 192.0.2.1` + told},
		{"given to one without a name", job + `ask A mac=7 -> 192.0.2.1` + told},
		{"reserved", job + `reserve n y -> 192.0.2.1` + told + `owned n -> y=192.0.2.1:a`},
		{"reserved by address", job + `reserve n y 192.0.2.1 -> 192.0.2.1` + told + `owned n -> y=192.0.2.1`},
		{"bound", job + `bind n y` + told + `owned n -> y=192.0.2.1:a`},
		{"taken by hand", job + `take n y pool -> 192.0.2.1` + told},
		{"taken by hand and by address", job + `take n y 192.0.2.1 -> 192.0.2.1` + told},
		{"after a restart", job + "host h1\n" + `ask A y mac=8 -> 192.0.2.1` + told},
		{"as a gateway", job + "gateway A ip=192.0.2.1 -> 192.0.2.1" + told},
		{"reserved again by the owner itself, without an end", job +
			"reserve n job/1 -> 192.0.2.1\nwait 100h\nowned n -> job/1=192.0.2.1:a"},
		{"in use at its end", `
			network n subnet=192.0.2.0/30,pool
			attach A net=n
			reserve n job/1 for=1h -> 192.0.2.1
			ask A job/1 mac=1 -> 192.0.2.1
			ask A x mac=9 -> 192.0.2.2
			wait 2h
			ask A y mac=8 ! exhausted; =NotEnoughCapacity
			ask A y mac=8 ip=192.0.2.1 ! inuse; =AlreadyInUse; job/1
			has A job/1 mac=1 -> 192.0.2.1
			back A 192.0.2.1
			ask A y mac=8 -> 192.0.2.1
			owned n -> 
		`},
		{"its owner comes back late, and gets another if it must", `
			network n subnet=192.0.2.0/29,pool
			attach A net=n
			reserve n job/1 for=1h -> 192.0.2.1
			wait 2h
			reserve n x 192.0.2.1 -> 192.0.2.1
			ask A job/1 mac=1 -> 192.0.2.2
			ask A x mac=2 -> 192.0.2.1
		`},
		{"a longer life", `
			network n subnet=192.0.2.0/30,pool
			reserve n job/1 for=1h -> 192.0.2.1
			wait 30m
			reserve n job/1 for=1h -> 192.0.2.1
			wait 45m
			reserve n x 192.0.2.1 ! inuse; =AlreadyInUse; job/1
			wait 15m
			reserve n x 192.0.2.1 -> 192.0.2.1
		`},
		{"in a subnet that has grown meanwhile, or shrunk", `
			network n subnet=192.0.2.0/28,pool
			reserve n job/1 for=1h -> 192.0.2.1
			subnet.set n 192.0.2.0/28 cidr=192.0.2.0/27
			reserve n job/2 for=2h -> 192.0.2.2
			wait 1h
			subnet.set n 192.0.2.0/27 cidr=192.0.2.0/29
			wait 1h
			reserve n y 192.0.2.1,192.0.2.2 -> 192.0.2.1 192.0.2.2
			events 9 reservation.remove -> reservation.remove:192.0.2.1 reservation.remove:192.0.2.2
		`},
		{"on a network that has gone meanwhile", `
			network n subnet=192.0.2.0/28,pool
			reserve n job/1 for=1h -> 192.0.2.1
			network.rm n force
			wait 2h
			network n subnet=192.0.2.0/28,pool
			reserve n y -> 192.0.2.1
			events 9 reservation.remove -> reservation.remove:192.0.2.1
		`},
		{"counted as free", `
			network n subnet=192.0.2.0/29,gw=192.0.2.1,pool
			reserve n job/1 for=1h
			reserve n job/2 for=1h
			show n free -> 3
			wait 1h
			bind n a b c d e f ! exhausted; =NotEnoughCapacity; 6 wanted; 5 free
			bind n a b c d e
		`},
	})
}

// BO-11: Run ends expired reservations, with an event, without a request; also those of a dynamic network, although
// nobody knows their addresses.
func TestBO11Run(t *testing.T) {
	r := ipamtest.New(t)
	r.Run(`
		network n subnet=192.0.2.0/28,pool
		network d subnet=198.51.100.0/28,pool type=dynamic
		attach A net=n
		reserve n job/1 for=1h
		reserve n job/2 for=1h
		reserve n job/3 for=3h
		reserve n web
		reserve d job/4 for=1h
		ask A job/2 mac=1
		wait 2h
	`)
	last := ipamtest.LastEvent(t, r)
	runUntil(r, func() bool { return len(removed(ipamtest.EventsAfter(t, r, last))) == 3 })
	if got := fmt.Sprint(removed(ipamtest.EventsAfter(t, r, last))); got != "[invalid IP 192.0.2.1 192.0.2.2]" {
		t.Errorf("ended: %s", got)
	}
	r.Run(`
		owned n -> job/3=192.0.2.3:a~ web=192.0.2.4:a
		ask A job/2 mac=1 -> 192.0.2.2
		reserve n next -> 192.0.2.1
	`)
}

// removed lists the addresses of reservations that ended, from events.
func removed(events []ipam.Event) (all []netip.Addr) {
	for _, e := range events {
		if e.Verb == ipam.ReservationRemoved {
			all = append(all, e.Address)
		}
	}
	slices.SortFunc(all, netip.Addr.Compare)
	return all
}

// manyJobs reserves n addresses from 10.0.0.1 on, for owners that have expired by now.
func manyJobs(t *testing.T, n int) *ipamtest.Stage {
	t.Helper()
	r := ipamtest.New(t)
	r.Line("network n subnet=10.0.0.0/16,pool")
	for i := 0; i < n; i += 250 {
		jobs := fmt.Sprintf("reserve n job/%d for=1h", i)
		for j := 1; j < 250; j++ {
			jobs += fmt.Sprintf(" + reserve n job/%d for=1h", i+j)
		}
		r.Line(jobs)
	}
	r.Line("wait 1h")
	return r
}

// BO-11: however many owners have expired, anybody can get each address at once, and Run ends all.
func TestBO11Many(t *testing.T) {
	const n = 1500
	var wishes []string
	for i := range 60 {
		wishes = append(wishes, fmt.Sprintf("10.0.%d.%d", i%5, 3*i+1))
	}
	manyJobs(t, n).Line("reserve n x " + strings.Join(wishes, ",") + " -> " + strings.Join(wishes, " "))

	r := manyJobs(t, n)
	if _, err := r.Step([]string{"reserve", "n", "x", "192.0.2.1"}); ipam.CodeOf(err) != ipam.OutsideSubnet {
		t.Error(err)
	}
	// the refused edit has put no reservation back
	r.Line("reserve n x " + strings.Join(wishes, ",") + " -> " + strings.Join(wishes, " "))

	r = manyJobs(t, n)
	runUntil(r, func() bool { return len(removed(ipamtest.EventsAfter(t, r, 0))) == n })
	if gone := removed(ipamtest.EventsAfter(t, r, 0)); len(gone) != n || len(slices.Compact(gone)) != n {
		t.Errorf("%d ended, of %d", len(gone), n)
	}
}

// BO-11: an end that the store refuses or loses is no end. The same holds for a longer life.
func TestBO11Undone(t *testing.T) {
	for _, network := range []string{"network n subnet=192.0.2.0/28,pool",
		"network n subnet=192.0.2.0/28 type=dynamic"} {
		r := ipamtest.New(t)
		r.Run(network + "\nreserve n job for=1h")
		long := []string{"reserve", "n", "job", "for=5h"}
		for _, fault := range []storetest.Fault{{Reruns: 2, Before: store.ErrNoSpace},
			{Lost: context.DeadlineExceeded}} {
			r.Store.Next(fault)
			if _, err := r.Step(long); err == nil {
				t.Errorf("%s: made in spite of %+v", network, fault)
			}
			r.Store.Heal()
		}
		r.Clock.Time = r.Clock.Time.Add(time.Hour)
		r.Store.Next(storetest.Fault{Reruns: 1, Before: store.ErrNoSpace})
		if _, err := r.Step([]string{"unreserve", "n", "job"}); !errors.Is(err, store.ErrNoSpace) {
			t.Errorf("%s: on a full disk: %v", network, err)
		}
		r.Line("unreserve n job ! notfound; =IPMissing") // its time is over
		if got := len(removed(ipamtest.EventsAfter(t, r, 0))); got != 1 {
			t.Errorf("%s: %d ends", network, got)
		}
	}
}

// BO-11: an owner of a dynamic network ends, too, although nobody knows its address.
func TestBO11Dynamic(t *testing.T) {
	ipamtest.RunScripts(t, []ipamtest.Script{
		{"with the next change", `
			network d subnet=192.0.2.0/28,pool type=dynamic
			reserve d job for=1h
			wait 59m
			unreserve d job
			reserve d job for=1h
			wait 1h
			network other
			unreserve d job ! notfound; =IPMissing
		`},
		{"holds its network no longer", `
			network d subnet=192.0.2.0/28,pool type=dynamic
			reserve d job for=1h
			network.rm d ! inuse; job
			wait 1h
			network.rm d
		`},
	})
}

// runUntil runs Run until done reports true, or for ten seconds.
func runUntil(r *ipamtest.Stage, done func() bool) {
	r.T.Helper()
	running, stop := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- r.S.Run(running) }()
	for deadline := time.Now().Add(10 * time.Second); !done() && time.Now().Before(deadline); {
		time.Sleep(time.Millisecond)
	}
	stop()
	fine(r.T, <-ended)
}

// BO-15: a deployment ends with all of its owners, running or not, and with all that they have on any network.
func TestBO15Deployment(t *testing.T) {
	ipamtest.RunScripts(t, []ipamtest.Script{
		{"running or not, reserved, taken and replaced", `
			network n subnet=192.0.2.0/28,pool
			network m space=lab subnet=192.0.2.0/28,pool
			attach A net=n
			bind n shop/web/1=192.0.2.1 shop/web/2=192.0.2.2 shop/job/1=192.0.2.3 blog/web/1=192.0.2.4
			bind n shop/web/1=192.0.2.5
			reserve m shop/web/1 192.0.2.6,192.0.2.7
			take n shop/vm/1 192.0.2.8
			ask A shop-web-2 mac=2 -> 192.0.2.2
			ask A blog-web-1 mac=3 -> 192.0.2.4
			end shop under
			owned n -> blog/web/1=192.0.2.4*
			owned m -> 
			show n taken ->
			show n counts -> held 2 reserved 0 docker 1 planned true
			ask A x mac=9 -> 192.0.2.1
			back A 192.0.2.2
			ask A y mac=8 -> 192.0.2.3
			end shop under
		`},
		{"with several that share its name", `
			network n subnet=192.0.2.0/28,pool
			bind n shop/web/1 shop shop-web-1 shop.old/web/1 shop/1
			end shop under
			owned n -> shop-web-1=192.0.2.3:a shop.old/web/1=192.0.2.4:a
		`},
	})
}

// BO-15, BO-3: a large deployment on many networks ends in one call.
func TestBO15Large(t *testing.T) {
	r := ipamtest.New(t)
	for i := range 20 {
		r.Line(fmt.Sprintf("network n%d subnet=10.%d.0.0/16,pool", i, i))
		owners := ""
		for j := range 100 {
			owners += fmt.Sprintf(" shop/web/%d", j)
		}
		r.Line(fmt.Sprintf("bind n%d%s", i, owners))
	}
	last := ipamtest.LastEvent(t, r)
	r.Run("end shop under")
	if left := len(r.Reservations(ipam.AddressFilter{})); left > 0 {
		t.Errorf("%d are left", left)
	}
	if gone := len(removed(ipamtest.EventsAfter(t, r, last))); gone != 2000 {
		t.Errorf("%d events", gone)
	}
}
