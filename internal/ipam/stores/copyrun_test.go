package stores_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"berth/internal/ipam"
	"berth/internal/ipam/ipamtest"
	"berth/internal/ipam/service"
	"berth/internal/ipam/stores"
	"berth/store"
	"berth/store/mem"
	"berth/store/storetest"
)

// cutOffAt stops a copy to the shared store in its n-th transaction there.
func (r *copyRun) cutOffAt(n int) error {
	from, to := r.services()
	r.fail(false, n, 0)
	return r.copyWith(from, to, ipam.CopyOptions{})
}

// A copy that was cut off before the source let go leaves the host's daemon as it was. Addresses that the daemon
// gives and takes back meanwhile are copied, too, when the copy continues.
func TestCopyServedMeanwhile(t *testing.T) {
	r := newCopyRun(t, true)
	if err := r.cutOffAt(9); err == nil {
		t.Fatal("it was not cut off")
	}
	r.Open()
	r.Run(`
		back A 192.0.2.15
		ask A mac=11
		ask B mac=12
		unreserve lan db
		reserve seen vm/3
		detach C
		exclude lan 192.0.2.90+3
		network.rm empty
		network late space=lab subnet=10.3.0.0/24,pool
		take late x 0:ip0=10.3.0.9
	`)
	own := r.own()
	r.want = seen(t, own, r.spaces...)
	fine(t, r.copy(ipam.CopyOptions{}))
	r.moved()
}

// A reservation that expires during a copy has ended in the target.
func TestCopyEndsMeanwhile(t *testing.T) {
	r := newCopyRun(t, true)
	r.Open()
	for i := range 20 {
		r.Edit(&ipam.AddReservation{Network: "lan", Owner: fmt.Sprintf("guest/%d", i), Wishes: nil,
			WantedTerms: ipam.WantedTerms{For: ipam.Duration(time.Duration(i+1) * time.Minute)}},
			&ipam.AddReservation{Network: "seen", Owner: fmt.Sprintf("vm/g%d", i),
				WantedTerms: ipam.WantedTerms{For: ipam.Duration(time.Duration(i+1) * time.Minute)}})
	}
	from, to := r.services()
	other := r.other(2)
	steps := 0
	err := r.copyWith(from, to, ipam.CopyOptions{Progress: func(done, total int) {
		if steps++; steps%3 == 0 && steps < 200 {
			r.Clock.Time = r.Clock.Time.Add(20 * time.Second)
		}
		if steps%10 == 0 { // another host ends expired reservations, also in spaces that it does not see
			if _, err := other.RequestPool(ctx,
				ipam.PoolRequest{Space: "far",
					CIDR: netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 60, byte(steps / 10), 0}), 24)}); err != nil {
				t.Error(err)
			}
		}
	}})
	if err != nil && !strings.Contains(err.Error(), "continue with") {
		t.Fatal(err)
	}
	r.Clock.Time = r.Clock.Time.Add(time.Hour)
	if err != nil {
		fine(t, r.copy(ipam.CopyOptions{}))
	}
	_, to = r.services()
	// this edit first ends what has expired
	edits(t, to, "network after space=far")
	for info, err := range to.Reservations(ctx, ipam.AddressFilter{}) {
		if err != nil || strings.HasPrefix(info.Owner, "guest/") || strings.HasPrefix(info.Owner, "vm/g") {
			t.Errorf("%+v, %v", info, err)
		}
	}
	checked(t, to, other)
}

// tampered is a store that shows one record changed.
type tampered struct {
	store.Store
	prefix string
}

func (s *tampered) View(ctx context.Context, fn func(store.Tx) error) error {
	changed := errors.New("taken back")
	err := s.Update(ctx, func(tx store.Tx) error {
		var key, value []byte
		for rec, err := range tx.Scan(store.Prefix([]byte(s.prefix))) {
			if err != nil {
				return err
			}
			key, value = append(key, rec.Key...), append(value, rec.Value...)
			value[len(value)-1] ^= 1
			break
		}
		if key != nil {
			if err := tx.Put(key, value); err != nil {
				return err
			}
		}
		if err := fn(tx); err != nil {
			return err
		}
		return changed
	})
	if errors.Is(err, changed) {
		return nil
	}
	return err
}

// A source does not let go if any record, of any kind, is read back otherwise than it was written.
func TestCopyReadBackDiffers(t *testing.T) {
	start := newCopyStart(t, true)
	for _, prefix := range []string{"a", "d", "e", "l", "n", "p"} {
		r := start.again(t)
		from, to := r.services()
		handle := r.common.Join()
		err := r.copyWith(from, to, ipam.CopyOptions{ReadBack: &tampered{handle, prefix}})
		if err == nil || !strings.Contains(err.Error(), "the copy differs") &&
			!strings.Contains(err.Error(), "the record of") {
			t.Fatalf("a record %q differs: %v", prefix, err)
		}
		own, other, refused := r.shownBy()
		if refused != nil || len(other) > 0 || !cmp.Equal(own, withoutEvents(r.want)) {
			t.Fatalf("the source does not go on: %v\n%s", refused, cmp.Diff(withoutEvents(r.want), own))
		}
		fine(t, r.copy(ipam.CopyOptions{}))
		r.moved()
	}
}

// This host neither continues nor takes back a copy of another host. A copy in the other direction must end first.
func TestCopyOfAnother(t *testing.T) {
	r := newCopyRun(t, true)
	if err := r.cutOffAt(9); err == nil {
		t.Fatal("it was not cut off")
	}
	theirs := ipamtest.New(t)
	theirs.Run("network lab2 space=lab subnet=10.99.0.0/24\nnetwork far space=global subnet=10.98.0.0/24")
	own := r.opened("h2", theirs.Store)
	shared := r.other(2)
	for _, undo := range []bool{false, true} {
		if _, err := stores.CopySpaces(ctx, own.Ledger, shared.Ledger, ipam.CopyOptions{Undo: undo}); !errors.Is(err,
			ipam.ErrInUse) || !strings.Contains(err.Error(), "is being copied by host h1") {
			t.Errorf("undo %v: %v", undo, err)
		}
	}
	from, to := r.services()
	if _, err := stores.CopySpaces(ctx, to.Ledger, from.Ledger, ipam.CopyOptions{}); !errors.Is(err, ipam.ErrInUse) ||
		!strings.Contains(err.Error(), "in the other direction") {
		t.Errorf("the other direction: %v", err)
	}
	r.fail(false, 30, 0)
}

// Other hosts neither use nor change nor extend a space that is being copied out of the store that they share.
// Nobody copies a space into which an import runs.
func TestCopyKeepsOthersOff(t *testing.T) {
	r := newCopyRunOf(t, newCopyRoom(t), false) // elastic addresses would stay, because the other host has them, too
	other := r.other(2)
	from, to := r.services()
	more := ipam.Plan{Networks: []ipam.PlannedNetwork{{Name: "lan", Space: "global",
		Subnets: []ipam.PlannedSubnet{{CIDR: netip.MustParsePrefix("10.55.0.0/24")}}}}}
	tried := false
	err := r.copyWith(from, to, ipam.CopyOptions{Progress: func(int, int) {
		if tried {
			return
		}
		tried = true
		refused := map[string]error{}
		_, refused["import"] = other.Import(ctx, more, ipam.ImportOptions{})
		_, refused["attach"] = other.RequestPool(ctx, ipam.PoolRequest{Space: "global", Network: "lan"})
		_, refused["the same subnet"] = other.RequestPool(ctx,
			ipam.PoolRequest{Space: "global", CIDR: netip.MustParsePrefix("192.0.2.0/24")})
		for _, line := range []string{"take lan x pool", "network.rm lan force", "network lan space=far"} {
			_, refused[line] = other.Edit(ctx, ipam.EditOptions{}, ipamtest.Edits(t, line)...)
		}
		for what, err := range refused {
			if err == nil {
				t.Errorf("another host may do that meanwhile: %s", what)
			}
		}
	}})
	if err != nil || !tried {
		t.Fatal(err)
	}
	r.moved()

	own := r.own()
	large := ipam.Plan{Networks: []ipam.PlannedNetwork{ipamtest.DynamicPlan()}} // takes several transactions
	large.Networks[0].Name, large.Networks[0].Space = "large", ipam.GlobalSpace
	tried = false
	_, err = own.Import(ctx, large, ipam.ImportOptions{Progress: func(int, int) {
		if tried {
			return
		}
		tried = true
		_, err := stores.CopySpaces(ctx, own.Ledger, from.Ledger, ipam.CopyOptions{})
		if !errors.Is(err, ipam.ErrInUse) ||
			!strings.Contains(err.Error(), "network large is being imported") {
			t.Errorf("beside an import: %v", err)
		}
	}})
	if err != nil || !tried {
		t.Error(err)
	}
}

// Two hosts copy to one shared store at the same time, while a third one works there. Each space comes from one of
// them, as a whole.
func TestCopyTogether(t *testing.T) {
	r := newCopyRun(t, true)
	theirs := ipamtest.New(t)
	theirs.Run(strings.NewReplacer("192.0.2.", "198.18.0.", "2001:db8::", "2001:db9::", "10.0.0.", "10.1.0.",
		"203.0.113.", "198.18.1.", "198.51.100.", "198.18.2.",
		"lan", "lan2", "wide", "wide2", "empty", "empty2", "seen", "seen2").Replace(planToCopy))
	own := r.opened("h2", theirs.Store)
	shared := r.other(2)
	third := r.other(3)
	from, to := r.services()
	var wg sync.WaitGroup
	errs := make([]error, 3)
	wg.Go(func() { errs[0] = r.copyWith(from, to, ipam.CopyOptions{}) })
	wg.Go(func() { errs[1] = r.copyWith(own, shared, ipam.CopyOptions{}) })
	wg.Go(func() {
		for i := range 100 {
			if _, err := third.RequestPool(ctx,
				ipam.PoolRequest{Space: "global",
					CIDR: netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 200, byte(i), 0}), 24)}); err != nil {
				errs[2] = errors.Join(errs[2], err)
			}
		}
	})
	wg.Wait()
	if errs[2] != nil {
		t.Error(errs[2])
	}
	for i, again := range [][2]*service.Service{{from, to}, {own, shared}} {
		if errs[i] == nil {
			continue
		}
		if !errors.Is(errs[i], ipam.ErrInUse) || !strings.Contains(errs[i].Error(), "is being copied by host") &&
			!strings.Contains(errs[i].Error(), "has also started to copy") {
			t.Errorf("host %d: %v", i+1, errs[i])
		}
		if err := r.copyWith(again[0], again[1], ipam.CopyOptions{}); err != nil && !errors.Is(err, ipam.ErrNotFound) {
			t.Errorf("host %d goes on: %v", i+1, err)
		}
	}
	checked(t, to, shared, third, from, own)
	for name, want := range map[string]int{"lan": 1, "lan2": 1} {
		if n, err := third.Network(ctx, name); err != nil || n.Docker != want || n.Use.Leased != 5 {
			t.Errorf("%s: %+v, %v", name, n, err)
		}
	}
	if all, err := third.Subnets(ctx, "global"); err != nil || len(all) != 2*3+100 {
		t.Errorf("%d subnets, %v", len(all), err)
	}
}

// A space that is copied there and back is the same again.
func TestCopyThereAndBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := ipamtest.NewScribe(t, ipamtest.DrawnDir(t), "a.db")
		w.Write(rapid.IntRange(5, 25).Draw(t, "edits"))
		open := func(st store.Store, m *ipam.Member) *service.Service {
			s, err := service.Open(ctx,
				service.Config{Store: st, Host: "h1", Now: w.Clock.Now, Memories: ipamtest.Memories, Member: m,
					Copying: true})
			fine(t, err)
			return s
		}
		common := mem.New()
		cluster := open(rerunShared(common), &ipam.Member{Host: ipam.ID{1}, Session: ipam.ID{1}, Mark: [4]byte{9}})
		before := exportedSpace(t, w.S, "lab")
		if _, err := stores.CopySpaces(ctx, w.S.Ledger, cluster.Ledger,
			ipam.CopyOptions{Spaces: []string{"lab"}}); errors.Is(err, ipam.ErrNotFound) {
			t.Skip("nothing in the space")
		} else if err != nil {
			t.Fatal(err)
		}
		st := ipamtest.OpenStore(t, filepath.Join(ipamtest.DrawnDir(t), "b.db"))
		defer st.Close()
		faulty := storetest.NewFaulty(st)
		faulty.Each(func(n int) storetest.Fault { return storetest.Fault{Reruns: n % 2} })
		back := open(faulty, nil)
		if _, err := stores.CopySpaces(ctx, cluster.Ledger, back.Ledger, ipam.CopyOptions{}); err != nil {
			t.Fatal(err)
		}
		if after := exportedSpace(t, back, "lab"); before != after {
			t.Fatalf("it was\n%s\nand is\n%s", before, after)
		}
		for _, s := range []*service.Service{w.S, cluster, back} {
			if problems, err := s.Check(ctx); err != nil || len(problems) > 0 {
				t.Fatalf("berth state check says: %q, %v", problems, err)
			}
		}
	})
}

// exportedSpace returns the plan of a space as text.
func exportedSpace(t *rapid.T, s *service.Service, space string) string {
	var b strings.Builder
	for n, err := range s.Export(ctx, "") {
		fine(t, err)
		text, err := json.Marshal(n)
		fine(t, err)
		if n.Space == space {
			fmt.Fprintf(&b, "%s\n", text)
		}
	}
	return b.String()
}

// rerunShared returns a handle that applies other hosts' commits late, and then runs its functions again.
func rerunShared(common *mem.Store) store.Shared {
	handle := common.Join()
	handle.Lag(true)
	return handle
}
