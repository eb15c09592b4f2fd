//go:build engine

package engine

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

var stormTime = flag.Duration("storm", 0, "how long TestStorm goes on; 0: five seconds under -short, a minute without")

// Many things happen to many containers at once: whoever Berth says asks for an address is the one who gets it. Where
// several can be it, nobody is named.
func TestStorm(t *testing.T) {
	t.Parallel()
	e := engineOf(t, 189)
	k := startKept(t, e.Engine, e.Sockets, ways(e.Engine)[0], 190)
	s := &storm{kept: k, back: k.of(k.way, "128/25")}
	var mine [3][]string
	for i := range mine {
		for range 2 {
			mine[i] = append(mine[i], k.container(k.network))
		}
	}
	idle := k.container(k.network)
	k.idlers()
	k.sound()

	lasts := time.Duration(sample(int(*stormTime), int(5*time.Second), int(time.Minute)))
	begun := time.Now()
	before := k.witness()
	var blowing sync.WaitGroup
	for i, some := range mine {
		blowing.Go(func() { s.blow(begun.Add(lasts), rand.New(rand.NewPCG(uint64(i), 0)), i, some) })
	}
	blowing.Go(func() { s.beside(begun.Add(lasts), idle) })
	blowing.Wait()
	if err := errors.Join(s.errs...); err != nil {
		t.Error(err)
	}
	after := k.witness()
	right, nobody := s.judge(begun)
	q, b := after.Questions, before.Questions
	t.Logf("%s: one %d, several %d, none %d, late %d; of %d addresses that were looked at %d were given by the right "+
		"name, %d by none", lasts, q.One-b.One, q.Several-b.Several, q.None-b.None, q.Late-b.Late, len(s.had), right,
		nobody)
	if right == 0 || after.Guesses.Wrong > before.Guesses.Wrong {
		t.Errorf("of %d addresses %d were given by a name; %d names were wrong", len(s.had), right,
			after.Guesses.Wrong-before.Guesses.Wrong)
	}
	k.sound()
}

// storm is what happens at once on two networks.
type storm struct {
	*kept
	back string // the other network

	mu   sync.Mutex
	had  []had
	errs []error
}

// had is which container had an address, that it was given at some moment between two.
type had struct {
	container, address string
	from, until        time.Time
}

// do runs a command, and tells whether it worked.
func (s *storm) do(args ...string) bool {
	_, err := s.Engine.Docker(args...)
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil {
		s.errs = append(s.errs, err)
	}
	return err == nil
}

// gets has a container get an address on a network by a command, and notes which.
func (s *storm) gets(network string, containers []string, args ...string) {
	from := time.Now()
	if !s.do(args...) {
		return
	}
	for _, c := range containers {
		ep, err := s.Engine.Endpoint(c, network)
		s.mu.Lock()
		if err != nil {
			s.errs = append(s.errs, err)
		}
		s.had = append(s.had, had{c, ep.IPAddress, from, time.Now()})
		s.mu.Unlock()
	}
}

// blow does something to two containers, again and again until a time.
func (s *storm) blow(until time.Time, r *rand.Rand, worker int, mine []string) {
	pause := func(most time.Duration) { time.Sleep(time.Duration(r.Int64N(int64(most)))) }
	for n := 0; time.Now().Before(until); n++ {
		c := mine[r.IntN(len(mine))]
		switch r.IntN(5) {
		case 0:
			s.gets(s.network, []string{c}, "restart", "--time", "0", c)
		case 1:
			s.do("stop", "--time", "0", c)
			pause(300 * time.Millisecond)
			s.gets(s.network, []string{c}, "start", c)
		case 2:
			s.gets(s.back, []string{c}, "network", "connect", s.back, c)
			s.do("network", "disconnect", s.back, c)
		case 3:
			name := fmt.Sprintf("%sw%d-%d", s.prefix(), worker, n)
			network := []string{s.network, s.back}[r.IntN(2)]
			s.gets(network, []string{name}, containerCommand(name, network)...)
			s.do("rm", "--force", name)
		case 4:
			s.gets(s.network, mine, append([]string{"restart", "--time", "0"}, mine...)...)
		}
		pause(1200 * time.Millisecond)
	}
}

// beside has a container locked now and then that asks for nothing, and renamed.
func (s *storm) beside(until time.Time, c string) {
	for time.Now().Before(until) {
		_, err := run(s.Context(), nil, "sh", "-c", fmt.Sprintf("docker --host %s cp %s:/bin/busybox - | (sleep 0.3; cat "+
			">/dev/null)", s.Engine.URL(), c))
		if err != nil {
			s.mu.Lock()
			s.errs = append(s.errs, err)
			s.mu.Unlock()
		}
		s.do("exec", c, "sh", "-c", "exit")
		s.do("rename", c, c+"x")
		s.do("rename", c+"x", c)
		time.Sleep(500 * time.Millisecond)
	}
}

// takenEvent is an address that was given, and by which name.
type takenEvent struct {
	Time          time.Time
	Address, Name string
}

// judge holds who had each address against the name that it was given by, and counts the right ones and those that were
// given by none.
func (s *storm) judge(since time.Time) (right, nobody int) {
	var all []takenEvent
	out := s.berth("events", "--verb", "lease.take", "--since", since.Format(time.RFC3339Nano), "--last", "10000",
		"--format", "json")
	for lines := json.NewDecoder(strings.NewReader(out)); lines.More(); {
		var one takenEvent
		if err := lines.Decode(&one); err != nil {
			s.Fatal(err)
		}
		all = append(all, one)
	}
	slices.Reverse(all) // the last one before it was seen
	for _, h := range s.had {
		at := slices.IndexFunc(all, func(e takenEvent) bool {
			return e.Address == h.address && e.Time.After(h.from) && e.Time.Before(h.until)
		})
		switch {
		case at < 0:
			s.Errorf("%s has %q, which was not given between %s and %s", h.container, h.address,
				h.from.Format(time.StampMilli), h.until.Format(time.StampMilli))
		case all[at].Name == h.container:
			right++
		case all[at].Name == "":
			nobody++
		default:
			s.Errorf("%s was given to %s at %s, and %s has it", h.address, all[at].Name,
				all[at].Time.Format(time.StampMilli), h.container)
		}
	}
	return right, nobody
}
