package elastic_test

import (
	"context"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"berth/internal/ipam"
)

// engine is one that says of containers what a test says.
type engine struct {
	mu      sync.Mutex
	holders map[string]ipam.Holder // by the container's name; of others it says that they run and publish nothing
	changed chan struct{}
}

func newEngine() *engine {
	return &engine{holders: map[string]ipam.Holder{}, changed: make(chan struct{}, 1)}
}

// says has the engine say something of a container.
func (e *engine) says(name string, h ipam.Holder) {
	e.mu.Lock()
	e.holders[name] = h
	e.mu.Unlock()
	select {
	case e.changed <- struct{}{}:
	default:
	}
}

func (e *engine) holder() func(ipam.LeaseRef, string, time.Time) ipam.Holder {
	if e == nil {
		return nil
	}
	return func(_ ipam.LeaseRef, name string, _ time.Time) ipam.Holder {
		e.mu.Lock()
		defer e.mu.Unlock()
		if h, there := e.holders[name]; there {
			return h
		}
		return ipam.Holder{Known: true, PortsKnown: true}
	}
}

func (e *engine) watch() func() (<-chan struct{}, func()) {
	if e == nil {
		return nil
	}
	return func() (<-chan struct{}, func()) { return e.changed, func() {} }
}

const (
	systemFirst  = "198.51.100.1"
	systemSecond = "198.51.100.2"
)

// beginAuto is begin with net1 on auto, two system addresses, and a keeper that runs until the end of the test.
func beginAuto(t *testing.T) *bench {
	b := begin(t)
	b.engine = newEngine()
	b.again(false)
	b.edit(&ipam.AddElasticRange{Range: rangeAt(t, systemFirst+"+2"), Host: "h1"})
	b.mode("auto")
	b.keep()
	return b
}

func rangeAt(t testing.TB, text string) (r ipam.Range) {
	t.Helper()
	if err := r.UnmarshalText([]byte(text)); err != nil {
		t.Fatal(err)
	}
	return r
}

func (b *bench) mode(mode string) {
	b.t.Helper()
	b.edit(&ipam.ModifyNetwork{Network: "net1", Elastic: &mode})
}

// keep runs a keeper until end is called, at the latest at the end of the test.
func (b *bench) keep() (end func()) {
	ctx, cancel := context.WithCancel(b.t.Context())
	ended := make(chan struct{})
	go func() { defer close(ended); b.KeepSystem(ctx, func(err error) { b.t.Error(err) }) }()
	end = sync.OnceFunc(func() { cancel(); <-ended })
	b.t.Cleanup(end)
	return end
}

// system is who has which system address now, such as "web 198.51.100.1".
func (b *bench) system() (all []string) {
	b.t.Helper()
	infos, err := b.Elastics(b.t.Context(), "", netip.Addr{}, 0)
	if err != nil {
		b.t.Fatal(err)
	}
	for _, one := range infos {
		if one.Kind == ipam.KindSystem {
			all = append(all, strings.TrimSpace(one.Instance+" "+one.Address.String()))
		}
	}
	slices.Sort(all)
	return all
}

// soon waits for what stands in system.
func (b *bench) soon(when string, want ...string) {
	b.t.Helper()
	deadline := time.Now().Add(20 * time.Second)
	for !slices.Equal(b.system(), want) {
		if time.Now().After(deadline) {
			b.t.Fatalf("%s: the system addresses are %q, want %q", when, b.system(), want)
		}
		time.Sleep(5 * time.Millisecond)
	}
	b.consistent()
}

// TestSystem: a container on a network with the mode auto has one of its host's addresses as long as it runs, the
// lowest free one, and an edge is told of it (CS-7, CS-8). Where none is free it has none, until one is.
func TestSystem(t *testing.T) {
	b := beginAuto(t)
	web := b.start("web")
	b.soon("a start", "web "+systemFirst)
	got := b.show(systemFirst)
	if got.Kind != ipam.KindSystem || got.Account != ipam.DefaultAccount || !got.Associated || got.Guest != web ||
		got.HostRange != "h1" {
		t.Errorf("it is shown as %+v", got)
	}
	if set := b.wanted().Set; len(set) != 1 || set[0].Elastic != addr(systemFirst) || set[0].Guest != web ||
		set[0].Staged || set[0].EgressOnly {
		t.Errorf("an edge is told %+v", set)
	}
	b.start("db")
	b.soon("a second one", "db "+systemSecond, "web "+systemFirst)
	job := b.start("job")
	gaps, err := b.SystemGaps(t.Context())
	if err != nil || len(gaps) != 1 || gaps[0].Instance != "job" || gaps[0].Guest != job || gaps[0].Published != nil {
		t.Errorf("of the third one, for which there is none, it is said: %+v %v", gaps, err)
	}
	b.stop(web)
	b.soon("a stop, whose address another one waited for", "db "+systemSecond, "job "+systemFirst)
	b.stop(job)
	b.soon("another stop", "db "+systemSecond)
	if got := b.show(systemFirst); got.State != ipam.ElasticFree {
		t.Errorf("what no edge had is %s after the stop", got.State)
	}
}

// TestSystemGivesWay: an elastic address, or one of the host, takes the place of the system address and frees it in the
// same transaction; its end gives a system address again (CS-7). Under auto nothing is mapped to who has none (CS-15).
func TestSystemGivesWay(t *testing.T) {
	b := beginAuto(t)
	b.reserve("later", "10.20.0.9")
	b.refused(&ipam.AssociateElastic{Address: addr(elastic), Instance: "later"}, ipam.LacksSystemAddress, "later", "auto",
		"does not run")
	b.start("web")
	b.soon("a start", "web "+systemFirst)
	out := b.edit(&ipam.AssociateElastic{Address: addr(elastic), Instance: "web"})
	var verbs []string
	for _, e := range out.Changes {
		verbs = append(verbs, e.Verb.String()+" "+e.Address.String())
	}
	if want := []string{"elastic.disassociate " + systemFirst, "elastic.release " + systemFirst,
		"elastic.associate " + elastic}; !slices.Equal(verbs, want) {
		t.Errorf("the association does %q, want %q", verbs, want)
	}
	b.soon("an association")
	b.edit(&ipam.AssociateElastic{Address: addr(elastic), Instance: "web", EgressOnly: true})
	b.refused(&ipam.AssociateElastic{Address: addr(next), Instance: "web"}, ipam.GuestAssociated, elastic)
	b.start("db")
	b.soon("another start", "db "+systemFirst)
	b.edit(&ipam.AssociateElastic{Address: addr(elastic), Instance: "db", Move: true})
	b.soon("a move", "web "+systemFirst)
	b.edit(&ipam.DisassociateElastic{Address: addr(elastic)})
	b.soon("a disassociation", "db "+systemSecond, "web "+systemFirst)
	b.edit(&ipam.AddElasticRange{Range: rangeAt(t, "198.51.100.9"), Host: "h1"})
	b.edit(&ipam.AllocateElastic{Host: "h1"})
	b.edit(&ipam.AssociateElastic{Address: addr("198.51.100.9"), Instance: "web"})
	b.soon("an address of the host", "db "+systemSecond)
}

// TestSystemByHand: a system address is neither disassociated, nor released, nor associated, nor allocated by hand
// (CS-7), and it counts in no quota.
func TestSystemByHand(t *testing.T) {
	b := beginAuto(t)
	none := 0
	b.edit(&ipam.CreateAccount{Account: "shop", Owners: []string{"web"}, Quota: &none})
	b.start("web")
	b.soon("a start", "web "+systemFirst)
	if got := b.show(systemFirst); got.Account != "shop" {
		t.Errorf("it is %s's", got.Account)
	}
	at := addr(systemFirst)
	b.refused(&ipam.DisassociateElastic{Address: at}, ipam.IsSystemAddress, systemFirst, "web")
	b.refused(&ipam.ReleaseElastic{Address: at}, ipam.IsSystemAddress, systemFirst, "web")
	b.refused(&ipam.AssociateElastic{Address: at, Instance: "web", EgressOnly: true}, ipam.IsSystemAddress, systemFirst)
	b.refused(&ipam.AllocateElastic{Address: at}, ipam.AddressAllocated, "shop")
	b.refused(&ipam.RemoveElasticRange{Range: rangeAt(t, systemFirst+"+2")}, ipam.ElasticRangeInUse, systemFirst)
	b.edit(&ipam.RemoveAccount{Account: "shop"})
	deadline := time.Now().Add(20 * time.Second)
	for b.show(systemFirst).Account != ipam.DefaultAccount {
		if time.Now().After(deadline) {
			t.Fatalf("after the end of its account it is %s's", b.show(systemFirst).Account)
		}
		time.Sleep(5 * time.Millisecond)
	}
	b.soon("the end of its account", "web "+systemFirst)
	b.refused(&ipam.AllocateElastic{Address: at, ReleaseOn: "destroy"}, ipam.IsSystemAddress, systemFirst, "web")
}

// TestSystemPublishes: a container that publishes ports gets none, and one that is found to publish gives its back
// (CS-13); of it there is a gap. One of which nobody tells yet waits.
func TestSystemPublishes(t *testing.T) {
	b := beginAuto(t)
	b.engine.says("shop", ipam.Holder{Known: true})
	shop := b.start("shop")
	b.start("web")
	b.soon("one of which nobody tells yet, and another one", "web "+systemFirst)
	b.engine.says("shop", ipam.Holder{Known: true, PortsKnown: true, Published: []string{"8080/tcp"}})
	b.engine.says("web", ipam.Holder{Known: true, PortsKnown: true, Published: []string{"80/tcp"}})
	b.soon("both publish")
	gaps, err := b.SystemGaps(t.Context())
	if err != nil || len(gaps) != 2 || gaps[0].Guest != shop || !slices.Equal(gaps[0].Published, []string{"8080/tcp"}) {
		t.Errorf("of those that publish it is said: %+v %v", gaps, err)
	}
}

// TestSystemEnds: the word of the engine that a container died takes its system address back, also while its lease is
// there still, as does another mode of the network (CS-8, CS-16).
func TestSystemEnds(t *testing.T) {
	b := beginAuto(t)
	b.start("web")
	b.soon("a start", "web "+systemFirst)
	b.engine.says("web", ipam.Holder{Known: true, Ended: true, PortsKnown: true})
	b.soon("its end")
	b.engine.says("web", ipam.Holder{Known: true, PortsKnown: true})
	for _, mode := range []string{"on", "off"} {
		b.soon("auto", "web "+systemFirst)
		b.mode(mode)
		b.soon(mode)
		b.mode("auto")
	}
	b.soon("auto again", "web "+systemFirst)
	if err := b.ReleasePool(t.Context(), b.pool); err != nil {
		t.Fatal(err)
	}
	b.edit(&ipam.RemoveNetwork{Network: "net1", Force: true})
	b.soon("its network was removed")
}

// TestSystemLater: what happened while nobody kept system addresses is put right when the daemon begins (CS-8); with
// elastic addresses turned off nothing of them changes (CS-11).
func TestSystemLater(t *testing.T) {
	b := begin(t)
	b.engine = newEngine()
	b.again(false)
	b.edit(&ipam.AddElasticRange{Range: rangeAt(t, systemFirst+"+2"), Host: "h1"})
	b.mode("auto")
	web := b.start("web")
	end := b.keep()
	b.soon("it was started before", "web "+systemFirst)
	end()
	b.stop(web)
	b.start("db")
	b.again(true)
	b.keep()()
	if set := b.wanted().Set; len(set) != 0 {
		t.Errorf("turned off, an edge is told %+v", set)
	}
	b.soon("turned off nothing changes", "web "+systemFirst)
	b.again(false)
	end = b.keep()
	defer end()
	b.soon("begun again", "db "+systemFirst)
}

// TestSystemRestart: a container that starts again before the edge has let go of its system address has that again, and
// nobody of another account has it (CS-8).
func TestSystemRestart(t *testing.T) {
	b := beginAuto(t)
	b.edit(&ipam.CreateAccount{Account: "shop", Owners: []string{"shop"}})
	web := b.start("web")
	b.soon("a start", "web "+systemFirst)
	b.report(ipam.EdgeReport{Applied: []ipam.EdgeApplied{{Address: addr(systemFirst), Guest: web,
		Association: b.wanted().Set[0].Association}}})
	b.stop(web)
	b.soon("a stop", systemFirst)
	if got := b.show(systemFirst); got.State != ipam.ElasticReleasing || got.Kind != ipam.KindSystem {
		t.Errorf("what the edge has still is %+v", got)
	}
	shop := b.start("shop")
	b.soon("a start of another account's", systemFirst, "shop "+systemSecond)
	b.start("web")
	b.soon("another start", "shop "+systemSecond, "web "+systemFirst)
	b.stop(shop)
}

// TestDeclare: what a Compose project says of its services is allocated to their account and associated, changes
// nothing when it is said again, and is disassociated when it is said no more; what a person has associated stays.
func TestDeclare(t *testing.T) {
	b := begin(t)
	b.edit(&ipam.CreateAccount{Account: "shop", Owners: []string{"shop/*"}})
	b.reserve("shop/web/1", "10.20.0.9")
	b.reserve("shop/web/2", "10.20.0.10")
	b.reserve("shop/db/1", "10.20.0.11")
	b.edit(&ipam.AllocateElastic{Account: "shop"}) // .12
	b.edit(&ipam.AssociateElastic{Address: addr("203.0.113.12"), Instance: "shop/db/1"})
	says := func(instances ...string) (got []string, changes int) {
		t.Helper()
		end := &ipam.EndDeclaredElastic{Project: "shop"}
		edits := []ipam.Edit{end}
		for _, one := range instances {
			end.But = append(end.But, ipam.DeclaredElastic{Instance: one})
			edits = append(edits, &ipam.DeclareElastic{Project: "shop", Instance: one, EgressOnly: true})
		}
		out, err := b.Edit(t.Context(), ipam.EditOptions{}, edits...)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range out.Results[1:] {
			got = append(got, r.Addresses[0].String())
		}
		b.consistent()
		return got, len(out.Changes)
	}
	if got, _ := says("shop/web/1"); !slices.Equal(got, []string{"203.0.113.13"}) {
		t.Errorf("it gives %q", got)
	}
	if got := b.show("203.0.113.13"); got.Account != "shop" || got.Instance != "shop/web/1" || !got.EgressOnly {
		t.Errorf("it is shown as %+v", got)
	}
	if got, changes := says("shop/web/1"); changes != 0 || got[0] != "203.0.113.13" {
		t.Errorf("said again it gives %q with %d changes", got, changes)
	}
	b.refused(&ipam.DeclareElastic{Project: "shop", Instance: "shop/web/2"}, ipam.NoElasticFree)
	b.refused(&ipam.DeclareElastic{Project: "shop", Instance: "shop/web/2", Address: addr(elastic)}, ipam.OtherAccount,
		"default")
	b.refused(&ipam.DeclareElastic{Project: "shop", Instance: "shop/web/2", Address: addr("203.0.113.13")},
		ipam.AddressAssociated, "shop/web/1")
	says()
	if got := b.show("203.0.113.13"); got.Associated || got.Account != "shop" {
		t.Errorf("said no more it is shown as %+v", got)
	}
	if got := b.show("203.0.113.12"); got.Instance != "shop/db/1" {
		t.Errorf("what a person has associated is shown as %+v", got)
	}
}
