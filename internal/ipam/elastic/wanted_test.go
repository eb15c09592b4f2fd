package elastic_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"berth/internal/ipam"
	room "berth/internal/ipam/elastic"
	"berth/store"
)

// story makes random changes that affect elastic addresses, and ignores refusals.
type story struct {
	*bench
	running []string // names of running containers
	follows string   // the steps so far, for a failure
}

// tries plays the steps of a script, which may be refused.
func (s *story) tries(script string) {
	s.t.Helper()
	for line := range strings.Lines(script) {
		line = short.ReplaceAllStringFunc(strings.TrimSpace(line), long)
		if line == "" {
			continue
		}
		got, err := s.step(strings.Fields(line))
		s.follows += fmt.Sprintf("\n%s: %s: %s %v", s.host, line, got, err)
		if words := strings.Fields(line); words[0] == "run" && err == nil {
			s.running = append(s.running, words[1])
		}
	}
}

// stops stops one of the running containers.
func (s *story) stops(t *rapid.T) {
	if len(s.running) > 0 {
		at := rapid.IntRange(0, len(s.running)-1).Draw(t, "which")
		s.tries("stop " + s.running[at])
		s.running = slices.Delete(s.running, at, at+1)
	}
}

// drawn draws a step, and its words.
func drawn(t *rapid.T, steps string, words map[string][]string) string {
	step := strings.TrimSpace(rapid.SampledFrom(strings.Split(strings.TrimSpace(steps), "\n")).Draw(t, "step"))
	for _, word := range slices.Sorted(maps.Keys(words)) {
		if strings.Contains(step, word) {
			step = strings.ReplaceAll(step, word, rapid.SampledFrom(words[word]).Draw(t, word))
		}
	}
	return strings.ReplaceAll(step, ";", "\n")
}

// trackedSteps are the steps of a story. Repeated steps are more likely.
const trackedSteps = `
	run $NAME
	run - mac=7 ip=$GUEST
	run $NAME mac=7
	stop
	stop
	reserve net1 $NAME $GUEST
	unreserve net1 $NAME
	allocate $ADDR; to $ADDR $NAME move
	allocate $ADDR; to $ADDR $NAME move
	allocate $ADDR; to $ADDR $NAME guest=$GUEST move egress
	off $ADDR; free $ADDR
	account shop shop/*
	account shop shop/*; account.rm shop force
	elastic net1 $MODE
	network.set net1 rule=cron-*=owner:$OWNER
	end $NAME
	subnet net1 10.21.0.0/24
	subnet net1 10.21.0.0/24; subnet.rm net1 10.21.0.0/24
	range 192.0.2.0/28; range.rm 192.0.2.0/28
	$SECOND
	$SECOND; unreserve net2 $NAME; subnet.rm net2 10.30.0.0/24; network.rm net2 force
`

// trackedWords have related names: Compose's forms of one name, a name that a rule gives to another owner, and a
// MAC.
var trackedWords = map[string][]string{
	"$ADDR": {"E0", "E1", "E2", "E3"}, "$GUEST": {"G1", "G2", "G3"}, "$MODE": {"on", "off"},
	"$OWNER": {"timer/*", "job"},
	"$NAME":  {"web", "job", "shop-web-1", "shop_web_1", "cron-7", "timer/7", "02:00:00:00:00:07"},
	"$SECOND": {"network net2 subnet=10.30.0.0/24,pool; elastic net2 on; reserve net2 web 10.30.0.9; " +
		"to E3 web net=net2 move",
		"network net2 subnet=10.30.0.0/24,pool; elastic net2 on; reserve net2 job 10.30.0.9; to E3 job net=net2 move"},
}

// begun returns a story with an owner of each sort, two of them with an elastic address.
func begun(t *testing.T) *story {
	s := &story{bench: begin(t)}
	s.freeze()
	s.plays(`
		reserve net1 web G2
		reserve net1 timer/7 G3
		reserve net1 02:00:00:00:00:07 G4
		to E0 web
	`)
	s.tries(`
		run job
		run shop-web-1
		to E1 shop-web-1
	`)
	return s
}

// agrees waits until the news that an edge got from commits alone equals what all records give.
func (s *story) agrees(t *rapid.T, tracked *room.Followed) {
	want, err := s.Whole(s.t.Context())
	must(s.bench, err)
	for end := time.After(10 * time.Second); ; {
		got, err := tracked.Told(s.t.Context())
		must(s.bench, err)
		if maps.Equal(got, want) {
			return
		}
		select {
		case <-tracked.Woken():
		case <-end:
			t.Fatalf("an edge has been told\n%v\nand the records come to\n%v\nafter%s", got, want, s.follows)
		}
	}
}

// TestTracked: Berth checks only what each commit may have changed, and an edge still gets what all records give.
func TestTracked(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		ctx, cancel := context.WithCancel(t.Context())
		s := begun(t)
		tracked := s.Followed(ctx)
		defer func() { cancel(); tracked.End(); s.Ledger.Store().Close() }()
		for range rapid.IntRange(1, 60).Draw(rt, "steps") {
			if step := drawn(rt, trackedSteps, trackedWords); step == "stop" {
				s.stops(rt)
			} else {
				s.tries(step)
			}
			if rapid.Bool().Draw(rt, "look") {
				s.agrees(rt, tracked)
			}
		}
		s.agrees(rt, tracked)
	})
}

// told describes what an edge has been told, ranges and mappings.
func told(b *bench, tracked *room.Followed) string {
	b.t.Helper()
	got, err := tracked.Told(b.t.Context())
	must(b, err)
	return listed(got, tracked.Ranges())
}

func listed(mappings map[netip.Addr]ipam.EdgeMapping, ranges []ipam.EdgeRange) string {
	text := fmt.Sprintf("%v", ranges)
	for _, one := range slices.SortedFunc(maps.Keys(mappings), netip.Addr.Compare) {
		text += fmt.Sprintf("\n%+v", mappings[one])
	}
	return text
}

// right describes what an edge must be told, from all records at once.
func right(b *bench) string {
	b.t.Helper()
	want, err := b.Whole(b.t.Context())
	must(b, err)
	return listed(want, b.wanted().Ranges)
}

// tracks begins to follow a bench whose moment stands still, and checks everything once.
func tracks(b *bench) *room.Followed {
	b.freeze()
	ctx, cancel := context.WithCancel(b.t.Context())
	tracked := b.Followed(ctx)
	b.t.Cleanup(func() { cancel(); tracked.End() })
	if got, want := told(b, tracked), right(b); got != want {
		b.t.Fatalf("at first an edge is told\n%s\nand not\n%s", got, want)
	}
	return tracked
}

// TestTriggers: each kind of commit that changes what an edge must have notifies the edge. No poll is needed.
func TestTriggers(t *testing.T) {
	for name, c := range map[string]struct{ before, change string }{
		"a lease":    {mapped, "run web"},
		"an address": {mapped, "off E0"},
		"a range":    {mapped, "range S0/28"},
		"a network whose names mean others": {`
			network.set net1 rule=cron-*=owner:timer/*
			run cron-7
			to E0 timer/7
		`, "network.set net1 rule=cron-*=owner:job"},
		"a subnet of another size": {`
			network net2 subnet=10.21.0.0/24,pool
			elastic net2 on
			reserve net2 web
			to E0 web
		`, "subnet.set net2 10.21.0.0/24 cidr=10.21.0.0/25"},
		"an account whose containers are another's": {`
			account shop shop/*
			reserve net1 02:00:00:00:00:07 G30
			to E0 02:00:00:00:00:07
			run shop-cart-1 mac=7
		`, "account.rm shop"},
	} {
		t.Run(name, func(t *testing.T) {
			b := begins(t, c.before)
			tracked := tracks(b)
			before := right(b)
			b.plays(c.change)
			want := right(b)
			if want == before {
				t.Fatal("nothing is to be told")
			}
			for end := time.After(10 * time.Second); told(b, tracked) != want; {
				select {
				case <-tracked.Woken():
				case <-end:
					t.Fatalf("an edge has been told\n%s\nand the records come to\n%s", told(b, tracked), want)
				}
			}
		})
	}
}

// TestBearing: a lease, a reservation, a network and a subnet without an association cause no computation.
func TestBearing(t *testing.T) {
	b := begins(t, mapped)
	followed := tracks(b)
	for _, one := range []struct {
		step  string
		bears bool
	}{
		{"run other", false},
		{"network net2 subnet=10.21.0.0/24,pool", false},
		{"reserve net2 web", false},
		{"subnet net2 10.22.0.0/24", false},
		{"run web", true},
	} {
		told(b, followed)
		b.plays(one.step)
		bear := 0
		for noted, end := 0, time.After(10*time.Second); noted == 0 || one.bears && bear == 0; {
			select {
			case <-followed.Woken():
			case <-end:
				t.Fatalf("%s: of %d commits that were noted %d bear on what is wanted", one.step, noted, bear)
			}
			more, of := followed.Bearing()
			noted, bear = noted+more, bear+of
		}
		if !one.bears && bear > 0 {
			t.Errorf("%s bears on what is wanted", one.step)
		}
	}
}

// holding is a store whose next update is held before its commit, and then fails.
type holding struct {
	store.Store
	held, fails chan struct{} // nil: no update is held
}

func (h *holding) Update(ctx context.Context, fn func(store.Tx) error) error {
	held, fails := h.held, h.fails
	h.held = nil
	return h.Store.Update(ctx, func(tx store.Tx) error {
		err := fn(tx)
		if held == nil {
			return err
		}
		close(held)
		<-fails
		return errors.New("broken")
	})
}

// TestReverted: an edge may get a change before its commit. If the commit fails, even after a long time, the edge gets
// the old state again.
func TestReverted(t *testing.T) {
	b := begins(t, mapped)
	var st *holding
	b.before = func(s store.Store) store.Store { st = &holding{Store: s}; return st }
	b.freeze()
	before := right(b)
	held, fails := make(chan struct{}), make(chan struct{})
	st.held, st.fails = held, fails
	ended := make(chan error)
	go func() {
		_, err := b.Edit(t.Context(), ipam.EditOptions{}, &ipam.DisassociateElastic{Address: addr(elastic)})
		ended <- err
	}()
	<-held
	ctx, cancel := context.WithCancel(t.Context())
	tracked := b.Followed(ctx)
	defer func() { cancel(); tracked.End() }()
	for range 3 {
		if told(b, tracked) == before {
			t.Fatal("an edge is not told of the change under way: the test shows nothing")
		}
		b.passes(room.LookAgain)
	}
	close(fails)
	if err := <-ended; err == nil {
		t.Fatal("the edit succeeded")
	}
	if got := told(b, tracked); got != before {
		t.Errorf("an edge has been told\n%s\nand the records come to\n%s", got, before)
	}
}

// TestNet: a committed change whose notice was lost is found after LookAlways, and not before.
func TestNet(t *testing.T) {
	b := begins(t, mapped)
	tracked := tracks(b)
	before := told(b, tracked)
	b.plays("off E0")
	for lost, end := 0, time.After(10*time.Second); lost == 0; lost = tracked.Lose() {
		select {
		case <-tracked.Woken():
		case <-end:
			t.Fatal("no commit was noted")
		}
	}
	b.passes(room.LookAlways - 1)
	if told(b, tracked) != before {
		t.Fatal("it was not lost")
	}
	b.passes(1)
	if got, want := told(b, tracked), right(b); got != want {
		t.Fatalf("after %s an edge is told\n%s\nand not\n%s", room.LookAlways, got, want)
	}
}
