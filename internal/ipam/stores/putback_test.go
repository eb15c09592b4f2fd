package stores_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"berth/internal/advice"
	"berth/internal/ipam"
	"berth/internal/ipam/ipamtest"
	"berth/internal/ipam/service"
	"berth/internal/ipam/stores"
	"berth/store"
	"berth/store/mem"
)

// clusterBackup returns a store with the records of a cluster.
func clusterBackup(t *testing.T) (st *mem.Store, r *copyRoom, shown []string) {
	r = newCopyRoom(t)
	cluster := r.cluster("h1", r.member)
	mustCopy(t, r.own(), cluster, ipam.CopyOptions{})
	return r.common, r, seen(t, cluster)
}

// A restored store has the records of the backup, and the hosts can use it.
func TestPutBack(t *testing.T) {
	backup, r, want := clusterBackup(t)
	to := mem.New()
	done := 0
	n, err := stores.PutBack(ctx, backup, to, to.Join(), func(d, total int) {
		if d < done || d > total {
			t.Errorf("it is at %d of %d, behind %d", d, total, done)
		}
		done = d
	})
	fine(t, err)
	if diff := cmp.Diff(ipamtest.Dump(t, backup), ipamtest.Dump(t, to)); diff != "" || n != len(ipamtest.Dump(t, to)) {
		t.Fatalf("%d records:\n%s", n, diff)
	}
	r.common = to
	again := r.cluster("h1", r.member)
	if diff := cmp.Diff(want, seen(t, again)); diff != "" {
		t.Fatal(diff)
	}
	if _, err := again.RequestAddress(ctx, ipam.AddressRequest{Pool: r.Pools["B"], MAC: ipamtest.MAC(8)}); err != nil {
		t.Error(err)
	}
	before := ipamtest.Dump(t, to)
	if _, err := stores.PutBack(ctx, backup, to, to, nil); !errors.Is(err, ipam.ErrInUse) ||
		!strings.Contains(err.Error(), "only into an empty store") {
		t.Errorf("over what is there: %v", err)
	}
	if diff := cmp.Diff(before, ipamtest.Dump(t, to)); diff != "" {
		t.Errorf("it was changed:\n%s", diff)
	}
	if _, err := stores.PutBack(ctx, r.Store, mem.New(), to, nil); !errors.Is(err, ipam.ErrInvalid) ||
		!strings.Contains(err.Error(), "a host's own store") {
		t.Errorf("a host's own: %v", err)
	}
}

// A restore that is cut off anywhere leaves a store that nobody opens. It can begin again.
func TestPutBackCutOff(t *testing.T) {
	backup, r, _ := clusterBackup(t)
	want := ipamtest.Dump(t, backup)
	for n := 1; ; n++ {
		to := mem.New()
		cut := &cutting{Store: to, at: n, fail: sharedFaults[0]}
		_, err := stores.PutBack(ctx, backup, cut, to, nil)
		if err == nil {
			if n < 5 {
				t.Fatalf("it has %d updates", n)
			}
			return
		}
		if len(ipamtest.Dump(t, to)) > 0 {
			if _, err := service.Open(ctx,
				service.Config{Store: to.Join(), Host: "h1", Now: r.Clock.Now, Member: r.member}); err == nil ||
				!strings.Contains(advice.Text(err), "`berth state restore --shared`") {
				t.Fatalf("cut off in update %d, and opened: %v", n, err)
			}
		}
		if n == 3 { // something of another backup is there
			err := to.Update(ctx, func(tx store.Tx) error { return tx.Put([]byte("zz"), []byte("x")) })
			fine(t, err)
		}
		if _, err := stores.PutBack(ctx, backup, to, to, nil); err != nil {
			t.Fatalf("cut off in update %d, and not begun again: %v", n, err)
		}
		if diff := cmp.Diff(want, ipamtest.Dump(t, to)); diff != "" {
			t.Fatalf("cut off in update %d:\n%s", n, diff)
		}
	}
}

// A restored store is not opened if its records read back otherwise than they were written.
func TestPutBackDiffers(t *testing.T) {
	backup, r, _ := clusterBackup(t)
	for name, st := range map[string]func(*mem.Store) store.Store{
		"a record":   func(to *mem.Store) store.Store { return &tampered{to.Join(), "l"} },
		"too little": func(*mem.Store) store.Store { return mem.New() },
		"too much": func(to *mem.Store) store.Store {
			more := mem.New()
			return &later{to, more, func() {
				putAll(t, more, raw(t, to))
				putAll(t, more, map[string]string{"zz": "x"})
			}}
		},
	} {
		to := mem.New()
		if _, err := stores.PutBack(ctx, backup, to, st(to), nil); err == nil ||
			!strings.Contains(err.Error(), "differ from the backup") {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := service.Open(ctx,
			service.Config{Store: to.Join(), Host: "h1", Now: r.Clock.Now, Member: r.member}); err == nil {
			t.Errorf("%s: it is opened", name)
		}
	}
}

// later is a store that is filled when it is first read.
type later struct {
	*mem.Store
	other *mem.Store
	fill  func()
}

func (l *later) View(ctx context.Context, fn func(store.Tx) error) error {
	if l.fill != nil {
		l.fill()
		l.fill = nil
	}
	return l.other.View(ctx, fn)
}
