package cluster

import (
	"context"
	"errors"
	"strings"
	"testing"

	"berth/internal/ipam"
	"berth/store"
)

// While the store is set back to an older state, Berth gives no address, not even from the headroom or for a
// repeated request, and makes no subnet and no edit. A release succeeds and is kept.
func TestBackGivesNothing(t *testing.T) {
	for _, state := range []string{"as it was", "restarted", "restarted, and etcd is away"} {
		restarted := state != "as it was"
		_, a, pool := newLan(t, 4)
		a.mustLook()
		had := a.take(ipam.AddressRequest{Pool: pool, MAC: testMAC(1)})
		if n := a.State().Headroom[0].Claimed; n != 4 {
			t.Fatal(n, "addresses of headroom")
		}
		back := &store.Back{Why: "it was put back", Since: a.now}
		a.handle.Cut(errors.New("for the rig"))
		if restarted {
			a.keepDoubt(t.Context(), back)
			a.boot()
			if state == "restarted" {
				a.setFault(back)
			} else {
				a.setFault(store.ErrAway)
			}
		}
		a.Shared.reach = func() store.Reach {
			if restarted {
				return store.Reach{Err: store.ErrAway}
			}
			return store.Reach{Err: back, Since: back.Since}
		}
		for _, req := range []ipam.AddressRequest{{MAC: testMAC(2)}, {MAC: testMAC(1)},
			{MAC: testMAC(3), Preferred: had.Next()}, {Gateway: true}, {Preferred: had}} {
			req.Pool = pool
			if addr, err := a.ask(req); !errors.Is(err, store.ErrBack) || !errors.Is(err, ipam.ErrAway) ||
				!strings.Contains(told(err), "store.mend") {
				t.Errorf("%s: %+v is answered with %v, %v", state, req, addr, err)
			}
		}
		if _, err := a.RequestPool(context.Background(),
			ipam.PoolRequest{Network: "lan", CIDR: lanCIDR}); !errors.Is(err, store.ErrBack) {
			t.Error(err)
		}
		if _, err := a.Edit(context.Background(), ipam.EditOptions{},
			&ipam.RemoveNetwork{Network: "lan"}); !errors.Is(err, store.ErrBack) {
			t.Error(err)
		}
		a.give(pool, had)
		if st := a.State(); st.Waiting != 1 || !errors.Is(st.Err, store.ErrBack) || !st.Since.Equal(back.Since) {
			t.Errorf("%+v", st)
		}
	}
}
