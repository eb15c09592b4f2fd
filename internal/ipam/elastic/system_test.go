package elastic_test

import (
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"berth/internal/ipam"
)

// engine is an engine that reports what a test sets.
type engine struct {
	mu      sync.Mutex
	holders map[string]ipam.Holder // by container name; other containers run and publish nothing
	changed chan struct{}
}

func newEngine() *engine {
	return &engine{holders: map[string]ipam.Holder{}, changed: make(chan struct{}, 1)}
}

// says makes the engine report something about a container.
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

// auto sets net1 to auto, with two system addresses and a keeper.
const auto = `
	engine
	range S1+2 host=h1
	elastic net1 auto
	keep
`

// system lists the current system addresses by container, such as "web 198.51.100.1".
func (b *bench) system() (all []string) {
	b.t.Helper()
	infos, err := b.Elastics(b.t.Context(), "", netip.Addr{}, 0)
	must(b, err)
	for _, one := range infos {
		if one.Kind == ipam.KindSystem {
			all = append(all, strings.TrimSpace(one.Instance+" "+one.Address.String()))
		}
	}
	slices.Sort(all)
	return all
}

// TestSystem: while a container on a network with the mode auto runs, it has the lowest free address of its
// host, and the edge learns of it (CS-7, CS-8). If none is free, the container waits for one.
func TestSystem(t *testing.T) {
	begins(t, auto+`
		run web -> G1
		soon system -> web S1
		show S1 -> allocated default web system
		guest S1 -> G1 0
		told -> S1=G1
		run db
		soon system -> db S2; web S1
		run job -> G3
		gaps -> job G3
		stop web
		soon system -> db S2; job S1
		stop job
		soon system -> db S2
		# no edge had it
		show S1 -> free
	`)
}

// TestSystemGivesWay: an elastic address, or one of the host, replaces the system address and frees it in the
// same transaction. When it ends, the container gets a system address again (CS-7). Under auto no address is
// mapped to a container without a system address (CS-15).
func TestSystemGivesWay(t *testing.T) {
	begins(t, auto+`
		reserve net1 later G9
		to E0 later ! NoSystemAddress; later; auto; is not running
		run web
		soon system -> web S1
		to E0 web
		changes -> elastic.disassociate S1; elastic.release S1; elastic.associate E0
		soon system ->
		to E0 web egress
		to E1 web ! GuestAssociated; E0
		run db
		soon system -> db S1
		to E0 db move
		soon system -> web S1
		off E0
		soon system -> db S2; web S1
		range S9 host=h1
		allocate host=h1
		to S9 web
		soon system -> db S2
	`)
}

// TestSystemByHand: a system address cannot be disassociated, released, associated or allocated by hand (CS-7),
// and it counts in no quota.
func TestSystemByHand(t *testing.T) {
	begins(t, auto+`
		account shop web quota=0
		run web
		soon system -> web S1
		show S1 -> allocated shop web system
		off S1 ! SystemAddress; S1; web
		free S1 ! SystemAddress; S1; web
		to S1 web egress ! SystemAddress; S1
		allocate S1 ! AddressAllocated; shop
		range.rm S1+2 ! RangeInUse; S1
		account.rm shop
		soon show S1 -> allocated default web system
		soon system -> web S1
		allocate S1 on=destroy ! SystemAddress; S1; web
	`)
}

// TestSystemPublishes: a container that publishes ports gets no system address, and one that is found to publish
// loses it (CS-13); the gaps show both. A container whose ports are unknown yet waits.
func TestSystemPublishes(t *testing.T) {
	begins(t, auto+`
		says shop unknown
		run shop -> G1
		run web -> G2
		soon system -> web S1
		says shop 8080/tcp
		says web 80/tcp
		soon system ->
		gaps -> shop G1 8080/tcp; web G2 80/tcp
	`)
}

// TestSystemEnds: if the engine reports that a container died, its system address is taken back, even while its
// lease still exists. Another mode of the network does the same (CS-8, CS-16).
func TestSystemEnds(t *testing.T) {
	begins(t, auto+`
		run web
		soon system -> web S1
		says web ended
		soon system ->
		says web
		soon system -> web S1
		elastic net1 on
		soon system ->
		elastic net1 auto
		soon system -> web S1
		elastic net1 off
		soon system ->
		elastic net1 auto
		soon system -> web S1
		detach
		network.rm net1 force
		soon system ->
	`)
}

// TestSystemLater: what happened while no keeper ran is corrected when the daemon starts (CS-8). With elastic
// addresses off, system addresses do not change (CS-11).
func TestSystemLater(t *testing.T) {
	begins(t, `
		engine
		range S1+2 host=h1
		elastic net1 auto
		run web
		keep
		soon system -> web S1
		rest
		stop web
		run db
		restart off
		keep
		rest
		told ->
		system -> web S1
		restart
		keep
		soon system -> db S1
		rest
	`)
}

// TestSystemRestart: a container that restarts before the edge has let go of its system address gets that
// address again, and no other account's container has it (CS-8).
func TestSystemRestart(t *testing.T) {
	begins(t, auto+`
		account shop shop
		run web
		soon system -> web S1
		applies
		stop web
		soon system -> S1
		show S1 -> releasing default system
		run shop
		soon system -> S1; shop S2
		run web
		soon system -> shop S2; web S1
		stop shop
	`)
}

// TestDeclare: what a Compose project declares for its services is allocated to their account and associated.
// Declaring it again changes nothing, and what is no longer declared is disassociated. A person's association
// stays.
func TestDeclare(t *testing.T) {
	begins(t, `
		account shop shop/*
		reserve net1 shop/web/1 G9
		reserve net1 shop/web/2 G10
		reserve net1 shop/db/1 G11
		allocate account=shop -> E2
		to E2 shop/db/1
		declare shop/web/1 -> E3 2
		show E3 -> allocated shop shop/web/1 egress
		declare shop/web/1 -> E3 0
		declares shop/web/2 ! NotEnoughCapacity
		declares shop/web/2 at=E0 ! OtherAccount; default
		declares shop/web/2 at=E3 ! AddressAssociated; shop/web/1
		declare
		show E3 -> allocated shop
		show E2 -> allocated shop shop/db/1
	`)
}
