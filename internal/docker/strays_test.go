package docker

import (
	"slices"
	"strings"
	"testing"
	"time"

	"berth/internal/ipam"
)

// TestForeignHolder: containers on others' reserved addresses, and owners that run next to their own. Owners are found
// by name, rule, Compose's labels or MAC. The details name both containers and a remedy.
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
			says odb runs with 10.8.0.3 and not with 10.8.0.2, which is reserved for odb and which web has: remove web
		another's, from before it was reserved:
			reserve odb 10.8.0.2 since=@-59m
			-> foreign_holder 10.8.0.2 pool1
			says since before that was reserved
		its own, until it was renamed:
			reserve odb 10.8.0.2
			set lease2 name=odb
			-> foreign_holder 10.8.0.2 pool1
			says odb; it was called odb when it was given that, and a reservation stays with the name: remove web
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
			says not with 10.8.0.8, which is reserved for web and which no container has: start web again with it
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

// TestStrayEvents: a container on another's reserved address, and the owner on another address, have one event each, in
// looks and checks. A new event needs a new lease.
func TestStrayEvents(t *testing.T) {
	tn := newTown(t)
	n := tn.leaseOf(addr("10.8.0.1")).Network
	tn.edit(&ipam.AddReservation{Network: n, Owner: "odb", Wishes: []ipam.Wish{{Address: addr("10.8.0.30")}}})
	stranger := func(name string) {
		tn.number++
		tn.appear(name, "front", tn.lease("front", macN(tn.number), addr("10.8.0.30")))
	}
	told := func(want ...string) {
		t.Helper()
		events, err := tn.service.Events(t.Context(), ipam.EventFilter{})
		must(t, err)
		var got []string
		for _, e := range events {
			if e.Verb == ipam.ForeignHolderTold || e.Verb == ipam.OwnerElsewhereTold {
				if e.Lease != tn.leaseOf(e.Address).ID && e.Name != "web" || e.Actor != "check" {
					t.Errorf("told is %+v", e)
				}
				got = append(got, e.Verb.String()+" "+e.Address.String()+" "+e.Name+": "+e.Detail)
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("told is\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	}
	stranger("web")
	tn.settle(time.Second)
	must(t, tn.w.look(t.Context()))
	foreign := "lease.foreign_holder 10.8.0.30 web: reserved for odb"
	told(foreign)
	a := tn.run("odb", "front")
	tn.settle(time.Second)
	wantTold(t, tn.check(ipam.CheckRequest{Repair: true}), "foreign_holder 10.8.0.30", "owner_elsewhere "+a.String())
	elsewhere := "lease.owner_elsewhere " + a.String() + " odb: 10.8.0.30 is reserved for odb, and web has it"
	told(foreign, elsewhere)
	for range 2 {
		must(t, tn.w.look(t.Context()))
		tn.check(ipam.CheckRequest{})
	}
	told(foreign, elsewhere)
	tn.vanish("web")
	tn.release("front", addr("10.8.0.30"))
	tn.settle(time.Second)
	wantTold(t, tn.check(ipam.CheckRequest{}), "owner_elsewhere "+a.String())
	stranger("other")
	tn.settle(time.Second)
	must(t, tn.w.look(t.Context()))
	told(foreign, elsewhere, "lease.foreign_holder 10.8.0.30 other: reserved for odb")
}

// TestAstray: an owner on another address, whose own is free, is reported to be put back. With an engine that sends
// names it is not, because it got the address it should have.
func TestAstray(t *testing.T) {
	for version, want := range map[string]int{"20.10.24": 1, "28.5.1": 1, "29.0.0": 0} {
		t.Run(version, func(t *testing.T) {
			h, _ := newPushed(t)
			var told []Astray
			w := h.witness(nil, func(cfg *Config) { cfg.Astray = func(all []Astray) { told = all } })
			h.view.Version = version
			n := h.leaseOf(addr("10.8.0.1"))
			h.edit(&ipam.AddReservation{Network: n.Network, Owner: "odb",
				Wishes: []ipam.Wish{{Address: addr("10.8.0.30")}}})
			h.appear("web", "front", h.lease("front", macN(99), addr("10.8.0.30")))
			a := h.run("odb", "front")
			h.clock.wait(time.Second)
			h.show(t, w)
			if len(told) > 0 {
				t.Fatalf("web has it, and told is %+v", told)
			}
			h.vanish("web")
			h.release("front", addr("10.8.0.30"))
			h.clock.wait(time.Second)
			h.show(t, w)
			if len(told) != want {
				t.Fatalf("told is %+v", told)
			}
			for _, one := range told {
				if one.Container != "odb" || one.Has != a || one.Home != addr("10.8.0.30") || !one.Reserved ||
					one.Planned != n.NetworkID || one.Taken != "" {
					t.Errorf("told is %+v", one)
				}
			}
		})
	}
}

// TestAstrayAfterBoot: the check after an engine's start reports containers on other addresses, because no event may
// follow.
func TestAstrayAfterBoot(t *testing.T) {
	tn := newTown(t)
	n := tn.leaseOf(addr("10.8.0.1"))
	tn.edit(&ipam.AddReservation{Network: n.Network, Owner: "odb", Wishes: []ipam.Wish{{Address: addr("10.8.0.30")}}})
	tn.run("odb", "front")
	tn.settle(time.Second)
	told := make(chan []Astray, 1)
	tn.live(func(cfg *Config) {
		cfg.Every = time.Hour
		cfg.Astray = func(all []Astray) { told <- all }
	})
	if all := <-told; len(all) != 1 || all[0].Container != "odb" || all[0].Home != addr("10.8.0.30") {
		t.Errorf("told is %+v", all)
	}
}
