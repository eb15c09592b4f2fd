package stores_test

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"berth/internal/ipam"
	"berth/internal/ipam/ipamtest"
	"berth/internal/ipam/service"
	"berth/internal/ipam/stores"
	"berth/store"
	"berth/store/mem"
	"berth/store/storetest"
)

// cutting is a handle of a shared store in which one update fails.
type cutting struct {
	*mem.Store
	updates, at int
	fail        func(*mem.Store) error // makes the update fail, or fails it itself
}

func (c *cutting) Update(ctx context.Context, fn func(store.Tx) error) error {
	c.updates++
	if c.updates == c.at {
		if err := c.fail(c.Store); err != nil {
			return err
		}
	}
	return c.Store.Update(ctx, fn)
}

// The ways in which an update of either store fails. Some hide the outcome: the caller does not know whether the
// update was made.
var (
	ownFaults = []storetest.Fault{
		{Before: fmt.Errorf("%w: full", store.ErrNoSpace)}, {After: errors.New("broken")}, {Lost: errors.New("broken")}}
	sharedFaults = []func(*mem.Store) error{
		func(*mem.Store) error { return store.ErrAway },
		func(s *mem.Store) error { s.LoseNext(true); return nil },
		func(s *mem.Store) error { s.LoseNext(false); return nil }}
)

// copyRun is a copy in one direction. One of its transactions fails.
type copyRun struct {
	*copyRoom
	toShared bool
	spaces   []string
	local    []string // what the host's own store shows of the local space
	want     []string // what the source shows, and later the target
	cut      *cutting
	looks    int // how often other hosts looked
}

// newCopyRun prepares a copy to the shared store, or from it.
func newCopyRun(t testing.TB, toShared bool) *copyRun {
	return newCopyRunOf(t, newCopyRoom(t).withElastic(), toShared)
}

func newCopyRunOf(t testing.TB, room *copyRoom, toShared bool) *copyRun {
	r := &copyRun{copyRoom: room, toShared: toShared, spaces: []string{"global", "lab"}}
	own := r.own()
	r.want, r.local = seen(t, own, r.spaces...), seen(t, own, "local")
	if !toShared {
		mustCopy(t, own, r.cluster("h1", r.member), ipam.CopyOptions{})
	}
	return r
}

// copyStart is the start of a copyRun, made and read once. Each copy that is cut off begins with it.
type copyStart struct {
	made   *copyRun
	own    map[string]string // records by their keys
	common map[string]string
}

func newCopyStart(t testing.TB, toShared bool) *copyStart {
	r := newCopyRun(t, toShared)
	return &copyStart{made: r, own: raw(t, r.Store), common: raw(t, r.common)}
}

// again makes the same start in the test's own stores.
func (s *copyStart) again(t testing.TB) *copyRun {
	if *ipamtest.OverEtcd != "" {
		return newCopyRun(t, s.made.toShared)
	}
	path, member := filepath.Join(t.TempDir(), "berth.db"), *s.made.member
	room := &ipamtest.Stage{T: t, Path: path, Clock: &ipamtest.Clock{Time: s.made.Clock.Time}, Host: s.made.Host,
		Pools: map[string]ipam.ID{}, Spare: map[string]netip.Addr{}}
	room.Store = storetest.NewFaulty(ipamtest.OpenStore(t, path))
	common := mem.New()
	t.Cleanup(func() {
		room.Store.Close()
		common.Close()
	})
	putAll(t, room.Store, s.own)
	putAll(t, common, s.common)
	return &copyRun{copyRoom: &copyRoom{Stage: room, member: &member, common: common}, toShared: s.made.toShared,
		spaces: s.made.spaces, local: s.made.local, want: s.made.want}
}

// raw returns all records of a store.
func raw(t testing.TB, st store.Store) map[string]string {
	t.Helper()
	all := map[string]string{}
	if err := st.View(ctx, func(tx store.Tx) error {
		clear(all)
		for rec, err := range tx.Scan(store.Range{}) {
			if err != nil {
				return err
			}
			all[string(rec.Key)] = string(rec.Value)
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return all
}

// putAll puts records into a store.
func putAll(t testing.TB, st store.Store, all map[string]string) {
	t.Helper()
	if err := st.Update(ctx, func(tx store.Tx) error {
		for key, value := range all {
			if err := tx.Put([]byte(key), []byte(value)); err != nil {
				return err
			}
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
}

// services opens both stores like a process that copies.
func (r *copyRun) services() (from, to *service.Service) {
	r.T.Helper()
	own := r.own()
	r.cut = &cutting{Store: r.common.Join()}
	shared, err := service.Open(ctx,
		service.Config{Store: r.cut, Host: "h1", Now: r.Clock.Now, Memories: ipamtest.Memories, Member: r.member})
	fine(r.T, err)
	r.cut.updates = 0
	if r.toShared {
		return own, shared
	}
	return shared, own
}

func (r *copyRun) copy(opt ipam.CopyOptions) error {
	from, to := r.services()
	return r.copyWith(from, to, opt)
}

func (r *copyRun) copyWith(from, to *service.Service, opt ipam.CopyOptions) error {
	opt.Command = "berth state copy --from A --to B"
	_, err := stores.CopySpaces(ctx, from.Ledger, to.Ledger, opt)
	return err
}

// fail makes one update of one of the stores fail, in one of three ways.
func (r *copyRun) fail(own bool, at, way int) {
	if !own {
		r.cut.at, r.cut.fail = at, sharedFaults[way]
		return
	}
	r.Store.Each(func(n int) storetest.Fault {
		if n == at {
			return ownFaults[way]
		}
		return storetest.Fault{}
	})
}

// shownBy returns what the daemons of the host and of another host show. own is empty if the own store is refused.
func (r *copyRun) shownBy() (own, other []string, refused error) {
	r.T.Helper()
	s, err := service.Open(ctx, service.Config{Store: r.Store, Host: "h1", Now: r.Clock.Now,
		Memories: ipamtest.Memories})
	if err == nil {
		own = withoutEvents(seen(r.T, s, r.spaces...))
		if local := seen(r.T, s, "local"); !cmp.Equal(local, r.local) {
			r.T.Fatalf("the local space shows\n%s", cmp.Diff(r.local, local))
		}
		checked(r.T, s)
	}
	r.looks++
	name := fmt.Sprintf("other%d", r.looks)
	theirs := r.cluster(name, &ipam.Member{Host: ipam.NewID(), Session: ipam.NewID(), Mark: r.member.Mark})
	checked(r.T, theirs)
	other = withoutEvents(seen(r.T, theirs))
	if !r.toShared { // elastic addresses would stay if another host had them, too
		edits(r.T, theirs, fmt.Sprintf(`edit host.remove {"name": %q, "off": true}`, name))
	}
	return own, other, err
}

// withoutEvents leaves out the events: they are history, and may be in both stores for a time.
func withoutEvents(lines []string) []string {
	return slices.DeleteFunc(slices.Clone(lines), func(line string) bool { return strings.HasPrefix(line, "event ") })
}

// inOneAtMost fails if both show the same network or lease.
func (r *copyRun) inOneAtMost(own, other []string) {
	r.T.Helper()
	for _, line := range own {
		if slices.Contains(other, line) {
			r.T.Fatalf("both stores have %s", line)
		}
	}
	all := withoutEvents(r.want)
	for _, lines := range [][]string{own, other} {
		for _, line := range lines {
			if !slices.Contains(all, line) {
				r.T.Fatalf("this is shown, and is not what there was: %s", line)
			}
		}
	}
}

// moved fails unless the target has everything, with its events, and the source has nothing.
func (r *copyRun) moved() {
	r.T.Helper()
	from, to := r.services()
	if diff := cmp.Diff(r.want, seen(r.T, to, r.spaces...)); diff != "" {
		r.T.Fatalf("the target shows:\n%s", diff)
	}
	if left := seen(r.T, from, r.spaces...); len(left) > 0 {
		r.T.Fatalf("the source shows:\n%s", strings.Join(left, "\n"))
	}
	for key := range ipamtest.Dump(r.T, r.common) {
		if key[1] == 'c' {
			r.T.Fatalf("a mark was left: %s", key)
		}
	}
	if _, _, err := r.shownBy(); err != nil {
		r.T.Fatal(err)
	}
}

// TestCopyCutOff makes each transaction of a copy fail, in either store and each way. Nothing is ever in both
// stores, and no network is seen in part. The same command continues the copy, or takes it back while possible.
func TestCopyCutOff(t *testing.T) {
	drawn := storetest.Drawn(t, 4)
	for _, toShared := range []bool{true, false} {
		start := newCopyStart(t, toShared)
		r := start.again(t)
		from, to := r.services()
		ownUpdates := 0
		r.Store.Each(func(n int) storetest.Fault { ownUpdates = n; return storetest.Fault{} })
		fine(t, r.copyWith(from, to, ipam.CopyOptions{}))
		r.Store.Each(nil)
		shared := r.cut.updates
		r.moved()
		if ownUpdates < 5 || shared < 8 {
			t.Fatalf("the copy has %d and %d transactions", ownUpdates, shared)
		}
		for _, own := range []bool{true, false} {
			updates := shared
			if own {
				updates = ownUpdates
			}
			for at := 1; at <= updates; at++ { // each transaction in two ways, each way in two of three
				for i, undo := range []bool{false, true} {
					if !drawn() {
						continue
					}
					name := fmt.Sprintf("to shared %v own %v update %d way %d undo %v", toShared, own, at, (at+i)%3,
						undo)
					t.Run(name, func(t *testing.T) { copyCutOff(t, start, own, at, (at+i)%3, undo) })
				}
			}
		}
	}
}

func copyCutOff(t *testing.T, start *copyStart, own bool, at, way int, undo bool) {
	r := start.again(t)
	from, to := r.services()
	r.fail(own, at, way)
	stopped := r.copyWith(from, to, ipam.CopyOptions{})
	r.Store.Each(nil)
	r.Store.Heal()
	if stopped == nil {
		t.Fatal("the copy does not notice")
	}
	shownOwn, shownShared, refused := r.shownBy()
	r.inOneAtMost(shownOwn, shownShared)
	if refused != nil && !strings.Contains(refused.Error(), "`berth state copy --from A --to B`") {
		t.Fatalf("refused: %v", refused)
	}
	if undo {
		r.takenBack(stopped)
	}
	if err := r.copy(ipam.CopyOptions{}); err != nil && !errors.Is(err, ipam.ErrNotFound) {
		t.Fatalf("it stopped (%v), and does not go on: %v", stopped, err)
	}
	r.moved()
}

// takenBack takes back a copy. If the source has already let go, the copy can only continue. After a copy is taken
// back, each space is in one store, with its events.
func (r *copyRun) takenBack(stopped error) {
	r.T.Helper()
	switch err := r.copy(ipam.CopyOptions{Undo: true}); {
	case err == nil, errors.Is(err, ipam.ErrNotFound):
	case errors.Is(err, ipam.ErrInUse) && strings.Contains(err.Error(), "has released it"):
		return // the copy can only continue
	default:
		r.T.Fatalf("it stopped (%v), and is not taken back: %v", stopped, err)
	}
	if _, _, err := r.shownBy(); err != nil {
		r.T.Fatalf("it was taken back, and: %v", err)
	}
	from, to := r.services()
	all := append(seen(r.T, from, r.spaces...), seen(r.T, to, r.spaces...)...)
	slices.Sort(all)
	want := slices.Sorted(slices.Values(r.want))
	if diff := cmp.Diff(want, all); diff != "" {
		r.T.Fatalf("it was taken back, and both stores together show:\n%s", diff)
	}
}
