package docker

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"berth/internal/ipam"
	"berth/store"
	"berth/store/mem"
)

// backup returns a copy of the state as it is now.
func (a *away) backup() *mem.Store {
	a.t.Helper()
	var all []store.Record
	must(a.t, a.store.View(a.t.Context(), func(tx store.Tx) error {
		for rec, err := range tx.Scan(store.Range{To: []byte{0xff}}) {
			if err != nil {
				return err
			}
			all = append(all, store.Record{Key: slices.Clone(rec.Key), Value: slices.Clone(rec.Value)})
		}
		return nil
	}))
	copied := mem.New()
	must(a.t, copied.Update(a.t.Context(), func(tx store.Tx) error {
		for _, rec := range all {
			if err := tx.Put(rec.Key, rec.Value); err != nil {
				return err
			}
		}
		return nil
	}))
	return copied
}

// run creates and starts containers. The first refusal ends it.
func (a *away) runAll(names ...string) (all []*box, err error) {
	for _, name := range names {
		b := a.create(name, netip.Addr{})
		if err := a.start(b); err != nil {
			return all, err
		}
		all = append(all, b)
		a.pass(time.Second)
	}
	return all, nil
}

// doubled lists the addresses with two running containers.
func (a *away) doubled() (all []string) {
	has := map[netip.Addr]string{}
	for _, b := range a.all {
		if other := has[b.has]; b.has.IsValid() && other != "" {
			all = append(all, fmt.Sprintf("%s: %s and %s", b.has, other, b.name))
		}
		has[b.has] = b.name
	}
	return all
}

// named returns the lease's name of an address; empty: nobody holds it.
func (a *away) holder(at netip.Addr) string {
	if l := a.leaseOf(at); l.State == "held" {
		return l.Name
	}
	return ""
}

// restored is a Berth whose state is from before the containers a0 to a4 were started.
func restored(t *testing.T, names bool) (a *away, before []*box) {
	a = newAway(t, names)
	old := a.backup()
	before, err := a.runAll("a0", "a1", "a2", "a3", "a4")
	must(t, err)
	a.leave()
	a.store = old
	a.back()
	return a, before
}

// TestRestoredState: after an older state was restored, an address of a running container is given to nobody, also
// before the engine has answered. Then what runs is leased to what runs.
func TestRestoredState(t *testing.T) {
	for _, names := range []bool{true, false} {
		for _, answered := range []bool{true, false} {
			t.Run(fmt.Sprintf("names %v/answered %v", names, answered), func(t *testing.T) {
				a, before := restored(t, names)
				if answered {
					a.answers()
				}
				thief := a.create("thief", before[1].has)
				if err := a.start(thief); err == nil || !strings.Contains(err.Error(), "a1") {
					t.Errorf("the address of a1 by --ip: %v", err)
				}
				for i := range 3 {
					b := a.create(fmt.Sprintf("n%d", i), netip.Addr{})
					must(t, a.start(b))
				}
				if !answered {
					a.answers()
				}
				a.pass(time.Second)
				_, err := a.runAll("n3", "n4")
				must(t, err)
				if all := a.doubled(); len(all) > 0 {
					t.Errorf("two have one address: %v", all)
				}
				a.pass(time.Minute)
				for _, b := range a.all {
					if got := a.holder(b.has); b.has.IsValid() && got != b.name {
						t.Errorf("%s of %s is leased to %q", b.has, b.name, got)
					}
				}
			})
		}
	}
}

// TestRestoredReboot: after a reboot nothing runs, so what was seen before it keeps no address.
func TestRestoredReboot(t *testing.T) {
	a, before := restored(t, true)
	seen, err := openLastSeen(a.w.cfg.Seen, "another boot")
	must(t, err)
	a.roster.before = seen
	b := a.create("new", before[0].has)
	if err := a.start(b); err != nil {
		t.Error(err)
	}
	if !seen.knows(&ipam.EngineView{Engine: "engine", Root: "root"}) || seen.knows(&ipam.EngineView{Engine: "other"}) ||
		seen.knows(&ipam.EngineView{Engine: "engine", Root: "other"}) {
		t.Error("the engine is not known after a reboot")
	}
	if !seen.knows(&ipam.EngineView{Engine: "renamed", Root: "root"}) {
		t.Error("an engine with the same data is not known by another id")
	}
}

// TestViewOfCheck: a daemon without an engine learns from the view of a check what runs. What an earlier daemon saw
// counts no longer.
func TestViewOfCheck(t *testing.T) {
	a := newAway(t, true)
	web := a.create("web", addr("10.8.0.50"))
	must(t, a.start(web))
	a.pass(time.Minute)
	a.leave()
	a.end(web)
	db := a.create("db", addr("10.8.0.50"))
	db.has, db.state = addr("10.8.0.50"), "running"
	a.back()
	if got := a.roster.runs("local", prefix("10.8.0.0/24"), db.has); len(got) != 1 || got[0].Name != "web" {
		t.Errorf("before the check %v runs", got)
	}
	view := a.engineView()
	_, err := a.w.Check(t.Context(), ipam.CheckRequest{View: &view})
	must(t, err)
	if got := a.roster.runs("local", prefix("10.8.0.0/24"), db.has); len(got) != 1 || got[0].Name != "db" {
		t.Errorf("after the check %v runs", got)
	}
}

// TestShownTooLong: an engine shows an endpoint a moment longer than its container has the address. Berth leases
// nothing to it, and gives the address to the next container that asks for it, whatever its name.
func TestShownTooLong(t *testing.T) {
	for _, names := range []bool{true, false} {
		for _, next := range []string{"web", "db"} {
			t.Run(fmt.Sprintf("names %v/%s", names, next), func(t *testing.T) {
				a := newAway(t, names)
				web := a.create("web", addr("10.8.0.50"))
				must(t, a.start(web))
				a.pass(time.Minute)
				a.release("front", web.has)
				a.look()
				a.look()
				if got := a.holder(web.has); got != "" {
					t.Errorf("the released address is leased to %q", got)
				}
				if err := a.start(a.create(next, web.has)); err != nil {
					t.Error(err)
				}
			})
		}
	}
}

// TestReleaseOfDoubled: when one of two containers with one address ends, the address stays the other's.
func TestReleaseOfDoubled(t *testing.T) {
	for _, recordedEnds := range []bool{true, false} {
		for _, reportFirst := range []bool{true, false} {
			t.Run(fmt.Sprintf("recorded %v/report first %v", recordedEnds, reportFirst), func(t *testing.T) {
				a := newAway(t, true)
				both, err := a.runAll("web", "db")
				must(t, err)
				web, db := both[0], both[1]
				a.release("front", db.has)
				db.has = web.has // as an older Berth did after a restore
				a.pass(time.Minute)
				ends, stays := web, db
				if !recordedEnds {
					ends, stays = db, web
				}
				had := ends.has
				ends.has, ends.state = netip.Addr{}, "exited"
				if reportFirst {
					a.hear(eventDie, ends)
				}
				a.release("front", had)
				if !reportFirst {
					a.hear(eventDie, ends)
				}
				third := a.create("third", had)
				if err := a.start(third); err == nil {
					t.Error("the address went to a third, although one runs with it")
				}
				a.pass(2 * time.Minute)
				a.pass(time.Second)
				if got := a.holder(had); got != stays.name {
					t.Errorf("the address of %s is leased to %q", stays.name, got)
				}
				a.end(stays)
				if err := a.start(third); err != nil {
					t.Errorf("the address is refused, although nobody has it: %v", err)
				}
			})
		}
	}
}

// TestOtherEngine: the word of an engine that is not the one of the records ends no lease, and gives no container back
// what another of its name had, until a person accepts that engine.
func TestOtherEngine(t *testing.T) {
	a := newAway(t, true)
	web := a.create("web", addr("10.8.0.50"))
	must(t, a.start(web))
	a.pass(time.Minute)
	other := func(view *ipam.EngineView) *ipam.EngineView { view.Engine, view.Root = "other", "else"; return view }
	a.all = nil
	show := func() {
		a.clock.wait(defaultGrace)
		view := a.engineView()
		must(t, a.w.Show(t.Context(), *other(&view)))
	}
	a.leave()
	a.back()
	a.roster.Hear(&ipam.EngineNews{At: a.clock.Now(), Begins: true})
	for range 3 {
		show()
		r, _, err := a.w.check(t.Context(), ipam.CheckRequest{}, true)
		must(t, err)
		if got := told(&r); !slices.Contains(got, "other_engine invalid Prefix") || r.Repaired > 0 {
			t.Errorf("the check has found %q", got)
		}
	}
	if err := a.start(a.create("web", addr("10.8.0.50"))); err == nil {
		t.Error("another engine's container of the same name got the address")
	}
	a.all = nil
	for range 3 {
		show()
		_, err := a.w.Check(t.Context(), ipam.CheckRequest{Repair: true})
		must(t, err)
	}
	if got := a.holder(addr("10.8.0.50")); got != "" {
		t.Errorf("the lease of %s is left, although a person accepted the engine", got)
	}
}

// TestRemovedNetwork: a Docker network is removed while Berth is away. Another one on its subnet inherits no lease.
func TestRemovedNetwork(t *testing.T) {
	for _, atOnce := range []bool{true, false} {
		t.Run(fmt.Sprintf("at once %v", atOnce), func(t *testing.T) {
			a := newAway(t, true)
			old := a.create("old", addr("10.8.0.50"))
			must(t, a.start(old))
			a.pass(time.Minute)
			a.leave()
			a.remove(old)
			a.vanishNetwork("front")
			a.pass(time.Minute)
			a.back()
			if !atOnce {
				a.answers()
				a.pass(time.Second)
			}
			a.shown["front"] = a.clock.Now()
			a.clock.wait(time.Millisecond)
			a.network("front", "10.8.0.0/24")
			if atOnce { // it was made before the engine was read
				a.pass(time.Minute)
				a.answers()
			}
			a.pass(time.Second)
			if err := a.start(a.create("new", addr("10.8.0.50"))); err != nil {
				t.Error(err)
			}
			all, err := a.service.Attachments(t.Context())
			must(t, err)
			if len(all) != 1 {
				t.Errorf("attachments: %+v", all)
			}
		})
	}
}
