package docker

import (
	"fmt"
	"net/netip"
	"slices"
	"testing"
	"time"

	"berth/internal/ipam"
)

// TestForeignHolder: a comparison finds containers on others' reserved addresses, and owners that run on another
// address than their own. It knows owners by name, rule, Compose's labels or MAC. The details name both containers
// and a remedy.
func TestForeignHolder(t *testing.T) {
	playScenes(t, newScene, `
		another's:
			reserve odb 10.8.0.2
			-> foreign_holder 10.8.0.2 pool1
			says the container web runs with 10.8.0.2, which is reserved for odb: remove web, or start it with another address, and then start odb again
		another's, who runs elsewhere:
			reserve odb 10.8.0.2
			run odb 1 10.8.0.3 3
			lease 10.8.0.3 3 1
			-> foreign_holder 10.8.0.2 pool1
			-> owner_elsewhere 10.8.0.3 pool1
			says web runs with 10.8.0.2, which is reserved for odb
			says odb runs with 10.8.0.3, not with 10.8.0.2, which is reserved for odb and which web has: remove web
		another's, from before it was reserved:
			reserve odb 10.8.0.2 since=@-59m
			-> foreign_holder 10.8.0.2 pool1
			says it got the address before the reservation was made
		its own, until it was renamed:
			reserve odb 10.8.0.2
			set lease2 name=odb
			-> foreign_holder 10.8.0.2 pool1
			says odb; its name was odb when it got the address, and a reservation stays with the name: remove web
		another's, that was replaced:
			reserve odb 10.8.0.2 replaced
			-> foreign_holder 10.8.0.2 pool1
		both, each with the other's:
			reserve odb 10.8.0.2
			reserve web 10.8.0.3
			run odb 1 10.8.0.3 3
			lease 10.8.0.3 3 1
			-> foreign_holder 10.8.0.2 pool1
			-> foreign_holder 10.8.0.3 pool1
			-> owner_elsewhere 10.8.0.2 pool1
			-> owner_elsewhere 10.8.0.3 pool1
		beside its own:
			reserve web 10.8.0.8
			-> owner_elsewhere 10.8.0.2 pool1
			says not with 10.8.0.8, which is reserved for web and which no container has: start web again with the reserved address
		beside its own, by Compose's labels:
			set container project=shop service=web number=2
			reserve shop/web/2 10.8.0.8
			-> owner_elsewhere 10.8.0.2 pool1
			says reserved for shop/web/2
		beside its own, by its name:
			set container name=shop-web-2
			reserve shop/web/2 10.8.0.8
			-> owner_elsewhere 10.8.0.2 pool1
		beside its own, by its MAC:
			reserve 02:00:00:00:00:01 10.8.0.8
			-> owner_elsewhere 10.8.0.2 pool1
		beside its own, by a rule:
			rule web* team/web*
			reserve team/web 10.8.0.8
			-> owner_elsewhere 10.8.0.2 pool1

		its own:
			reserve web 10.8.0.2
		its own, while it is moved:
			reserve web 10.8.0.2 replaced
			reserve web 10.8.0.8
		its own, while it is recreated:
			set container name=0123456789ab_web
			reserve web 10.8.0.2
		its own, by Compose's labels:
			set container project=shop service=web number=2
			reserve shop/web/2 10.8.0.2
		its own, by a rule:
			rule web* team/web*
			reserve team/web 10.8.0.2
		its own, by a rule of another network:
			rule web* team/web* lab
			reserve team/web 10.8.0.2
			-> foreign_holder 10.8.0.2 pool1
		its own, one of several:
			reserve web 10.8.0.2 slot=1
			reserve web 10.8.0.8
		another subnet's:
			reserve web 10.9.0.8 subnet=10.9.0.0/24
		another space's:
			reserve odb 10.8.0.2 space=lab
		nobody's yet, in a dynamic network:
			reserve web 10.8.0.2 dynamic
		an endpoint's that is no container:
			set container id=
			reserve odb 10.8.0.2
		a lease that is younger than the view, and may be another's:
			set lease2 since=@-1s mac=none
			reserve odb 10.8.0.2
	`, func(*testing.T, *scene, *comparison) {})
}

// TestStrayEvents: a container on another's reserved address and the owner on another address have one event each,
// however many looks and checks follow. A new event needs a new lease.
func TestStrayEvents(t *testing.T) {
	const foreign = "[lease.foreign_holder 10.8.0.30 web: reserved for odb by check]"
	const both = foreign +
		" [lease.owner_elsewhere 10.8.0.2 odb: 10.8.0.30 is reserved for odb, and web has it by check]"
	newScenario(t).plays(`
		reserve odb 10.8.0.30
		lease front 1 10.8.0.30
		appear web front 10.8.0.30
		wait 1s
		look
		told -> ` + foreign + `
		run odb front -> 10.8.0.2
		wait 1s
		check repair -> foreign_holder 10.8.0.30, owner_elsewhere 10.8.0.2
		told -> ` + both + `
		look
		check
		look
		check
		told -> ` + both + `
		vanish web
		release front 10.8.0.30
		wait 1s
		check -> owner_elsewhere 10.8.0.2
		lease front 3 10.8.0.30
		appear other front 10.8.0.30
		wait 1s
		look
		told -> ` + both + ` [lease.foreign_holder 10.8.0.30 other: reserved for odb by check]
	`)
}

// TestAstray: an owner on another address is reported to be put back when its own address is free. With an engine
// that sends names it is not reported, because it got the address that it should have.
func TestAstray(t *testing.T) {
	for _, c := range []struct {
		version string
		names   bool // a request had one
		want    int
	}{
		{version: "20.10.24", want: 1},
		{version: "28.5.1", want: 1},
		{version: "29.0.0", want: 0},
		{version: "built by hand", want: 1},
		{version: "built by hand", names: true, want: 0},
	} {
		t.Run(fmt.Sprintf("%s/%v", c.version, c.names), func(t *testing.T) {
			tn := newPushed(t)
			var told []Astray
			tn.w = tn.witness(nil, func(cfg *Config) { cfg.Astray = func(all []Astray) { told = all } })
			tn.view.Version = c.version
			if c.names {
				tn.w.cfg.Roster.NoteNames()
			}
			n := tn.leaseOf(addr("10.8.0.1"))
			tn.plays(`
				reserve odb 10.8.0.30
				lease front 99 10.8.0.30
				appear web front 10.8.0.30 99
				run odb front -> 10.8.0.2
				wait 1s
				show
			`)
			if len(told) > 0 {
				t.Fatalf("web has it, and told is %+v", told)
			}
			tn.plays("vanish web\nrelease front 10.8.0.30\nwait 1s\nshow")
			if len(told) != c.want {
				t.Fatalf("told is %+v", told)
			}
			for _, one := range told {
				if one.Container != "odb" || one.Has != addr("10.8.0.2") ||
					one.Home != addr("10.8.0.30") || !one.Reserved ||
					one.Planned != n.NetworkID || one.Taken != "" {
					t.Errorf("told is %+v", one)
				}
			}
		})
	}
}

// TestAstrayOwn: an owner on a wrong IPv4 address is reported with its own IPv6 address, even if its configuration
// has that IPv6 address. It is not reported if its configuration has the IPv4 address.
func TestAstrayOwn(t *testing.T) {
	four, six := addr("10.8.0.2"), addr("fd00::2")
	for _, c := range []struct {
		asks netip.Addr
		told bool
	}{{told: true}, {asks: six, told: true}, {asks: four}} {
		s := newScene()
		s.attach(2, "fd00::/64")
		s.lease("fd00::2", 1, 2).Subnet = prefix("fd00::/64")
		s.view.Networks[0].Subnets = append(s.view.Networks[0].Subnets, ipam.EngineSubnet{CIDR: prefix("fd00::/64")})
		ep := &s.view.Containers[0].Endpoints[0]
		ep.Addresses = []netip.Addr{four, six}
		if c.asks.IsValid() {
			ep.Wanted = []netip.Addr{c.asks}
		}
		for _, own := range []string{"10.8.0.30", "fd00::2"} {
			r := s.reserve("web", own)
			r.Since = old.Add(-time.Hour)
			if addr(own).Is6() {
				r.Subnet = prefix("fd00::/64")
			}
		}
		var told []Astray
		for _, f := range s.compare().found {
			if f.astray != nil {
				told = append(told, *f.astray)
			}
		}
		if c.told != (len(told) == 1) || c.told && !slices.Equal(told[0].Own, []netip.Addr{six}) {
			t.Errorf("it asks for %s, and told is %+v", c.asks, told)
		}
	}
}

// TestAstrayAfterBoot: the check after an engine's start reports containers on other addresses, because an event may
// never follow.
func TestAstrayAfterBoot(t *testing.T) {
	tn := newScenario(t)
	tn.plays("reserve odb 10.8.0.30\nrun odb front\nwait 1s")
	tn.settle(0)
	told := make(chan []Astray, 1)
	tn.live(func(cfg *Config) {
		cfg.Every = time.Hour
		cfg.Astray = func(all []Astray) { told <- all }
	})
	if all := <-told; len(all) != 1 || all[0].Container != "odb" || all[0].Home != addr("10.8.0.30") {
		t.Errorf("told is %+v", all)
	}
}
