//go:build engine

package engine

import (
	"net/netip"
	"slices"
	"testing"
	"time"

	"berth/test/lab"
)

// While the engine hangs, address requests do not wait for it. If the engine sends no names, the witness
// attributes each of them from its memory.
func TestHanging(t *testing.T) {
	t.Parallel()
	e := engineOf(t, 52)
	k := startKept(t, e.Engine, e.Sockets, ways(e.Engine)[0], 152)
	k.idlers()
	k.docker("stop", "--time", "1", k.container(k.network)) // the only container that a request can be from
	d, all := k.Berth.(*Daemon), k.leases(k.v4("0/25"))
	pool := all[slices.IndexFunc(all, func(l Lease) bool { return l.Kind == "automatic" })].Pool
	lab.Must(t, e.Freeze())
	t.Cleanup(func() {
		lab.Check(t, e.Thaw())
	})
	const requests = 40
	made, begun := k.witness().Guesses.Made, time.Now()
	for range requests {
		var answer struct{ Address netip.Prefix }
		lab.Must(t, lab.Call(lab.Over(d.PluginSocket()), "RequestAddress", map[string]any{"PoolID": pool}, &answer))
		lab.Must(t, giveByHand(d.PluginSocket(), pool, answer.Address.Addr().String()))
	}
	if took := time.Since(begun); took > 60*time.Second {
		t.Errorf("%d requests took %s while the engine hung", requests, took)
	}
	if guessed := k.witness().Guesses.Made - made; noNames.there() && guessed != requests {
		t.Errorf("while the engine hung, %d of %d requests were attributed", guessed, requests)
	}
	lab.Must(t, e.Thaw())
	k.sound()
}
