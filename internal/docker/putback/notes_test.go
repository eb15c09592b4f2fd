package putback

import (
	"context"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"berth/internal/docker"
	"berth/internal/ipam"

	"github.com/google/go-cmp/cmp"
)

// settled starts a container with every setting that a user can make on a network.
func (e *engine) settled(name string, has, home int) docker.Astray {
	a := e.runs(name, has, home)
	a.Reserved = true
	maps := object{"IPAMConfig": object{"LinkLocalIPs": []any{"169.254.8.8"}}, "Aliases": []any{"foo"},
		"Links": []any{"db:store"}, "DriverOpts": object{"mode": "a b"}, "GwPriority": 7.0}
	for key, value := range maps {
		e.named(name).On[key] = value
	}
	e.named(name).On["MacAddress"] = "02:42:00:00:00:01" // the engine chose this one
	return a
}

// whole checks that a container has all of its settings on its network, and asks only for the given addresses.
func (e *engine) whole(name string, asks object) {
	e.Helper()
	asks["LinkLocalIPs"] = []any{"169.254.8.8"}
	got := e.named(name).On
	delete(got, "IPAddress")
	delete(got, "EndpointID")
	want := object{"IPAMConfig": asks, "Aliases": []any{"foo", idOf(name)[:12]}, "Links": []any{"db:store"},
		"DriverOpts": object{"mode": "a b"}, "GwPriority": 7.0, "MacAddress": "02:42:0a:09:00:77"}
	for key := range got {
		if want[key] == nil {
			delete(got, key) // the engine's client sends this key empty
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		e.Error(diff)
	}
}

// All settings survive a move. Afterwards the endpoint asks for a reserved address, but not for a remembered one.
func TestSettings(t *testing.T) {
	for mode, asks := range map[Mode]object{Reserved: {"IPv4Address": "10.9.0.2"}, All: {}} {
		e := newEngine(t)
		a := e.settled("a", 1, 2)
		a.Reserved = mode == Reserved
		e.keeper(mode).putBack(t.Context(), []docker.Astray{a})
		e.home([]docker.Astray{a})
		e.whole("a", asks)
	}
}

// TestLosesMAC: a container that would lose its configured MAC stays as it is, on the engines that cannot keep it.
func TestLosesMAC(t *testing.T) {
	for _, c := range []struct {
		api   int // 1.N
		moves int
	}{{41, 2}, {44, 0}, {53, 0}, {54, 2}} {
		e := newEngine(t)
		e.API = c.api
		a := e.settled("a", 1, 2)
		k := e.keeper(Reserved)
		k.putBack(t.Context(), []docker.Astray{a})
		if len(e.Place.Moves) != c.moves {
			t.Errorf("API 1.%d: it was told %q", c.api, e.Place.Moves)
		}
		if got := k.Counts(); got.Refused != 1-uint64(c.moves/2) {
			t.Errorf("API 1.%d: counted are %+v", c.api, got)
		}
		if got := e.named("a").MAC; got != "02:42:0a:09:00:77" {
			t.Errorf("API 1.%d: its MAC is %q", c.api, got)
		}
	}
}

// Both addresses of a container must come back, or the move is counted as refused.
func TestBothFamilies(t *testing.T) {
	e := newEngine(t)
	e.Place.No6 = true
	a := e.runs("a", 1, 2)
	six := a
	six.Has, six.Home = netip.MustParseAddr("fd00:9::1"), netip.MustParseAddr("fd00:9::2")
	e.named("a").On["GlobalIPv6Address"] = "fd00:9::1"
	a.Reserved, six.Reserved = true, true
	k := e.keeper(Reserved)
	k.putBack(t.Context(), []docker.Astray{a, six})
	e.called("off a", "on a")
	asks := e.named("a").On["IPAMConfig"].(object)
	if asks["IPv4Address"] != "10.9.0.2" || asks["IPv6Address"] != "fd00:9::2" {
		t.Errorf("it asks for %v", asks)
	}
	if got := k.Counts(); got != (ipam.PutBackCounts{Refused: 1}) {
		t.Errorf("counted are %+v", got)
	}
}

// A container that moves for one family keeps its own address of the other. If its user configured another address
// there, the container does not move.
func TestOtherFamily(t *testing.T) {
	own, other := netip.MustParseAddr("fd00:9::2"), netip.MustParseAddr("fd00:9::7")
	for _, c := range []struct {
		has   netip.Addr // its address in the other family, IPv6
		asks  bool       // whether its configuration has that address
		own   []netip.Addr
		moved bool
		six   any // the IPv6 address that it asks for afterwards
	}{
		{has: own, own: []netip.Addr{own}, moved: true, six: own.String()},
		{has: own, own: []netip.Addr{own}, asks: true, moved: true, six: own.String()},
		{has: other, moved: true},
		{has: other, asks: true, six: other.String()},
	} {
		e := newEngine(t)
		a := e.runs("a", 1, 2)
		a.Reserved, a.Own = true, c.own
		on := e.named("a").On
		on["GlobalIPv6Address"] = c.has.String()
		if c.asks {
			on["IPAMConfig"] = object{"IPv6Address": c.has.String()}
		}
		var expected []netip.Addr
		e.Place.Before = func(call string) {
			if call == "on a" {
				expected = e.homes["a"]
			}
		}
		e.keeper(Reserved).putBack(t.Context(), []docker.Astray{a})
		asks, _ := e.named("a").On["IPAMConfig"].(object)
		if asks["IPv6Address"] != c.six || (asks["IPv4Address"] == "10.9.0.2") != c.moved {
			t.Errorf("%+v: it asks for %v", c, asks)
		}
		if c.moved && !slices.Equal(expected, []netip.Addr{a.Home, c.has}) {
			t.Errorf("%+v: expected are %v", c, expected)
		}
	}
}

// The note is on disk from before the container is disconnected until it is reconnected.
func TestNotedMeanwhile(t *testing.T) {
	e := newEngine(t)
	all := e.set("a=1>2 b=2>1")
	var seen []string
	e.Place.Before = func(call string) { seen = append(seen, fmt.Sprint(call, " ", e.notes())) }
	e.keeper(All).putBack(t.Context(), all)
	want := []string{"off a [a]", "off b [a b]", "on b [a b]", "on a [a]"}
	if !slices.Equal(seen, want) {
		t.Errorf("noted were %q", seen)
	}
	e.noNotes()
}

// If the note cannot be written, the container stays connected.
func TestNotNoted(t *testing.T) {
	e := newEngine(t)
	a := e.runs("a", 1, 2)
	k := e.keeper(All)
	k.notes.path = filepath.Join(e.dir, "none", "put-back.json")
	k.putBack(t.Context(), []docker.Astray{a})
	e.called()
	if got := k.Counts(); got != (ipam.PutBackCounts{Refused: 1}) {
		t.Errorf("counted are %+v", got)
	}
}

// Whenever the daemon is killed, no container stays disconnected: the next daemon reconnects it as noted.
func TestKilled(t *testing.T) {
	for moment, row := range map[string]struct {
		kill func(e *engine, was object)
		want []string // calls of the next daemon
	}{
		"noted":               {func(e *engine, was object) { e.named("a").On = was }, nil},
		"off":                 {func(e *engine, _ object) { e.named("a").On = nil }, []string{"on a"}},
		"on":                  {func(*engine, object) {}, nil},
		"off, and is gone":    {func(e *engine, _ object) { e.destroy("a") }, nil},
		"off, as its network": {func(e *engine, _ object) { e.named("a").On, e.Place.Gone = nil, true }, nil},
	} {
		t.Run(moment, func(t *testing.T) {
			e := newEngine(t)
			a := e.settled("a", 1, 2)
			was := e.named("a").On
			var noted []byte
			e.Place.Before = func(string) { noted, _ = os.ReadFile(e.path()) }
			e.keeper(Reserved).putBack(t.Context(), []docker.Astray{a})
			row.kill(e, was)
			must(t, os.WriteFile(e.path(), noted, 0o600))
			e.Place.Moves = nil
			must(t, e.keeper(off).finish(t.Context()))
			e.called(row.want...)
			e.noNotes()
			if moment == "off" {
				e.home([]docker.Astray{a})
				e.whole("a", object{"IPv4Address": "10.9.0.2"})
			}
		})
	}
}

// The note of a container that cannot be reconnected stays until it can be.
func TestStaysNoted(t *testing.T) {
	e := newEngine(t)
	a := e.runs("a", 1, 2)
	a.Reserved = true
	e.refuse("on a", 4) // two tries each, with and without its address
	k := e.keeper(Reserved)
	k.putBack(t.Context(), []docker.Astray{a})
	if got := e.notes(); !slices.Equal(got, []string{"a"}) || k.Counts() != (ipam.PutBackCounts{Refused: 1}) {
		t.Fatalf("noted is %q, and counted %+v", got, k.Counts())
	}
	if err := k.finish(t.Context()); err == nil || !strings.Contains(err.Error(), "docker network connect --ip 10.9.0.2 front a") {
		t.Fatal(err)
	}
	must(t, k.finish(t.Context()))
	e.home([]docker.Astray{a})
	e.noNotes()
}

// On a network without a user-configured subnet, the engine refuses requested addresses, but the container gets its
// address anyway. If another container has taken the address meanwhile, the container still gets connected.
func TestAddressRefused(t *testing.T) {
	for taken, want := range map[bool]ipam.PutBackCounts{false: {Done: 1}, true: {Refused: 1}} {
		e := newEngine(t)
		a := e.runs("a", 1, 2)
		a.Reserved = true
		e.refuse("on a", 1)
		if taken {
			e.runs("b", 2, 0)
		}
		k := e.keeper(Reserved)
		k.putBack(t.Context(), []docker.Astray{a})
		e.called("off a", "on a", "on a")
		if got := k.Counts(); got != want || (e.has("a") == 2) == taken || e.has("a") == 0 {
			t.Errorf("it has %d, and counted are %+v", e.has("a"), got)
		}
		e.noNotes()
	}
}

// Damaged notes are an error, so Berth does not overwrite them.
func TestDamagedNotes(t *testing.T) {
	e := newEngine(t)
	must(t, os.WriteFile(e.path(), []byte("[{"), 0o600))
	_, err := New(Config{Notes: e.path()})
	if err == nil || !strings.Contains(err.Error(), e.path()) {
		t.Fatal(err)
	}
}

// Run reconnects the noted containers, then moves those that Tell reports, and ends with its context.
func TestRun(t *testing.T) {
	e := newEngine(t)
	b := e.runs("b", 3, 4)
	b.Reserved = true
	k := e.keeper(off)
	taken := &attachment{Astray: b, has: []netip.Addr{b.Has}, homes: []netip.Addr{b.Home}, reserved: true}
	if !k.disconnect(t.Context(), taken) {
		t.Fatal("it was not taken off")
	}
	a := e.runs("a", 1, 2)
	ctx, cancel := context.WithCancel(t.Context())
	k = e.keeper(All)
	ended := make(chan error)
	go func() { ended <- k.Run(ctx) }()
	k.Tell([]docker.Astray{a})
	<-e.noted
	cancel()
	must(t, <-ended)
	e.called("off b", "on b", "off a", "on a")
	e.home([]docker.Astray{a, b})
	e.noNotes()
}
