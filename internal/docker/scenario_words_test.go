package docker

import (
	"cmp"
	"fmt"
	"iter"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"berth/internal/ipam"
)

// casesOf returns the name and the lines of each case of a script. A name ends with ":".
func casesOf(script string) iter.Seq2[string, []string] {
	return func(yield func(string, []string) bool) {
		name, lines := "", []string(nil)
		for line := range strings.Lines(script + "\n:") {
			line = strings.TrimSpace(line)
			next, begins := strings.CutSuffix(line, ":")
			switch {
			case line == "" || line[0] == '#':
			case !begins:
				lines = append(lines, line)
			case name != "" && !yield(name, lines):
				return
			default:
				name, lines = next, nil
			}
		}
	}
}

// playScenarios plays each case of a script in a new scenario.
func playScenarios(t *testing.T, begin func(*testing.T) *scenario, script string) {
	t.Helper()
	for name, lines := range casesOf(script) {
		t.Run(name, func(t *testing.T) { begin(t).play(lines...) })
	}
}

// play runs steps. "->" precedes the wanted answer, and "!" a part of the wanted refusal. "until" repeats a step
// until it answers as wanted.
func (tn *scenario) play(lines ...string) {
	tn.t.Helper()
	for _, line := range lines {
		step, want, answered := strings.Cut(line+" ", " -> ")
		step, refusal, refused := strings.Cut(step, " ! ")
		want, refusal = strings.TrimSpace(want), strings.TrimSpace(refusal)
		if tn.engine != nil {
			tn.engine.Set(tn.view)
		}
		step, waits := strings.CutPrefix(step, "until ")
		got, err := tn.step(strings.Fields(step))
		for late := time.Now().Add(30 * time.Second); waits && got != want && time.Now().Before(late); {
			time.Sleep(2 * time.Millisecond)
			got, err = tn.step(strings.Fields(step))
		}
		if refused != (err != nil) || refused && !strings.Contains(err.Error(), refusal) || answered && got != want {
			tn.t.Fatalf("%s\n\tgot %s, %v", line, got, err)
		}
	}
}

// plays runs the steps of a script.
func (tn *scenario) plays(script string) {
	tn.t.Helper()
	for _, lines := range casesOf("it:\n" + script) {
		tn.play(lines...)
	}
}

// step runs a step:
//
//	network NAME CIDR, vanishnet NAME    creates a Docker network; removes it without telling Berth
//	run NAME NET                         starts a container with the next MAC; returns its address
//	ask NAME NET ADDR [SHOWN]            the same, but the engine sends the name; views show the container as SHOWN
//	appear NAME NET ADDR [N]             adds a container with the next MAC, or MAC N, whatever the records contain
//	vanish NAME, release NET ADDR, lease NET N [ADDR]
//	wait D                               moves the clock; "created": until a new network must be listed
//	check [repair] [only] [given]        returns the findings; only: repairs those kept by "keep"; given: with a view
//	says TEXT, since                     the first finding's detail contains TEXT; time since it was first seen
//	look, show                           the witness looks; the view is pushed
//	stop, start, broken [PATH], renew    stops or starts the engine; it refuses PATH; it is another engine
//	breakoff, anew, lose, ends           the engine's events break off, begin, are lost, end with the engine
//	daemon, live [D] [repair]            a new witness; the same, running, with a check every D
//	event ACTION ID NAME                 an event of a container, a second later
//	exists NAME [ID]                     whether a container with this name or id exists
//	happen KIND ACTION, stir             an event without a cause; a request asks for a look
//	reserve OWNER ADDR,... [force]       force: even if another holder has the address
//	elsewhere SPACE ADDR                 leases an address in another space
//	take OWNER ADDR, name ADDR NAME      takes an address by hand; names a lease like a view
//	end ADDR [force|kindly] [SPACE]      a person ends the lease
//
// These steps return the state:
//
//	at ADDR                              STATE NAME N NET of the lease
//	engine, atleast N, leaks             the engine; whether N checks have run; the last one's unused leases
//	state, seen ADDR, word ADDR          engine and number of checks; the lease's container; what a request learns
//	owned, attachments, subnets, told    OWNER=ADDR; Docker networks; CIDRs; the events of strays
//	actor VERB                           of the last such event
func (tn *scenario) step(words []string) (string, error) {
	tn.t.Helper()
	verb := words[0]
	words = append(words[1:], "", "", "", "")
	switch verb {
	case "network":
		tn.network(words[0], words[1])
	case "vanishnet":
		tn.vanishNetwork(words[0])
	case "run":
		return tn.run(words[0], words[1]).String(), nil
	case "ask":
		tn.number++
		got, err := tn.service.RequestAddress(tn.t.Context(), ipam.AddressRequest{Pool: tn.pools[words[1]],
			MAC: macN(tn.number), Name: words[0], Preferred: addr(words[2])})
		must(tn.t, err)
		tn.appear(cmp.Or(words[3], words[0]), words[1], got.Addr())
	case "appear":
		tn.number++
		if n, err := strconv.Atoi(words[3]); err == nil {
			tn.number = n
		}
		tn.appear(words[0], words[1], addr(words[2]))
	case "vanish":
		tn.vanish(words[0])
	case "release":
		tn.release(words[0], addr(words[1]))
	case "lease":
		n, err := strconv.Atoi(words[1])
		must(tn.t, err)
		var wanted netip.Addr
		if words[2] != "" {
			wanted = addr(words[2])
		}
		return tn.lease(words[0], macN(n), wanted).String(), nil
	case "wait":
		d, err := time.ParseDuration(words[0])
		if words[0] == "created" {
			d, err = networkCreation+time.Second, nil
		}
		tn.clock.wait(d)
		return "", err
	case "reserve":
		e := &ipam.AddReservation{Network: tn.front(), Owner: words[0], Replace: true, Force: words[2] != ""}
		for i, text := range strings.Split(words[1], ",") {
			e.Wishes = append(e.Wishes, ipam.Wish{Slot: i, Address: addr(text)})
		}
		tn.edit(e)
	case "elsewhere":
		grant, err := tn.service.RequestPool(tn.t.Context(),
			ipam.PoolRequest{Space: words[0], CIDR: prefix("10.8.0.0/24")})
		must(tn.t, err)
		tn.pools[words[0]] = grant.ID
		tn.lease(words[0], macN(9), addr(words[1]))
	case "take":
		tn.edit(&ipam.TakeAddress{Network: tn.front(), Owner: words[0],
			Interface: ipam.Interface{Wishes: []ipam.Wish{{Address: addr(words[1])}}}})
	case "name":
		l := tn.leaseOf(addr(words[0]))
		return "", tn.service.NameLeases(tn.t.Context(), []ipam.LeaseName{
			{LeaseRef: ipam.LeaseRef{Space: "local", Address: l.Address, ID: l.ID}, Name: words[1]}})
	default:
		return tn.witnessed(verb, words)
	}
	return "", nil
}

// front returns Berth's network of the Docker network front.
func (tn *scenario) front() string { return tn.leaseOf(addr("10.8.0.1")).Network }

// witnessed runs a step of the witness or the engine.
func (tn *scenario) witnessed(verb string, words []string) (string, error) {
	tn.t.Helper()
	ctx := tn.t.Context()
	switch verb {
	case "check":
		req := ipam.CheckRequest{Repair: slices.Contains(words, "repair")}
		if slices.Contains(words, "only") {
			req.Only = &tn.kept
		}
		if slices.Contains(words, "given") {
			view := tn.taken()
			req.View = &view
		}
		r := tn.check(req)
		tn.last = r
		text := cmp.Or(strings.Join(told(&r), ", "), "nothing")
		if r.Engine != ipam.EngineReachable || r.Trouble != "" {
			text = r.Engine + ", " + text
		}
		return text, nil
	case "keep":
		tn.kept = tn.last
	case "says":
		if d := tn.last.Findings[0].Detail; !strings.Contains(d, strings.TrimSpace(strings.Join(words, " "))) {
			tn.t.Errorf("it says %q", d)
		}
	case "since":
		return tn.clock.Now().Sub(tn.last.Findings[0].Seen).String(), nil
	case "look":
		return "", tn.w.look(ctx)
	case "show":
		return "", tn.w.Show(ctx, tn.taken())
	case "stop":
		tn.engine.Stop()
	case "start":
		tn.engine.Start()
	case "broken":
		tn.engine.Broken = words[0]
	case "renew":
		tn.engine.ID = "other"
		return "", tn.w.cfg.Engine.renew()
	case "breakoff":
		tn.w.breakOff(ctx, word{errTest, time.Now()})
	case "anew":
		tn.w.breakOff(ctx, word{})
	case "lose":
		tn.w.cfg.Roster.lose()
	case "ends":
		tn.w.cfg.Roster.Hear(&ipam.EngineNews{At: tn.clock.Now(), Ends: true})
	case "live":
		every, _ := time.ParseDuration(words[0])
		tn.live(func(cfg *Config) { cfg.Every, cfg.Repair = every, words[1] != "" })
	case "event":
		tn.clock.wait(time.Second)
		tn.w.cfg.Roster.Hear(&ipam.EngineNews{At: tn.clock.Now(), Event: &ipam.EngineEvent{Action: words[0],
			Container: ipam.EngineContainer{ID: words[1], Name: words[2]}}})
	case "exists":
		return strconv.FormatBool(tn.w.cfg.Roster.exists(ipam.RememberedName(words[0]), words[1])), nil
	case "happen":
		tn.engine.Happen(words[0], words[1])
	case "stir":
		tn.w.cfg.Roster.look()
	case "daemon":
		tn.w = tn.witness(tn.w.cfg.Engine, nil)
	case "end":
		l, err := tn.w.ReleaseLease(ctx,
			ipam.LeaseRelease{Address: addr(words[0]), Force: words[1] == "force", Space: words[2]})
		return l.Space, err
	default:
		return tn.shown(verb, words[0]), nil
	}
	return "", nil
}

// shown runs a step that returns the state.
func (tn *scenario) shown(what, of string) string {
	tn.t.Helper()
	var all []string
	switch what {
	case "at":
		l := tn.leaseOf(addr(of))
		if l.ID == 0 {
			return "none"
		}
		all = []string{l.State, cmp.Or(l.Name, "-"), strconv.Itoa(int(l.MAC[5])), tn.networkOf(l.Pool)}
	case "leaks":
		return strconv.Itoa(tn.w.State().Counts[ipam.UnusedLease])
	case "atleast":
		n, err := strconv.Atoi(of)
		must(tn.t, err)
		return strconv.FormatBool(tn.w.State().Runs >= n)
	case "engine":
		return tn.w.State().Engine
	case "state":
		s := tn.w.State()
		all = []string{s.Engine, strconv.Itoa(s.Runs)}
	case "seen":
		l := tn.leaseOf(addr(of))
		if by := tn.w.SeenBy("local", l.Address, l.ID); by != nil {
			return by.Container
		}
		return "nobody"
	case "word":
		got := tn.word(addr(of))
		all = []string{map[ipam.Sight]string{ipam.NotSeen: "unseen", ipam.Seen: "seen", ipam.Gone: "gone",
			ipam.CutOff: "cutoff"}[got.Sight], got.Container}
	case "owned":
		for r, err := range tn.service.Reservations(tn.t.Context(), ipam.AddressFilter{}) {
			must(tn.t, err)
			all = append(all, r.Owner+"="+r.Address.String())
		}
	case "attachments":
		attached, err := tn.service.Attachments(tn.t.Context())
		must(tn.t, err)
		for _, at := range attached {
			all = append(all, tn.networkOf(at.ID))
		}
		slices.Sort(all)
	case "subnets":
		subnets, err := tn.service.Subnets(tn.t.Context(), "")
		must(tn.t, err)
		for _, sub := range subnets {
			all = append(all, sub.CIDR.String())
		}
	case "told":
		events, err := tn.service.Events(tn.t.Context(), ipam.EventFilter{})
		must(tn.t, err)
		for _, e := range events {
			if e.Verb == ipam.ForeignHolderTold || e.Verb == ipam.OwnerElsewhereTold {
				all = append(all, fmt.Sprintf("[%s %s %s: %s by %s]", e.Verb, e.Address, e.Name, e.Detail, e.Actor))
			}
		}
	case "actor":
		for _, verb := range []ipam.Verb{ipam.LeaseReleased, ipam.LeaseTaken, ipam.PoolReleased, ipam.SubnetRemoved,
			ipam.ReservationRemoved} {
			if verb.String() == of {
				return tn.lastEvent(verb).Actor
			}
		}
		tn.t.Fatalf("there is no event %s", of)
	default:
		tn.t.Fatalf("there is no step %s", what)
	}
	return strings.TrimSpace(strings.Join(all, " "))
}

// networkOf returns the Docker network of an attachment.
func (tn *scenario) networkOf(pool ipam.ID) string {
	for name, id := range tn.pools {
		if id == pool {
			return name
		}
	}
	return "-"
}
