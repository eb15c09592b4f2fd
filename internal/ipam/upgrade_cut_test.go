package ipam_test

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"berth/internal/ipam"
	"berth/store"
	"berth/store/storetest"

	"github.com/google/go-cmp/cmp"
)

// A state of a newer Berth is refused with the reason, and not touched.
func TestNewerStateIsRefused(t *testing.T) {
	set := func(prefix string, value func([]byte) []byte) func(testing.TB, store.Store) {
		return func(t testing.TB, st store.Store) {
			err := st.Update(ctx, func(tx store.Tx) error {
				for rec, err := range tx.Scan(store.Prefix([]byte(prefix))) {
					if err != nil {
						return err
					}
					return tx.Put(append([]byte(nil), rec.Key...), value(append([]byte(nil), rec.Value...)))
				}
				return fmt.Errorf("there is no record %q", prefix)
			})
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	newer := func(b []byte) []byte { b[0] = 200; return b }
	for name, change := range map[string]func(testing.TB, store.Store){
		"format":     set("mformat", func([]byte) []byte { return []byte("4") }),
		"no format":  set("mformat", func([]byte) []byte { return []byte("two") }),
		"network":    set("n", newer),
		"subnet":     set("p", newer),
		"attachment": set("a", newer),
		"lease":      set("l", newer),
	} {
		t.Run(name, func(t *testing.T) {
			r := newRoom(t)
			r.run(planForEdits)
			change(t, r.store)
			before := dump(t, r.store)
			_, err := ipam.Open(ctx, ipam.Config{Store: r.store, Host: "h1", Now: r.clock.Now})
			if !errors.Is(err, ipam.ErrDamaged) {
				t.Fatalf("opened: %v", err)
			}
			if !strings.Contains(err.Error(), "newer") && !strings.Contains(err.Error(), "version") && !strings.Contains(err.Error(), "format") {
				t.Errorf("the reason is missing: %v", err)
			}
			if diff := cmp.Diff(before, dump(t, r.store)); diff != "" {
				t.Fatalf("it was changed:\n%s", diff)
			}
		})
	}
	// A record of a version beyond it in the state of before: nothing of that state is upgraded.
	records := formerRecords(t)
	for i := range records {
		if records[i].key[0] == 'n' {
			records[i].value[0] = 200
		}
	}
	r, _ := former(t, records)
	before := dump(t, r.store)
	if _, err := ipam.Open(ctx, ipam.Config{Store: r.store, Host: "h1", Now: r.clock.Now}); !errors.Is(err, ipam.ErrDamaged) {
		t.Fatal(err)
	}
	if diff := cmp.Diff(before, dump(t, r.store)); diff != "" {
		t.Fatal(diff)
	}
}

// manyNetworks are records of the version before: n networks of Docker, each with a subnet and an attachment.
func manyNetworks(n int) (all []record) {
	const created = `"created":"2026-01-02T03:04:05Z"`
	put := func(key []byte, format string, args ...any) {
		all = append(all, record{key, append([]byte{1}, fmt.Sprintf(format, args...)...)})
	}
	id := func(kind byte, i int) ipam.ID { return ipam.ID{byte(i >> 8), byte(i), kind, 7} }
	key := func(kind byte, id ipam.ID) []byte { return append([]byte{kind}, id[:]...) }
	put([]byte("slocal"), `{"name":"local",%s}`, created)
	for i := range n {
		network, subnet, attachment := id('n', i), id('p', i), id('a', i)
		put(key('n', network), `{"id":"%s","name":"net-%s","space":"local","policy":{},%s}`, network, network.Short(), created)
		cidr := netip.PrefixFrom(netip.AddrFrom4([4]byte{10, byte(i >> 8), byte(i), 0}), 24)
		put(append([]byte("plocal\x00\x04"), cidr.Addr().AsSlice()...), `{"id":"%s","network":"%s","space":"local","cidr":"%s","pools":[{"range":"%s"}],"attachments":["%s"],%s}`,
			subnet, network, cidr, cidr, attachment, created)
		put(key('a', attachment), `{"id":"%s","space":"local","subnet":"%s","cidr":"%s","host":"h1",%s}`, attachment, subnet, cidr, created)
	}
	return all
}

// An upgrade goes over many pages of networks, and may run each of its functions more than once.
func TestUpgradeInPages(t *testing.T) {
	const n = 1030 // two pages and a little
	for _, reruns := range []int{0, 2} {
		r, _ := former(t, manyNetworks(n))
		r.store.Each(func(int) storetest.Fault { return storetest.Fault{Reruns: reruns} })
		r.open()
		if problems, err := r.s.Check(ctx); err != nil || len(problems) > 0 {
			t.Fatalf("%d reruns: %d problems, %q, %v", reruns, len(problems), problems[:min(len(problems), 3)], err)
		}
		all, err := r.s.Networks(ctx, ipam.NetworkFilter{})
		if err != nil || len(all) != n {
			t.Fatalf("%d reruns: %d networks, %v", reruns, len(all), err)
		}
		for _, one := range []ipam.NetworkInfo{all[0], all[512], all[n-1]} {
			if got := r.show(one.Name); got.ID != one.ID || got.Docker != 1 || got.Planned {
				t.Errorf("%d reruns: network %s is %+v", reruns, one.Name, got)
			}
			r.edit(&ipam.ModifyNetwork{Network: one.Name, Name: ptr("core-" + one.ID.Short())})
		}
	}
}

// An upgrade that is cut off at any of its writes, before, after or in doubt, is gone on with by the next start, and
// comes to the same.
func TestUpgradeCutOff(t *testing.T) {
	died := errors.New("the disk")
	for name, records := range map[string][]record{"everything": formerRecords(t), "pages": manyNetworks(600)} {
		whole, _ := former(t, records)
		whole.open()
		want := withoutDrawn(dump(t, whole.store))
		for kind, fault := range map[string]storetest.Fault{"before": {Before: store.ErrNoSpace}, "after": {After: died}, "lost": {Lost: died}, "rerun": {Reruns: 1, Before: died}} {
			for at := 1; ; at++ {
				r, _ := former(t, records)
				fell := false
				r.store.Each(func(n int) storetest.Fault {
					if n != at {
						return storetest.Fault{}
					}
					fell = true
					return fault
				})
				_, err := ipam.Open(ctx, ipam.Config{Store: r.store, Host: "h1", Now: r.clock.Now, Memories: memories})
				if fell && err == nil {
					t.Fatalf("%s, %s %d: opened all the same", name, kind, at)
				}
				r.store.Each(nil)
				r.store.Heal()
				r.open()
				if diff := cmp.Diff(want, withoutDrawn(dump(t, r.store))); diff != "" {
					t.Fatalf("%s, cut off %s the write %d: it comes to something else:\n%s", name, kind, at, diff)
				}
				if !fell {
					break
				}
			}
		}
	}
}

// withoutDrawn is a dump less what is drawn by chance.
func withoutDrawn(dump map[string]string) map[string]string {
	delete(dump, `"mula"`)
	return dump
}

// Two networks of before whose names are the same, since the first digits of their ids were.
func TestUpgradeOfEqualNames(t *testing.T) {
	records := manyNetworks(3)
	for i := range records {
		records[i].value = []byte(strings.Replace(string(records[i].value), `"name":"net-00026e07"`, `"name":"net-00016e07"`, 1))
	}
	r, _ := former(t, records)
	r.open()
	if problems, err := r.s.Check(ctx); err != nil || len(problems) > 0 {
		t.Fatalf("%q, %v", problems, err)
	}
	seen := map[ipam.ID]bool{}
	for _, name := range strings.Fields(r.describe([]string{"networks"})) {
		seen[r.show(name).ID] = true
	}
	if len(seen) != 3 {
		t.Errorf("%d networks are found by their names", len(seen))
	}
	r.reopened()
}

// A Berth of before may have run once more on a state that had no network to refuse: what it made is upgraded then.
func TestUpgradeAfterDowngrade(t *testing.T) {
	r := newRoom(t) // a state of today, without a network
	err := r.store.Update(ctx, func(tx store.Tx) error {
		for _, rec := range manyNetworks(2) {
			if err := tx.Put(rec.key, rec.value); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := ipam.Open(ctx, ipam.Config{Store: r.store, Host: "h1", Now: r.clock.Now}); err != nil {
		return // refused is well, too
	}
	r.open()
	if problems, err := r.s.Check(ctx); err != nil || len(problems) > 0 {
		t.Fatalf("%q, %v", problems, err)
	}
	r.run("network.set net-00016e07 name=core\nshow core counts -> held 0 reserved 0 docker 1 planned true")
}
