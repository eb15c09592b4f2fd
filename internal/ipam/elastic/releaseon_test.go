package elastic_test

import (
	"testing"
	"time"

	"berth/internal/ipam"
	room "berth/internal/ipam/elastic"
)

// restart is a moment less than what a container may be away for.
const restart = 2*time.Minute - time.Second

// departures is a bench whose address elastic is released on something, and whoever does that.
type departures struct {
	*bench
	releases *room.Releases
}

func beginDepartures(t *testing.T, on string) *departures {
	b := begin(t)
	b.there = map[string]bool{}
	b.freeze()
	b.edit(&ipam.AllocateElastic{Address: addr(elastic), ReleaseOn: on})
	return &departures{b, room.NewReleases(b.Ledger)}
}

// look has some time pass, and then looks; before and after it, since what is seen first is counted from then on.
func (d *departures) look(pass time.Duration) {
	d.t.Helper()
	for _, long := range []time.Duration{0, pass} {
		d.passes(long)
		if err := d.releases.Look(d.t.Context()); err != nil {
			d.t.Fatal(err)
		}
		d.consistent()
	}
}

// state wants the address to be associated, and else to be free.
func (d *departures) state(when string, associated bool) {
	d.t.Helper()
	want := ipam.ElasticFree
	if associated {
		want = ipam.ElasticAllocated
	}
	if got := d.show(elastic); got.Associated != associated || got.State != want {
		d.t.Errorf("%s, it is %s, associated: %v", when, got.State, got.Associated)
	}
}

// TestReleaseOn: with destroy an address is released when its container was removed, with stop when it has stopped, and
// never otherwise; not before the container has run, and not by a restart or by a container that takes its place,
// reserved or not (CS-17). A start of the daemon counts anew.
func TestReleaseOn(t *testing.T) {
	for _, on := range []string{"never", "destroy", "stop"} {
		for _, reserved := range []bool{true, false} {
			name := on
			if reserved {
				name += " of a reserved address"
			}
			t.Run(name, func(t *testing.T) {
				d := beginDepartures(t, on)
				if got := d.show(elastic).ReleaseOn; got != on {
					t.Errorf("it is shown as released on %s", got)
				}
				if reserved {
					d.reserve("web", "10.20.0.9")
					d.edit(&ipam.AssociateElastic{Address: addr(elastic), Instance: "web"})
					d.look(time.Hour)
					d.state("before the first start", true)
				}
				ip := d.start("web")
				d.there["web"] = true
				d.edit(&ipam.AssociateElastic{Address: addr(elastic), Instance: "web"})
				d.look(time.Hour)
				d.stop(ip)
				d.there["web"] = false
				d.look(restart)
				ip = d.start("web")
				d.there["web"] = true
				d.look(time.Hour)
				d.state("recreated", true)

				d.stop(ip)
				d.look(restart)
				d.again(false)
				d.releases = room.NewReleases(d.Ledger)
				d.look(restart)
				d.state("the daemon was restarted after the stop", true)
				d.look(time.Second)
				d.state("stopped for two minutes", on != "stop")
				if on == "stop" {
					return
				}
				d.there["web"] = false
				d.look(restart)
				d.state("just removed", true)
				d.look(time.Second)
				d.state("removed for two minutes", on != "destroy")
			})
		}
	}
}

// TestReleaseOnUnheard: while the engine cannot be heard nothing is released, and two minutes without a break are meant.
func TestReleaseOnUnheard(t *testing.T) {
	for _, on := range []string{"destroy", "stop"} {
		t.Run(on, func(t *testing.T) {
			d := beginDepartures(t, on)
			ip := d.start("web")
			d.edit(&ipam.AssociateElastic{Address: addr(elastic), Instance: "web"})
			d.look(time.Hour)
			d.stop(ip)
			d.deaf = true
			d.look(time.Hour)
			d.state("unheard", true)
			d.deaf = false
			d.look(restart)
			d.deaf = true
			d.look(time.Second)
			d.deaf = false
			d.look(restart)
			d.state("heard for less", true)
			d.look(time.Second)
			d.state("heard for two minutes", false)
		})
	}
}

// TestReleaseOnEnds: it goes with its owner and with its network at once, and not where a person ends the association.
func TestReleaseOnEnds(t *testing.T) {
	for what, c := range map[string]struct {
		end  func(d *departures)
		want ipam.ElasticState
	}{
		"owner":   {func(d *departures) { d.edit(&ipam.ReleaseOwner{Owner: "web"}) }, ipam.ElasticFree},
		"network": {func(d *departures) { d.removeNetwork() }, ipam.ElasticFree},
		"by hand": {func(d *departures) { d.edit(&ipam.DisassociateElastic{Address: addr(elastic)}) }, ipam.ElasticAllocated},
	} {
		t.Run(what, func(t *testing.T) {
			d := beginDepartures(t, "destroy")
			d.reserve("web", "10.20.0.9")
			d.edit(&ipam.AssociateElastic{Address: addr(elastic), Instance: "web"})
			c.end(d)
			if got := d.show(elastic); got.State != c.want || got.Associated {
				t.Errorf("it is %+v", got)
			}
		})
	}
}

func (d *departures) removeNetwork() {
	if err := d.ReleasePool(d.t.Context(), d.pool); err != nil {
		d.t.Fatal(err)
	}
	d.edit(&ipam.RemoveNetwork{Network: "net1", Force: true})
}

// TestReleaseOnSaid: asked for again, an allocation changes it where that is said.
func TestReleaseOnSaid(t *testing.T) {
	b := begin(t)
	b.refused(&ipam.AllocateElastic{Address: addr("203.0.113.12"), ReleaseOn: "reboot"}, "", "destroy", "never", "reboot")
	b.edit(&ipam.AllocateElastic{Address: addr("203.0.113.12"), ReleaseOn: "stop"})
	for _, c := range []struct{ say, want string }{{"", "stop"}, {"destroy", "destroy"}, {"", "destroy"}, {"never", "never"}} {
		b.edit(&ipam.AllocateElastic{Address: addr("203.0.113.12"), ReleaseOn: c.say})
		if got := b.show("203.0.113.12").ReleaseOn; got != c.want {
			t.Errorf("after %q it is released on %s", c.say, got)
		}
	}
}

// TestReleaseOnHosts: the host on which the container ran last releases, and no other one, whose engine does not know it.
func TestReleaseOnHosts(t *testing.T) {
	for _, on := range []string{"destroy", "stop"} {
		t.Run(on, func(t *testing.T) {
			p := pair(t)
			p.hosts[0].mode("on")
			p.hosts[0].edit(&ipam.AllocateElastic{Address: addr(elastic), ReleaseOn: on})
			var all [2]*departures
			for i, b := range p.hosts {
				b.there = map[string]bool{}
				b.freeze()
				all[i] = &departures{b, room.NewReleases(b.Ledger)}
			}
			first, second := all[0], all[1]
			ip := first.start("web")
			first.edit(&ipam.AssociateElastic{Address: addr(elastic), Instance: "web"})
			look := func(d *departures, pass time.Duration) {
				t.Helper()
				if err := d.Ledger.CatchUp(t.Context()); err != nil {
					t.Fatal(err)
				}
				d.look(pass)
			}
			look(first, time.Hour)
			first.stop(ip)
			look(second, time.Hour)
			second.state("stopped on the other host", true)
			ip = second.start("web")
			look(second, time.Hour)
			look(first, time.Hour)
			second.stop(ip)
			look(first, time.Hour)
			first.state("it has moved, and stopped there", true)
			look(second, 2*time.Minute)
			second.state("stopped here", false)
		})
	}
}
