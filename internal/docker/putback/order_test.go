package putback

import (
	"context"
	"fmt"
	"io"
	"net/netip"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"berth/internal/docker"
	"berth/internal/docker/pin"
	"berth/internal/ipam"
	"berth/internal/ipam/ipamtest"

	"github.com/sirupsen/logrus"
)

// A container moves after the container that has its address. Each is disconnected only for its own move.
func TestChain(t *testing.T) {
	e := newEngine(t)
	all := e.set("a=1>2 b=2>3 c=3>4")
	k := e.keeper(All)
	k.putBack(t.Context(), all)
	e.home(all)
	e.called("off c", "on c", "off b", "on b", "off a", "on a")
	e.noNotes()
	if got := k.Counts(); got != (ipam.PutBackCounts{Done: 3}) || len(e.events) != 3 {
		t.Errorf("counted are %+v, and told %v", got, e.events)
	}
	if ev := e.events[0]; ev.Verb != ipam.LeasePutBack || ev.Name != "c" || ev.Address != addrOf(4) ||
		!strings.HasPrefix(ev.Detail, "it had 10.9.0.3, and was off the network for ") {
		t.Errorf("the first event is %+v", ev)
	}
}

// In a ring each container has the next one's address. One is disconnected first and reconnected last; the others are
// disconnected only for their own moves.
func TestRing(t *testing.T) {
	for _, n := range []int{2, 3, 25} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			e := newEngine(t)
			var all []docker.Astray
			for i := range n {
				all = append(all, e.runs(fmt.Sprintf("c%d", i), 1+i, 1+(i+1)%n))
			}
			e.keeper(All).putBack(t.Context(), e.taken(all...))
			e.home(all)
			e.noNotes()
			if len(e.Place.Moves) != 2*n || e.Place.MostOff != 2 {
				t.Fatalf("the engine was told %q; %d were off at one moment", e.Place.Moves, e.Place.MostOff)
			}
			_, first, _ := strings.Cut(e.Place.Moves[0], " ")
			if e.Place.Moves[2*n-1] != "on "+first {
				t.Errorf("%s came off first, and the last was %q", first, e.Place.Moves[2*n-1])
			}
			for i := 1; i < 2*n-1; i += 2 {
				off, on := e.Place.Moves[i], e.Place.Moves[i+1]
				if strings.TrimPrefix(off, "off ") != strings.TrimPrefix(on, "on ") {
					t.Errorf("%q is followed by %q", off, on)
				}
			}
		})
	}
}

// A container that waits for a ring without being part of it is not disconnected first.
func TestBesideRing(t *testing.T) {
	e := newEngine(t)
	// a has a second address, and c waits for it
	a, b, c := e.runs("a", 1, 2), e.runs("b", 2, 1), e.runs("c", 3, 4)
	six := a
	six.Has, six.Home = addrOf(4), addrOf(5)
	all := e.taken(c, a, b)
	all[0].Taken = "a"
	all = append(all, six)
	q := e.keeper(All).queueOf(all, nil)
	if len(q.attachments) != 3 || len(q.ready()) > 0 {
		t.Fatalf("%d may be moved, and %d at once", len(q.attachments), len(q.ready()))
	}
	if one := q.inRing(); one.Container == "c" {
		t.Error("c is taken off first, and is in no ring")
	}
}

// A container is not moved if its address stays taken, because a disconnection would not help.
func TestStays(t *testing.T) {
	for row := range ipamtest.Rows(3, `
		a stranger's | stranger=9 a=1>9 |
		of one that waits for a stranger | stranger=9 b=2>1 a=1>9 c=3>2 d=4>5 | off d, on d
		of one that started too long ago | b=2>3! a=1>2 |
		of one that the engine does not take off | -b a=1>2 b=2>3 c=4>1 | off b
		of the first of a ring that the engine does not take off | -a a=1>2 b=2>3 c=3>1 | off a
		the same of two | a=1>2 b=3>2 | off a, on a
		the same of two, in a ring | x=3>2 a=1>2 b=2>1 |
	`) {
		t.Run(row[0], func(t *testing.T) {
			e := newEngine(t)
			e.keeper(All).putBack(t.Context(), e.set(row[1]))
			if got := strings.Join(e.Place.Moves, ", "); got != row[2] {
				t.Errorf("the engine was told %q, and not %q", got, row[2])
			}
			e.noNotes()
		})
	}
}

// set starts containers, a word each: NAME=HAS>HOME, with a ! if that was long ago, or NAME=HAS without a home. The
// engine refuses to disconnect -NAME once. set returns those with a home.
func (e *engine) set(text string) (all []docker.Astray) {
	for word := range strings.FieldsSeq(text) {
		name, at, runs := strings.Cut(word, "=")
		if !runs {
			e.refuse("off "+name[1:], 1)
			continue
		}
		var has, home int
		read, _ := fmt.Sscanf(at, "%d>%d", &has, &home) // one number: no home
		a := e.runs(name, has, home)
		if strings.HasSuffix(at, "!") {
			a.Started = started.Add(-time.Minute)
		}
		if read == 2 {
			all = append(all, a)
		}
	}
	return e.taken(all...)
}

// If a container of a ring cannot be disconnected, the first one, already disconnected, is reconnected with another
// address.
func TestBrokenRing(t *testing.T) {
	e := newEngine(t)
	all := e.set("a=1>2 b=2>3 c=3>1")
	e.refuse("off b", 1)
	k := e.keeper(All)
	k.putBack(t.Context(), all)
	e.called("off a", "off c", "on c", "off b", "on a")
	if a, b, c := e.has("a"), e.has("b"), e.has("c"); a != 200 || b != 2 || c != 1 {
		t.Errorf("a, b and c have %d, %d and %d", a, b, c)
	}
	e.noNotes()
	if got := k.Counts(); got != (ipam.PutBackCounts{Done: 1, Refused: 2}) {
		t.Errorf("counted are %+v", got)
	}
}

// Containers that ask for their addresses move in parallel, a few at a time.
func TestSideBySide(t *testing.T) {
	e := newEngine(t)
	var all []docker.Astray
	for i := range 25 {
		a := e.runs(fmt.Sprintf("c%d", i), 101+i, 1+i)
		a.Reserved = true
		all = append(all, a)
	}
	e.keeper(Reserved).putBack(t.Context(), all)
	e.home(all)
	e.noNotes()
	if len(e.Place.Moves) != 50 || e.Place.MostOff > atOnce {
		t.Errorf("%d calls, and %d were off at one moment", len(e.Place.Moves), e.Place.MostOff)
	}
}

// A container moves soon after its start, at most three times, and not during its deploy.
func TestWhen(t *testing.T) {
	// the time since its start (StartFor is 30s), its project, what happened meanwhile, and the number of calls
	for row := range ipamtest.Rows(5, `
		it has just started | 1s | | | 2
		half a minute ago | 30s | | | 2
		longer ago | 30s1ns | | | 0
		at a time that is not known | | | | 0
		at a time that is to come | -1ns | | | 0
		while its project is deployed | 1s | shop | | 0
		while another one is deployed | 1s | mail | | 2
		by its user's choice, of since | 1s | | asks | 0
		and has another one by now | 1s | | moved | 0
		and is gone by now | 1s | | gone | 0
	`) {
		t.Run(row[0], func(t *testing.T) {
			e := newEngine(t)
			e.deploys = []ipam.DeployLock{{Project: "shop"}}
			a := e.runs("a", 1, 2)
			if age, err := time.ParseDuration(row[1]); err != nil {
				a.Started = time.Time{}
			} else {
				e.now = started.Add(age)
			}
			a.Project = row[2]
			switch row[3] {
			case "asks":
				e.named("a").On["IPAMConfig"] = object{"IPv4Address": addrOf(1).String()}
			case "moved":
				e.runs("a", 7, 0)
			case "gone":
				e.destroy("a")
			}
			e.keeper(All).putBack(t.Context(), []docker.Astray{a})
			if fmt.Sprint(len(e.Place.Moves)) != row[4] {
				t.Errorf("the engine was told %q", e.Place.Moves)
			}
		})
	}
}

func TestTries(t *testing.T) {
	e := newEngine(t)
	k := e.keeper(All)
	a := e.runs("a", 1, 2)
	for range 5 {
		e.runs("a", 1, 2)
		k.putBack(t.Context(), []docker.Astray{a})
	}
	if n := len(e.Place.Moves); n != 2*trials {
		t.Errorf("after one start it was moved with %d calls", n)
	}
	a.Started, e.now = a.Started.Add(time.Minute), e.now.Add(time.Minute)
	e.runs("a", 1, 2)
	k.putBack(t.Context(), []docker.Astray{a})
	if n := len(e.Place.Moves); n != 2*trials+2 {
		t.Errorf("after another start there are %d calls", n)
	}
}

// A stop in the middle of a ring leaves no container disconnected.
func TestStopped(t *testing.T) {
	e := newEngine(t)
	all := e.set("a=1>2 b=2>3 c=3>1")
	ctx, cancel := context.WithCancel(t.Context())
	e.Place.Before = func(call string) {
		if call == "off c" {
			cancel()
		}
	}
	e.keeper(All).putBack(ctx, all)
	e.called("off a", "off c", "on c", "on a")
	if slices.Contains([]int{e.has("a"), e.has("b"), e.has("c")}, 0) {
		t.Error("one of them is off its network")
	}
	e.noNotes()
}

// An engine that does not answer holds a stop up for a few seconds only. The container's note stays for the next daemon.
func TestStoppedBeforeAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := logrus.New()
		log.SetOutput(io.Discard)
		k, err := New(Config{Connector: hanging{}, Notes: filepath.Join(t.TempDir(), "notes"), Log: logrus.NewEntry(log)})
		must(t, err)
		must(t, k.notes.put(note{Endpoint: &pin.Endpoint{ID: "1", Container: "a", Network: "front"}}))
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- k.Run(ctx) }()
		synctest.Wait()
		stopped := time.Now()
		cancel()
		must(t, <-ended)
		if took := time.Since(stopped); took != finishTime || len(k.notes.list()) != 1 {
			t.Errorf("the stop took %s, and noted are %d", took, len(k.notes.list()))
		}
	})
}

// hanging is a Connector to an engine that does not answer.
type hanging struct{ Connector }

func (hanging) Restore(ctx context.Context, _ *pin.Endpoint, _ []netip.Addr) error {
	<-ctx.Done()
	return ctx.Err()
}

func (hanging) Close() {}
