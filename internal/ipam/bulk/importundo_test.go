package bulk_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"berth/internal/advice"
	"berth/internal/ipam"
	"berth/internal/ipam/ipamtest"
	"berth/store/storetest"
)

// TestUndoRefused: what somebody uses by now is named, and once he does not, the taking back goes on.
func TestUndoRefused(t *testing.T) {
	p := largePlan()
	r := ipamtest.New(t)
	r.Run(beforeLargePlan)
	before := records(t, r.Store)
	half, cancel := context.WithCancel(ctx)
	_, err := r.S.Import(half, p, ipam.ImportOptions{Progress: func(done, total int) {
		if done > total*9/10 {
			cancel()
		}
	}})
	if !errors.Is(err, context.Canceled) ||
		!strings.Contains(advice.Text(err),
			"finish it with `berth import --resume`, or take it back with `berth import --undo`") {
		t.Fatalf("an import that is interrupted ended with %v", err)
	}
	wholeOrNot(r, p)
	undo := func(want string) {
		t.Helper()
		_, err := r.S.UndoImport(ctx, nil)
		if !errors.Is(err, ipam.ErrInUse) {
			t.Fatal(err)
		}
		for part := range strings.SplitSeq(want, "; ") {
			if !strings.Contains(advice.Text(err), part) {
				t.Fatalf("%s, want %q", advice.Text(err), want)
			}
		}
		wholeOrNot(r, p)
		if state, err := r.S.ImportState(ctx); err != nil || state == nil || !state.Undoing || state.Running {
			t.Fatalf("%+v, %v", state, err)
		}
		if _, err := r.S.ResumeImport(ctx, nil); !errors.Is(err, ipam.ErrInUse) ||
			!strings.Contains(advice.Text(err), "berth import --undo") {
			t.Fatalf("resumed while it is taken back: %v", err)
		}
	}
	step := func(line string) {
		t.Helper()
		r.Line(line)
	}
	step("attach D net=large")
	undo("Docker network is on the subnet 10.2.0.0/24 of network large; remove it with `docker network rm`")
	step("detach D")
	step("take large nas pool")
	undo("network large is in use: 10.2.0.100 is held by nas")
	step("release large nas")
	step("reserve large nas 10.2.3.200")
	undo("network large is in use: 10.2.3.200 is reserved for nas")
	step("unreserve large nas")
	step("exclude large 10.2.5.77")
	undo("network large was changed since it was imported; if it is to go all the same, remove it with `berth " +
		"network rm large`")
	step("network.rm large ! inuse") // its own addresses and reservations
	step("release large rtr")
	step("network.rm large force")
	step("reserve seen nas")
	undo("network seen is in use: nas has a reservation in it; end that with `berth reservation rm`")
	step("unreserve seen nas")
	step("reserve there x 10.1.3.200")
	undo("the subnet 10.1.3.0/24 of network there is in use: 10.1.3.200 is reserved for x")
	step("unreserve there x")
	report, err := r.S.UndoImport(ctx, nil)
	if err != nil || !report.Undone {
		t.Fatalf("%+v, %v", report, err)
	}
	sound(r)
	if diff := cmp.Diff(before, records(t, r.Store), ignoreRevisions); diff != "" {
		t.Fatalf("after it was taken back:\n%s", diff)
	}
	if _, err := r.S.UndoImport(ctx, nil); !errors.Is(err, ipam.ErrNotFound) ||
		!strings.Contains(err.Error(), "no import was cut off") {
		t.Errorf("taken back twice: %v", err)
	}
	if _, err := r.S.ResumeImport(ctx, nil); !errors.Is(err, ipam.ErrNotFound) {
		t.Errorf("finished after it was taken back: %v", err)
	}
	imports2(r, p)
}

// TestUndoCutOff has the store fail in each transaction of the taking back, and goes on with it.
func TestUndoCutOff(t *testing.T) {
	p := largePlan()
	for n := range storetest.Sampled(t, 3) {
		at := n + 1
		r := ipamtest.New(t)
		r.Run(beforeLargePlan)
		before := records(t, r.Store)
		half, cancel := context.WithCancel(ctx)
		if _, err := r.S.Import(half, p, ipam.ImportOptions{Progress: func(done, total int) {
			if done > total*9/10 {
				cancel()
			}
		}}); !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
		failed := false
		r.Store.Each(func(n int) storetest.Fault {
			if failed = n >= at; n == at {
				return storetest.Fault{After: errors.New("broken")}
			}
			return storetest.Fault{}
		})
		_, err := r.S.UndoImport(ctx, nil)
		r.Store.Each(nil)
		r.Store.Heal()
		r.Open()
		wholeOrNot(r, p)
		if err != nil {
			if state, err := r.S.ImportState(ctx); err != nil {
				t.Fatal(err)
			} else if state != nil {
				if _, err := r.S.UndoImport(ctx, nil); err != nil {
					t.Fatalf("after transaction %d: %v", at, err)
				}
			}
		}
		sound(r)
		if diff := cmp.Diff(before, records(t, r.Store), ignoreRevisions); diff != "" {
			t.Fatalf("cut off in transaction %d:\n%s", at, diff)
		}
		if !failed {
			return
		}
	}
}
