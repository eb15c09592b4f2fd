package edit_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"berth/internal/ipam"
	"berth/internal/ipam/ipamtest"
	"berth/store"
	"berth/store/storetest"
)

// With an idempotency key an edit is made once. Its answer is kept for 24 hours. A refused edit and a dry run do not
// use up a key.
func TestKeys(t *testing.T) {
	r := ipamtest.New(t)
	r.Run(`
		network net1 subnet=192.0.2.0/24,pool
		@key=k1/a take net1 vm -1:add -> 192.0.2.1
		wait 23h59m59s
		restart
		@key=k1/a take net1 vm -1:add -> again 192.0.2.1
		@key=k1/b take net1 vm -1:add ! keyreused
		@key=k2/a take net1 vm -1:add -> 192.0.2.2
		# Trim takes what is older, and that only.
		trim
		@key=k1/a take net1 vm -1:add -> again 192.0.2.1
		wait 2s
		trim
	`)
	if n := ipamtest.CountKeys(t, r.Store, 'k'); n != 1 {
		t.Errorf("%d keys are left", n)
	}
	r.Run(`
		@key=k1/b take net1 vm -1:add -> 192.0.2.3
		@key=k2/a take net1 vm -1:add -> again 192.0.2.2
		# Its time is over and nobody trimmed: the key is free, and its new use has its own 24 hours.
		wait 24h
		@key=k1/c take net1 vm -1:add -> 192.0.2.4
		trim
		@key=k1/c take net1 vm -1:add -> again 192.0.2.4
		show net1 taken -> vm:0.0=192.0.2.1 vm:1.0=192.0.2.2 vm:2.0=192.0.2.3 vm:3.0=192.0.2.4

		@key=k3 take net2 other pool ! notfound
		@dry @key=k3 take net1 other pool -> 192.0.2.5
		@key=k3 take net1 other pool -> 192.0.2.5
	`)
	asked := func() string {
		out, err := r.S.Edit(ctx, ipam.EditOptions{Key: "k4"}, &ipam.TakeAddress{Network: "net1", Owner: "vm2"})
		fine(t, err)
		text, err := json.Marshal(out)
		fine(t, err)
		return strings.Replace(string(text), `,"replayed":true`, "", 1)
	}
	first := asked()
	unchanged(r, "a replay", func() {
		if again := asked(); again != first {
			t.Errorf("%s\nand again %s", first, again)
		}
	})
}

// Many keys are removed in batches.
func TestKeysTrimmedInPages(t *testing.T) {
	r := ipamtest.New(t)
	r.Run("network net1")
	for i := range 1100 {
		_, err := r.Step(strings.Fields(fmt.Sprintf("@key=key%d network.set net1 tag.n=%d", i, i)))
		fine(t, err)
	}
	for _, want := range []int{1100, 0} {
		keys, times := ipamtest.CountKeys(t, r.Store, 'k'), ipamtest.CountKeys(t, r.Store, 't')
		if keys != want || times != want {
			t.Fatalf("%d keys, %d times", keys, times)
		}
		r.Run("wait 24h\ntrim")
	}
}

// Whatever the store does to an edit, its key counts as used if and only if the edit was made. The client repeats
// the edit until it knows the outcome.
func TestKeysUnderFaults(t *testing.T) {
	disk := errors.New("the disk")
	full, written, lost := storetest.Fault{Before: store.ErrNoSpace}, storetest.Fault{After: disk},
		storetest.Fault{Lost: disk}
	for _, faults := range [][]storetest.Fault{{full}, {full, full}, {written}, {lost}, {{Reruns: 3}}, {full, written},
		{lost, written, {Reruns: 1}}} {
		t.Run(fmt.Sprintf("%+v", faults), func(t *testing.T) {
			r := ipamtest.New(t)
			r.Run("network net1 subnet=192.0.2.0/24,pool")
			got := ""
			for _, fault := range append(faults, storetest.Fault{}) {
				r.Store.Next(fault)
				var err error
				if got, err = r.Step(strings.Fields("@key=k/1 take net1 vm -1:add")); err == nil {
					break
				}
				if errors.Is(err, store.ErrUnknown) {
					r.Store.Heal()
					r.Open() // as after a restart
				}
			}
			if strings.TrimPrefix(got, "again ") != "192.0.2.1" {
				t.Errorf("got %s", got)
			}
			r.Run("show net1 taken -> vm:0.0=192.0.2.1")
		})
	}
}
