package cluster

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"berth/internal/allocator"
	"berth/internal/ipam"
)

// A host remembers its own records and the plan, not what other hosts hold, and nothing that has ended.
func TestRecall(t *testing.T) {
	r, a, b := twoHosts(t, 2)
	r.plays(`
		a: headroom 2
		a: remembered
	`)
	mem, err := readRecalled(t.Context(), a.own)
	if err != nil || mem == nil {
		t.Fatal(mem, err)
	}
	own, headroom := 0, 0
	for _, leases := range mem.leases {
		for addr, l := range leases {
			switch {
			case l.Kind == ipam.Headroom:
				headroom++
			case l.Host == "a" && l.Attachment != (ipam.ID{}):
				own++
				if _, runs := a.runs[addr]; !runs || l.ID > mem.head.Last {
					t.Errorf("%s is remembered: %+v", addr, l)
				}
			case l.Host == "b" && l.Attachment != (ipam.ID{}) && l.Held():
				t.Errorf("%s of host b is remembered", addr)
			}
		}
	}
	if own != len(a.runs) || headroom != 2 || len(mem.attachments) != 1 || len(mem.networks) != 2 ||
		len(mem.hosts) != 2 {
		t.Errorf("%d own, %d of headroom, %d holds, %d networks, %d hosts", own, headroom, len(mem.attachments),
			len(mem.networks), len(mem.hosts))
	}
	if counts := mem.head.Trace.Counts; counts[a.id.String()] == 0 || counts[b.id.String()] == 0 ||
		mem.head.Trace.Place == 0 {
		t.Errorf("%+v", mem.head)
	}
}

// Whatever two hosts do before and after a snapshot, and however etcd goes back: a running container's address
// is never given to another, and it belongs to the host that runs it after both hosts have mended.
func TestMendKeepsWhatRuns(t *testing.T) {
	t.Parallel()
	for round := range *mendRounds {
		rng := rand.New(rand.NewPCG(uint64(round), 13))
		t.Run(fmt.Sprint(round), func(t *testing.T) {
			t.Parallel()
			keepsWhatRuns(t, rng)
		})
	}
}

func keepsWhatRuns(t *testing.T, rng *rand.Rand) {
	r := newBackRig(t)
	t.Cleanup(r.end)
	r.plays(fmt.Sprintf(`
		a: lan %d
		a,b: attach
	`, rng.IntN(5)))
	hosts := []*backHost{r.hosts["a"], r.hosts["b"]}
	mac := 1
	act := func(n int) {
		for range n {
			h := hosts[rng.IntN(2)]
			if addrs := allocator.SortedAddrs(h.runs); len(addrs) > 0 && rng.IntN(3) == 0 {
				h.end(addrs[rng.IntN(len(addrs))])
				continue
			}
			mac++
			h.mustRun(mac)
		}
	}
	act(rng.IntN(20))
	// each host has something to lose
	r.plays(`
		save
		a,b: remembered
		a: run 1001
		b: run 1002
	`)
	act(rng.IntN(40))
	r.plays("a,b: remembered")
	act(rng.IntN(10)) // the engine knows this, and perhaps no store does
	back := []string{"back", "back", "back", "empty"}[rng.IntN(4)]
	for _, name := range []string{"a", "b"} {
		if rng.IntN(2) == 0 {
			r.plays(name + ": kill")
			back += "\n" + name + ": start"
		}
	}
	first := rng.IntN(2)
	r.plays(strings.NewReplacer("FIRST", hosts[first].name, "LAST", hosts[1-first].name).Replace(back + `
		a,b: distrusts
		FIRST: run 2000 ! back
		FIRST: mend -> LAST
		LAST: run 2000 ! back
		LAST: mend ->
		a,b: ready
		a: holds
		a: run 3000 30
		b: run 4000 30
		b: holds
	`))
}
