package cluster

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"berth/internal/allocator"

	"berth/internal/ipam"
	"berth/internal/ipam/ledger"
	"berth/internal/ipam/service"
	"berth/store"
)

// plays runs a script. A line is a step of some hosts and its result. A host is created when it is first named:
//
//	save; back, empty             a snapshot; etcd is put back to it, or emptied
//	a,b: start, kill, attach      starts or kills their daemons; requests a pool of the network lan
//	ready, distrusts, remembered  waits for that state
//	lan N; planned                the network lan with headroom N; a reservation, and the network other
//	run N [COUNT]                 starts containers with MACs from N on; no other host runs their addresses
//	run N ! back                  is refused, because etcd went back
//	ends N, forgets N             ends a container; the engine knows only N of them
//	mend [accept|HOST]            -> MISSING,... [N collisions]; HOST is declared gone
//	waits HOST                    the host knows that it waits for HOST
//	joins                         waits until it is refused because others mend
//	holds                         what runs belongs to the host that runs it, in a sound store
//	has                           what planned made exists
//	headroom N                    waits until N addresses are claimed
//	stands NAME FOR, standing     a container stands in for another; those that did still do
func (r *backRig) plays(script string) {
	r.t.Helper()
	for line := range strings.Lines(script) {
		line = strings.TrimSpace(line)
		step, want, answered := strings.Cut(line+" ", " -> ")
		step, _, refused := strings.Cut(step, " ! ")
		names, step, hosted := strings.Cut(step, ": ")
		switch {
		case line == "":
		case line == "save":
			r.save()
		case !hosted:
			r.back(line == "empty")
		}
		if !hosted {
			continue
		}
		for name := range strings.SplitSeq(names, ",") {
			h := r.hosts[name]
			if h == nil {
				h = r.host(name)
			}
			got, err := h.step(strings.Fields(step))
			if refused != errors.Is(err, store.ErrBack) || !refused && err != nil ||
				answered && got != strings.TrimSpace(want) {
				r.t.Fatalf("%s\n\tgot %s, %v; %+v", line, got, err, h.report)
			}
		}
	}
}

func (h *backHost) step(words []string) (got string, err error) {
	h.r.t.Helper()
	n := 0
	_, _ = fmt.Sscan(append(words, "")[1], &n)
	switch words[0] {
	case "start":
		h.start()
	case "kill":
		h.kill()
	case "attach":
		h.attach()
	case "ready":
		h.ready()
	case "distrusts":
		h.distrusts()
	case "remembered":
		h.remembered()
	case "lan":
		h.ready()
		return "", h.edit(lanWith(n, lanCIDR))
	case "planned":
		wishes := []ipam.Wish{{Address: addrs("200")[0]}}
		return "", h.edit(&ipam.AddReservation{Network: "lan", Owner: "db", Wishes: wishes},
			&ipam.CreateNetwork{Name: "other", Space: ipam.GlobalSpace})
	case "run":
		return "", h.starts(n, append(words, "1", "1")[2])
	case "ends":
		for addr, mac := range h.runs {
			if mac == testMAC(n) {
				h.end(addr)
			}
		}
	case "forgets":
		h.forgets(n)
	case "mend":
		opt := ipam.MendOptions{Accept: slices.Contains(words, "accept")}
		if len(words) > 1 && !opt.Accept {
			opt.Gone = words[1:]
		}
		h.report, err = h.Mend(h.r.t.Context(), opt)
		got = strings.Join(h.report.Missing, ",")
		if n := len(h.report.Collisions); n > 0 {
			got += fmt.Sprintf(" %d collisions", n)
		}
		return strings.TrimSpace(got), err
	case "waits":
		mark := new(ipam.Mending)
		if !errors.As(h.State().Err, &mark) || !slices.Equal(mark.Missing, words[1:]) {
			return "", fmt.Errorf("its state is %+v", h.State())
		}
	case "joins":
		h.comes("it may not join", func() bool { return strings.Contains(fmt.Sprint(h.State().Err), "being mended") })
	case "holds":
		h.r.holdsWhatRuns(h)
	case "has":
		h.hasPlan()
	case "headroom":
		h.comes("its headroom is there",
			func() bool { st := h.State().Headroom; return len(st) == 1 && st[0].Claimed == n })
	case "stands":
		h.stood = append(h.stood, standsIn(h.r.t, h.svc(), words[1], words[2]))
	case "standing":
		standInsAre(h.r.t, h.svc(), h.stood...)
	default:
		h.r.t.Fatalf("there is no step %q", words)
	}
	return "", nil
}

func (h *backHost) edit(edits ...ipam.Edit) error {
	_, err := h.Edit(h.r.t.Context(), ipam.EditOptions{}, edits...)
	return err
}

func (h *backHost) svc() *service.Service {
	h.r.t.Helper()
	svc, err := h.Shared.service()
	fine(h.r.t, err)
	return svc
}

// starts starts count containers. No other host runs their addresses.
func (h *backHost) starts(mac int, text string) error {
	count, err := strconv.Atoi(text)
	for i := 0; i < count && err == nil; i++ {
		var addr netip.Addr
		if addr, err = h.run(mac + i); err != nil {
			break
		}
		for _, other := range h.r.hosts {
			if _, runs := other.runs[addr]; runs && other != h {
				return fmt.Errorf("%s runs on host %s", addr, other.name)
			}
		}
	}
	return err
}

// forgets makes the engine know only that many containers, so that the host remembers more than the engine
// reports.
func (h *backHost) forgets(most int) {
	for i, addr := range allocator.SortedAddrs(h.runs) {
		if i >= most {
			delete(h.runs, addr)
		}
	}
}

// hasPlan fails unless the reservation and the network made after the snapshot exist.
func (h *backHost) hasPlan() {
	t := h.r.t
	if n, err := h.svc().Network(t.Context(), "other"); err != nil || n.Name != "other" {
		t.Error(n, err)
	}
	found := 0
	for r, err := range h.svc().Reservations(t.Context(), ipam.AddressFilter{}) {
		fine(t, err)
		if r.Owner == "db" && r.Address == addrs("200")[0] {
			found++
		}
	}
	if found != 1 {
		t.Errorf("db's reservation is there %d times", found)
	}
}

// twoHosts returns two hosts on one network that each run a container when a snapshot is taken. After the
// snapshot each host starts more containers and ends the first one.
func twoHosts(t *testing.T, headroom int) (r *backRig, a, b *backHost) {
	t.Helper()
	r = newBackRig(t)
	t.Cleanup(func() { r.end() })
	r.plays(fmt.Sprintf(`
		a: lan %d
		a,b: attach
		a: run 1
		b: run 2
		save
		a: run 10 10
		b: run 30 10
		a: ends 1
		b: ends 2
		a: planned
		a,b: remembered
	`, headroom))
	return r, r.hosts["a"], r.hosts["b"]
}

// mended makes both hosts mend. No host gives an address before the last one has mended.
const mended = `
	a: mend -> b
	a,b: run 99 ! back
	a: waits b
	c: joins
	b: mend ->
	a,b,c: ready
	a: holds
	a: run 100 40
	b: run 200 40
	b: holds
`

// The daemons run, are restarted, or were killed; etcd goes back to a snapshot, or to nothing. After both hosts
// have mended, each host holds what it ran, what had ended is free, the plan is as before, and headroom is
// claimed.
func TestMend(t *testing.T) {
	t.Parallel()
	for name, way := range map[string]string{
		"under daemons that run":       "BACK\na,b: distrusts",
		"and the daemons are started":  "BACK\na,b: distrusts\na,b: kill\na,b: start\na,b: distrusts",
		"while the daemons are killed": "a,b: kill\nBACK\na,b: start\na,b: distrusts",
	} {
		for _, back := range []string{"back", "empty"} {
			t.Run(back+" "+name, func(t *testing.T) {
				t.Parallel()
				r, a, b := twoHosts(t, 4)
				r.plays(strings.ReplaceAll(way, "BACK", back))
				begun := time.Now()
				r.plays(mended)
				if took := time.Since(begun); took > 20*time.Second { // this takes a moment on an idle machine
					t.Errorf("they have mended after %s", took)
				}
				r.plays("b: has")
				for addr, l := range r.leases(a) {
					for _, h := range []*backHost{a, b} {
						if _, runs := h.runs[addr]; l.Host == h.name && l.Kind != ipam.Headroom && !runs {
							t.Errorf("%s is still host %s's", addr, l.Host)
						}
					}
				}
				r.plays(`
					a: headroom 4
					b: headroom 4
				`)
			})
		}
	}
}

// The mend does not wait for a host that is declared gone. When that host comes back, it mends without holding
// up others, and reports which of its addresses were given to others.
func TestMendWithoutOne(t *testing.T) {
	r, a, b := twoHosts(t, 0)
	r.plays(`
		b: kill
		back
		a: distrusts
		a: mend -> b
	`)
	if _, err := a.Mend(t.Context(), ipam.MendOptions{Gone: []string{"z"}}); err == nil ||
		!strings.Contains(err.Error(), "the known hosts are a, b") {
		t.Error(err)
	}
	r.plays(`
		a: mend b ->
		a: ready
	`)
	taken, mac := netip.Addr{}, 200 // an address of a container of b
	for ; b.runs[taken] == (ipam.MAC{}); mac++ {
		taken = a.mustRun(mac)
	}
	r.plays(`
		b: start
		b: distrusts
		b: mend -> 1 collisions
		b: ready
	`)
	c := b.report.Collisions[0]
	if c.Address != taken || !c.Seen || c.Kept != "b" || !strings.Contains(c.Here, "host b") ||
		!strings.Contains(c.There, "host a") {
		t.Errorf("%+v", c)
	}
	delete(a.runs, taken)
	a.mustRun(500) // host a was not held up
	r.plays("b: holds")
}

// If two hosts run the same address, the first one to report it keeps it, and the second one
// learns of it.
func TestMendDoubled(t *testing.T) {
	r, a, b := twoHosts(t, 0)
	r.plays(`
		a,b: kill
		back
	`)
	both := allocator.SortedAddrs(a.runs)[0]
	b.runs[both] = testMAC(500) // the engine reports it, for whatever reason
	r.plays(`
		a,b: start
		a,b: distrusts
		a: mend -> b
		b: mend -> 1 collisions
	`)
	if c := b.report.Collisions[0]; c.Kept != "a" || !c.Seen || c.Address != both {
		t.Fatalf("%+v", c)
	}
	delete(b.runs, both)
	r.plays(`
		b: ready
		b: holds
	`)
}

// In the snapshot, what one host claimed later belonged to another host. If that host has not mended yet, it
// keeps the addresses, and the first host knows at once that it no longer has them.
func TestMendDropsHeadroom(t *testing.T) {
	r := newBackRig(t)
	t.Cleanup(r.end)
	r.plays(`
		b: lan 2
		b: attach
		b: headroom 2
	`)
	b := r.hosts["b"]
	for n := 1; ; n++ {
		if _, err := b.run(n); errors.Is(err, ipam.ErrExhausted) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
	}
	r.plays(`
		b: remembered
		save
		b: ends 1
		b: ends 2
		b: ends 3
		b: ends 4
		b: headroom 2
		a: attach
		a: headroom 2
		a,b: remembered
		back
		a,b: distrusts
		a: mend -> b
	`)
	a := r.hosts["a"]
	if left := a.headroomOf(a.pool).addrs; len(left) != 0 {
		t.Errorf("the addresses are host b's until that has mended, and host a gives them: %v", left)
	}
	r.plays(`
		b: mend ->
		a,b: ready
		b: holds
		a: headroom 2
	`)
}

// A mend with accept restores only what runs.
func TestAccept(t *testing.T) {
	r, a, _ := twoHosts(t, 4)
	r.plays(`
		a,b: forgets 5
		back
		a,b: distrusts
		a: mend accept -> b
	`)
	if did := a.report; did.Running != 5 || did.Leases+did.Networks+did.Reserved+did.Headroom > 0 {
		t.Fatalf("%+v", did)
	}
	r.plays(`
		b: mend accept ->
		a,b: ready
		a: holds
	`)
	if n, err := a.svc().Network(t.Context(), "other"); err == nil {
		t.Errorf("the network that was made since is there: %+v", n)
	}
}

// A host whose own state is lost remembers nothing, and reports that. It still holds what runs on a Docker
// network that the store knows.
func TestMendKnowingNothing(t *testing.T) {
	r, _, b := twoHosts(t, 0)
	r.plays("b: kill")
	fine(t, b.own.Update(t.Context(), func(tx store.Tx) error {
		_, err := ledger.DeleteWhile(tx, ledger.KindRange(recallKeys), func(store.Record) bool { return true })
		return err
	}))
	r.plays(`
		back
		a: distrusts
		a: mend
		b: start
	`)
	b.comes("it is there", func() bool { svc, _ := b.Shared.service(); return svc != nil })
	r.plays("b: mend")
	if b.report.Remembers && b.report.Leases > 0 || b.report.Running != len(b.runs) {
		t.Fatalf("%+v, and %d run", b.report, len(b.runs))
	}
	r.plays(`
		b: ready
		b: holds
	`)
	knows := &mender{s: &service.Service{Ledger: ledger.New(ledger.Config{Host: "x"})}}
	if knows.mem != nil || len(sightings(knows.view)) > 0 {
		t.Error("it knows something")
	}
}
