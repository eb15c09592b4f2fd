package crash

import (
	"flag"
	"math/rand/v2"
	"testing"
	"time"

	"berth/test/lab"
)

var (
	rounds = flag.Int("rounds", 5, "how often TestSoak kills the daemon")
	seed   = flag.Uint64("seed", 0, "of TestSoak's choices; 0: another one each time")
)

// sample is the number of n rounds to run under -short: two, as the second starts from the first one's state.
func sample(n int) int {
	if testing.Short() {
		return min(n, 2)
	}
	return n
}

// TestSoak kills the daemon under 16 callers, again and again, at random moments, and sometimes again while it
// starts: 0 acknowledged leases are lost and 0 addresses given twice (GA-22, BO-2, LN-12).
func TestSoak(t *testing.T) {
	if *seed == 0 {
		*seed = rand.Uint64()
	}
	eachStore(t, soak)
}

func soak(t *testing.T, p *place) {
	n := sample(*rounds)
	t.Logf("%d rounds, -seed %d", n, *seed)
	random := rand.New(rand.NewPCG(*seed, 0))
	begin := time.Now()
	l := newLedger(p)
	d := p.start()
	shared, err := l.attach("10.9.0.0/22", map[string]string{"sticky": "off"})
	lab.Must(t, err)
	kills := 0
	for round := range n {
		killUnderLoad(l, d, shared.id, random)
		kills++
		for random.IntN(3) == 0 {
			d = p.launch()
			time.Sleep(time.Duration(random.IntN(60)) * time.Millisecond) // any moment of its start
			d.Kill()
			kills++
		}
		d = p.start()
		l.verify()
		d.fsck()
		if t.Failed() {
			t.Fatalf("in round %d of -seed %d; the log of the last life:\n%s", round+1, *seed, d.Log())
		}
		l.settle()
		if (round+1)%50 == 0 {
			t.Logf("%d rounds, %d kills, %d calls acknowledged", round+1, kills, l.acked)
		}
	}
	d.Stop(d.t)
	t.Logf("%d kills, %d calls acknowledged, %d addresses held at the end, 0 lost, 0 given twice, in %s",
		kills, l.acked, len(l.holder), time.Since(begin).Round(time.Millisecond))
}

// killUnderLoad lets 16 callers work and kills the daemon after a random number of acknowledged calls.
func killUnderLoad(l *ledger, d *daemon, shared string, random *rand.Rand) {
	l.t.Helper()
	stop := make(chan struct{})
	l.wakeAfter(1 + random.IntN(1500))
	wait := work(l, shared, random.Uint64(), stop)
	select {
	case <-l.wake:
	case <-time.After(patience):
		l.t.Errorf("the callers hear nothing:\n%s", d.Log())
	}
	d.Kill()
	close(stop)
	wait()
}

// settle shrinks the ledger to a size that a round can verify: it releases half of the addresses, and all pools
// but the first.
func (l *ledger) settle() {
	l.t.Helper()
	n := 0
	for _, le := range l.open {
		if n++; n%2 == 0 || n > 200 {
			l.mustGive(le)
		}
	}
	kept := l.pools[:1]
	for _, p := range l.pools[1:] {
		if err := l.detach(p); err != nil {
			l.t.Errorf("releasing pool %s: %v", p.cidr, err)
		}
	}
	l.pools = kept
}
