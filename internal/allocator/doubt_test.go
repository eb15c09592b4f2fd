package allocator_test

import (
	"net/netip"
	"path/filepath"
	"testing"

	"berth/internal/ipam"
	"berth/internal/ipam/ipamtest"
	"berth/store"
	"berth/store/storetest"
)

// The address of an existing container is lent last. Of the addresses of removed containers, the one that was released
// first is lent first.
func TestLentLast(t *testing.T) {
	const six = `
			attach A cidr=192.0.2.0/29
			ask A web -> 192.0.2.1
			back A 192.0.2.1
			ask A a mac=1 -> 192.0.2.2
			ask A b mac=2 -> 192.0.2.3
			ask A c mac=3 -> 192.0.2.4
			ask A d mac=4 -> 192.0.2.5
			ask A e mac=5 -> 192.0.2.6
			back A 192.0.2.3
			back A 192.0.2.2
			wait 1h
		`
	runGuesses(t, []ipamtest.Script{
		{"it is passed over", six + `
			exist web
			ask A f -> 192.0.2.3
			ask A g -> 192.0.2.2
			back A 192.0.2.3
			ask A h -> 192.0.2.3
			ask A web -> 192.0.2.1
		`},
		{"without a witness the one released longest ago goes first", six + `
			ask A f -> 192.0.2.1
		`},
		{"where nothing else is free it is lent", six + `
			exist web b
			ask A f -> 192.0.2.2
			ask A g -> 192.0.2.1
			ask A h -> 192.0.2.3
			ask A i ! exhausted
		`},
		{"Compose recreates it under another name", `
			attach A cidr=192.0.2.0/30
			ask A 0123456789ab_shop-web-1 -> 192.0.2.1
			ask A x -> 192.0.2.2
			back A 192.0.2.1
			back A 192.0.2.2
			exist shop-web-1
			ask A y -> 192.0.2.2
			ask A shop-web-1 -> 192.0.2.1
		`},
		{"its quarantine is over first", `
			network net1 subnet=192.0.2.0/30,pool quarantine=1h
			attach A net=net1
			ask A web -> 192.0.2.1
			back A 192.0.2.1
			wait 30m
			ask A x -> 192.0.2.2
			back A 192.0.2.2
			exist web
			ask A y ! exhausted; quarantine
			wait 31m
			ask A y -> 192.0.2.1
		`},
		{"it is forgotten last", `
			attach A cidr=192.0.2.0/28
			ask A web mac=1 -> 192.0.2.1
			back A 192.0.2.1
			exist web
			ask A a mac=11 -> 192.0.2.2
			ask A b mac=12 -> 192.0.2.3
			ask A c mac=13 -> 192.0.2.4
			ask A d mac=14 -> 192.0.2.5
			ask A e mac=15 -> 192.0.2.6
			ask A f mac=16 -> 192.0.2.7
			ask A g mac=17 -> 192.0.2.8
			back A 192.0.2.2
			back A 192.0.2.3
			back A 192.0.2.4
			back A 192.0.2.5
			back A 192.0.2.6
			back A 192.0.2.7
			back A 192.0.2.8
			lease 192.0.2.1 -> automatic web remembered
			lease 192.0.2.2 -> none
			ask A web mac=1 -> 192.0.2.1
		`},
	})
}

// A refusal and the list of reservations show the current name of a container.
func TestRenamedHolder(t *testing.T) {
	runGuesses(t, []ipamtest.Script{
		{"in a refusal", `
			network net1 subnet=192.0.2.0/24,pool
			reserve net1 web 192.0.2.77
			attach A net=net1
			ask A web -> 192.0.2.77
			ask A web ! inuse; is held by web on host
			sight 192.0.2.77 old
			ask A web ! inuse; is held by old on host; formerly called web
			ask A ip=192.0.2.77 ! inuse; is held by old on host
			take net1 printer 192.0.2.77 ! inuse
			users net1 -> 192.0.2.77=old
			sight 192.0.2.77 0123456789ab_web
			ask A web ! inuse; is held by web on host
		`},
		{"one who said no name", `
			attach A cidr=192.0.2.0/24
			wait 1h
			ask A ip=192.0.2.77 -> 192.0.2.77
			sight 192.0.2.77 web
			ask A x ip=192.0.2.77 ! inuse; is held by web on host
		`},
	})
}

// The address of a start that is refused its other address a moment later is in doubt: the engine ends the start, and
// may never release it.
func TestStartOfBothFamilies(t *testing.T) {
	const begun = `
		attach A cidr=192.0.2.0/29
		attach B cidr=fd00::4/127
		ask B x mac=9
		ask B y mac=8
		ask A web mac=1 -> 192.0.2.1
	`
	ipamtest.RunScripts(t, []ipamtest.Script{
		{"it was refused", begun + `
			ask B web mac=1 ! exhausted
			ask A web mac=1 -> 192.0.2.1
		`},
		{"it was not", begun + `
			ask A web mac=1 -> 192.0.2.2
		`},
		{"another was", begun + `
			ask B web mac=2 ! exhausted
			ask A web mac=1 -> 192.0.2.2
		`},
		{"long after", begun + `
			wait 11s
			ask B web mac=1 ! exhausted
			ask A web mac=1 -> 192.0.2.2
		`},
		{"it was seen", begun + `
			sight 192.0.2.1 web
			ask B web mac=1 ! exhausted
			ask A web mac=1 -> 192.0.2.2
		`},
		{"it was seen after it", begun + `
			ask B web mac=1 ! exhausted
			sight 192.0.2.1 web
			ask A web mac=1 -> 192.0.2.2
		`},
		{"it was given again meanwhile", begun + `
			ask B web mac=1 ! exhausted
			back A 192.0.2.1
			ask A web mac=1 -> 192.0.2.1
			ask A web mac=1 -> 192.0.2.2
		`},
		{"it is given once", begun + `
			ask B web mac=1 ! exhausted
			ask A web mac=1 ip=192.0.2.1 -> 192.0.2.1
			ask A web mac=1 ip=192.0.2.1 ! inuse; is held by
		`},
		{"in another network", `
			attach A cidr=192.0.2.0/29
			wait 11s
			attach B cidr=fd00::4/127
			ask B x mac=9
			ask B y mac=8
			ask A web mac=1 -> 192.0.2.1
			ask B web mac=1 ! exhausted
			ask A web mac=1 -> 192.0.2.2
		`},
	})
}

// A lost lease is replaced: it ends, and a new one begins, which no request for the first one changes.
func TestTakenOver(t *testing.T) {
	runGuesses(t, []ipamtest.Script{
		{"with its events", `
			attach A cidr=192.0.2.0/24
			ask A web mac=1 -> 192.0.2.1
			ask A web mac=1 ip=192.0.2.1 ! inuse
			sight 192.0.2.1 gone
			ask A web mac=1 -> 192.0.2.1
			told lease.take -> 2: 192.0.2.1 web (automatic)
			told lease.release -> 1: 192.0.2.1 web ()
			lease 192.0.2.1 -> automatic web
		`},
		{"what was asked for by address stays so", `
			attach A cidr=192.0.2.0/24
			ask A mac=1 ip=192.0.2.77 -> 192.0.2.77
			sight 192.0.2.77 gone
			ask A mac=1 -> 192.0.2.77
			lease 192.0.2.77 -> static -
		`},
		{"what is reserved, by a name alone", `
			network net1 subnet=192.0.2.0/24,pool
			reserve net1 web 192.0.2.77
			attach A net=net1
			ask A web -> 192.0.2.77
			ask A web ! inuse; is held by
			sight 192.0.2.77 gone
			ask A web -> 192.0.2.77
		`},
		{"what is reserved stays so", `
			network net1 subnet=192.0.2.0/24,pool
			reserve net1 web 192.0.2.77
			attach A net=net1
			ask A web mac=1 -> 192.0.2.77
			sight 192.0.2.77 gone
			ask A web mac=1 -> 192.0.2.77
			back A 192.0.2.77
			owned net1 -> web=192.0.2.77
		`},
	})
}

// If two leases in doubt have the same MAC, a request without a name gets the later one, even after a failed request.
// Over etcd each service has its own handle, so the fault would be in another one. TestLatestInDoubtAway of cluster
// tests that case.
func TestLatestInDoubt(t *testing.T) {
	st := storetest.NewFaulty(ipamtest.OpenStore(t, filepath.Join(t.TempDir(), "berth.db")))
	t.Cleanup(func() { st.Close() })
	c := ipamtest.NewClock()
	s := ipamtest.OpenService(t, st, c.Now)
	pool := ipamtest.MustPool(t, s, ipam.PoolRequest{CIDR: netip.MustParsePrefix("10.0.0.0/29")})
	first := ipam.AddressRequest{Pool: pool.ID, MAC: ipamtest.MAC(1), Name: "web"}
	second := ipam.AddressRequest{Pool: pool.ID, MAC: ipamtest.MAC(1), Name: "db"}
	ipamtest.MustTake(t, s, first)
	later := ipamtest.MustTake(t, s, second)
	s = ipamtest.OpenService(t, st, c.Now)
	st.Next(storetest.Fault{Before: store.ErrNoSpace})
	if got, err := s.RequestAddress(ctx, first); err == nil {
		t.Fatal("the disk was full, and it was given", got)
	}
	if got := ipamtest.MustTake(t, s, ipam.AddressRequest{Pool: pool.ID, MAC: ipamtest.MAC(1)}); got != later {
		t.Errorf("%v was given again; the later one is %v", got, later)
	}
}
