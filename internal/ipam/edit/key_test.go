package edit_test

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"berth/internal/ipam"
	"berth/internal/ipam/ipamtest"
	"berth/store"
	"berth/store/storetest"
)

// With an idempotency key edits are made once; the answer is kept for 24 hours.
func TestKeys(t *testing.T) {
	r := ipamtest.New(t)
	r.Run("network net1 subnet=192.0.2.0/24,pool")
	take := func(key, request, owner string) (ipam.Outcome, error) {
		return r.S.Edit(ctx, ipam.EditOptions{Key: key, Request: sha256.Sum256([]byte(request))},
			&ipam.TakeAddress{Network: "net1", Owner: owner,
				Interface: ipam.Interface{Number: -1, Action: ipam.AddInterface}})
	}
	one, err := take("k1", "a", "vm")
	if err != nil || one.Replayed {
		t.Fatalf("%+v, %v", one, err)
	}
	r.Clock.Time = r.Clock.Time.Add(ipam.KeyAge - time.Second)
	r.Reopened()
	before := ipamtest.Dump(t, r.Store)
	again, err := take("k1", "a", "vm")
	if err != nil || !again.Replayed || ipamtest.Joined(again.Results[0].Addresses) !=
		ipamtest.Joined(one.Results[0].Addresses) ||
		again.Revision != one.Revision || len(again.Changes) != len(one.Changes) {
		t.Fatalf("%+v\n%+v, %v", one, again, err)
	}
	if diff := cmp.Diff(before, ipamtest.Dump(t, r.Store)); diff != "" {
		t.Fatalf("a replay wrote:\n%s", diff)
	}
	if _, err := take("k1", "b", "vm"); !errors.Is(err, ipam.ErrKeyReused) {
		t.Fatalf("a key for another request: %v", err)
	}
	if two, err := take("k2", "a", "vm"); err != nil || two.Replayed ||
		ipamtest.Joined(two.Results[0].Addresses) == ipamtest.Joined(one.Results[0].Addresses) {
		t.Fatalf("another key: %+v, %v", two, err)
	}
	// Trim takes what is older, and that only.
	fine(t, r.S.Trim(ctx))
	if again, err := take("k1", "a", "vm"); err != nil || !again.Replayed {
		t.Fatalf("trimmed early: %+v, %v", again, err)
	}
	r.Clock.Time = r.Clock.Time.Add(2 * time.Second)
	fine(t, r.S.Trim(ctx))
	for key := range ipamtest.Dump(t, r.Store) {
		if strings.HasPrefix(key, `"k`) && key != `"kk2"` {
			t.Errorf("the key %s was not trimmed", key)
		}
	}
	fresh, err := take("k1", "b", "vm")
	if err != nil || fresh.Replayed {
		t.Fatalf("after its time: %+v, %v", fresh, err)
	}
	if again, err := take("k2", "a", "vm"); err != nil || !again.Replayed {
		t.Fatalf("the other key: %+v, %v", again, err)
	}
	// Its time is over and nobody trimmed: the key is free, and its new use has its own 24 hours.
	r.Clock.Time = r.Clock.Time.Add(ipam.KeyAge)
	if late, err := take("k1", "c", "vm"); err != nil || late.Replayed {
		t.Fatalf("after its time, untrimmed: %+v, %v", late, err)
	}
	fine(t, r.S.Trim(ctx))
	if again, err := take("k1", "c", "vm"); err != nil || !again.Replayed {
		t.Fatalf("trimmed with its former use: %+v, %v", again, err)
	}
	r.Run("show net1 taken -> vm:0.0=192.0.2.1 vm:1.0=192.0.2.2 vm:2.0=192.0.2.3 vm:3.0=192.0.2.4")
}

// Many keys go in pages.
func TestKeysTrimmedInPages(t *testing.T) {
	r := ipamtest.New(t)
	r.Run("network net1")
	for i := range 1100 {
		if _, err := r.S.Edit(ctx, ipam.EditOptions{Key: fmt.Sprintf("key%d", i)},
			&ipam.ModifyNetwork{Network: "net1", Tags: map[string]*string{"n": new(fmt.Sprint(i))}}); err != nil {
			t.Fatal(err)
		}
	}
	if ipamtest.CountKeys(t, r.Store, 'k') != 1100 || ipamtest.CountKeys(t, r.Store, 't') != 1100 {
		t.Fatalf("%d keys, %d times", ipamtest.CountKeys(t, r.Store, 'k'), ipamtest.CountKeys(t, r.Store, 't'))
	}
	r.Clock.Time = r.Clock.Time.Add(ipam.KeyAge)
	fine(t, r.S.Trim(ctx))
	if ipamtest.CountKeys(t, r.Store, 'k') != 0 || ipamtest.CountKeys(t, r.Store, 't') != 0 {
		t.Fatalf("%d keys, %d times are left", ipamtest.CountKeys(t, r.Store, 'k'), ipamtest.CountKeys(t, r.Store, 't'))
	}
}

// A refused edit uses up no key; a dry run neither.
func TestKeyOfRefused(t *testing.T) {
	r := ipamtest.New(t)
	r.Run("network net1 subnet=192.0.2.0/30,pool")
	opt := ipam.EditOptions{Key: "k"}
	take := &ipam.TakeAddress{Network: "net2", Owner: "vm"}
	if _, err := r.S.Edit(ctx, opt, take); !errors.Is(err, ipam.ErrNotFound) {
		t.Fatal(err)
	}
	dry := opt
	dry.DryRun = true
	take.Network = "net1"
	if out, err := r.S.Edit(ctx, dry, take); err != nil || ipamtest.Joined(out.Results[0].Addresses) != "192.0.2.1" {
		t.Fatalf("%+v, %v", out, err)
	}
	if out, err := r.S.Edit(ctx, opt, take); err != nil || out.Replayed {
		t.Fatalf("%+v, %v", out, err)
	}
}

// Whatever the store does to an edit, its key is used exactly when it was made. It is repeated until it is known.
func TestKeysUnderFaults(t *testing.T) {
	disk := errors.New("the disk")
	for name, faults := range map[string][]storetest.Fault{
		"full":          {{Before: store.ErrNoSpace}},
		"full twice":    {{Before: store.ErrNoSpace}, {Before: store.ErrNoSpace}},
		"written":       {{After: disk}},
		"lost":          {{Lost: disk}},
		"run again":     {{Reruns: 3}},
		"full, written": {{Before: store.ErrNoSpace}, {After: disk}},
		"lost, written": {{Lost: disk}, {After: disk}, {Reruns: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			r := ipamtest.New(t)
			r.Run("network net1 subnet=192.0.2.0/24,pool")
			var out ipam.Outcome
			for _, fault := range append(faults, storetest.Fault{}) {
				r.Store.Next(fault)
				var err error
				out, err = r.S.Edit(ctx, ipam.EditOptions{Key: "k", Request: [32]byte{1}},
					&ipam.TakeAddress{Network: "net1", Owner: "vm",
						Interface: ipam.Interface{Number: -1, Action: ipam.AddInterface}})
				if err == nil {
					break
				}
				if errors.Is(err, store.ErrUnknown) {
					r.Store.Heal()
					r.Open() // as after a restart
				}
			}
			if len(out.Results) != 1 || ipamtest.Joined(out.Results[0].Addresses) != "192.0.2.1" {
				t.Errorf("%+v", out)
			}
			r.Run("show net1 taken -> vm:0.0=192.0.2.1")
		})
	}
}
