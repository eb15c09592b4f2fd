//go:build engine

package engine

import (
	"net/netip"
	"slices"
	"testing"
	"time"
)

// An engine that hangs keeps nobody waiting who asks for an address: who it may be from is told out of the witness's
// memory. Batches of requests without a name are timed in turn: where nobody witnesses, where a witness does, and
// while its engine is stopped where it is. What a busy machine adds is in all of them; so what is asked is generous,
// and the ratio is told. Under -short nothing is asked of the times: while the engine hangs, each request is answered,
// and as somebody's.
func TestHanging(t *testing.T) {
	beside(t)
	e := engineOf(t, 52)
	all := ways(e.Engine)
	seen, unseen := startKept(t, e.Engine, e.Sockets, all[0], 152), startKept(t, e.Engine, e.Sockets, all[2], 153)
	for _, k := range []*kept{seen, unseen} {
		k.idlers()
		k.docker("stop", "--time", "1", k.container(k.network)) // the one whom a request can be from
	}
	t.Cleanup(func() {
		if err := e.Thaw(); err != nil {
			t.Error(err)
		}
	})
	rounds := sample(0, 1, 15)
	var alone, beside, hanging []time.Duration
	hang := func() {
		t.Helper()
		if err := e.Freeze(); err != nil {
			t.Fatal(err)
		}
		made := seen.witness().Guesses.Made
		hanging = append(hanging, seen.asked())
		guessed := seen.witness().Guesses.Made - made
		if err := e.Thaw(); err != nil {
			t.Fatal(err)
		}
		if guessed != batch {
			t.Fatalf("while the engine hung, %d of %d requests were taken for somebody's", guessed, batch)
		}
	}
	for round := range rounds { // in the one order and in the other, so that none is always the first
		if round%2 == 1 {
			hang()
		}
		beside = append(beside, seen.asked())
		if round%2 == 0 {
			hang()
		}
		alone = append(alone, unseen.asked())
	}
	witness, hung := ratio(beside, alone), ratio(hanging, beside)
	t.Logf("RequestAddress, the median of %d: %s without a witness, %s with one (%.3f), %s while the engine "+
		"hangs (%.3f)",
		rounds*batch, median(alone), median(beside), witness, median(hanging), hung)
	if !testing.Short() && (witness > 1.5 || hung > 1.5) {
		t.Errorf("a witness makes requests %.2f times as slow, and an engine that hangs %.2f times", witness, hung)
	}
	seen.sound()
	unseen.sound()
}

// batch is how many requests are timed one after the other.
const batch = 40

// asked is the median time of the answer to a request without a name, each of which is given back.
func (k *kept) asked() time.Duration {
	k.Helper()
	d, all := k.Berth.(*Daemon), k.leases(k.v4("0/25"))
	pool := all[slices.IndexFunc(all, func(l Lease) bool { return l.Kind == "automatic" })].Pool
	var took []time.Duration
	for range batch {
		var answer struct{ Address netip.Prefix }
		began := time.Now()
		if err := call(d.PluginSocket(), "RequestAddress", map[string]any{"PoolID": pool}, &answer); err != nil {
			k.Fatal(err)
		}
		took = append(took, time.Since(began))
		if err := giveByHand(d.PluginSocket(), pool, answer.Address.Addr().String()); err != nil {
			k.Fatal(err)
		}
	}
	return median(took)
}

func median(all []time.Duration) time.Duration { return slices.Sorted(slices.Values(all))[len(all)/2] }

// ratio is the middle one of how many times as long each took as the one beside it.
func ratio(all, than []time.Duration) float64 {
	var times []float64
	for i := range all {
		times = append(times, float64(all[i])/float64(than[i]))
	}
	return slices.Sorted(slices.Values(times))[len(times)/2]
}
