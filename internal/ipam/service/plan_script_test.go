package service_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"berth/internal/advice"
	"berth/internal/ipam"
	"berth/internal/ipam/service"
	"berth/store"
	"berth/store/storetest"
)

// room is a service over a store of its own, with a clock that only the test moves, and names for the ids that Docker
// would know. Its scripts are lines of words, one step each:
//
//	take net1 web pool -> 192.0.2.10     a step and what it answers
//	take net1 db pool ! exhausted; full  a step that is refused: the kind of the error, and what its sentence holds
//	take net1 db pool ! exhausted; =NotEnoughCapacity  its code (bo_words_test.go)
//
// Whatever is refused leaves every record as it was, after each step Berth finds no contradiction between its records,
// and at the end a service that is started afresh shows the same.
type room struct {
	t     testing.TB
	path  string
	clock *clock
	store *storetest.Faulty
	s     *service.Service
	host  string
	pools map[string]ipam.ID    // the attachments of Docker networks, by the script's name for them
	spare map[string]netip.Addr // addresses, by the script's name for them
	known onlooker              // what a witness says (guess_words_test.go)
}

func newRoom(t testing.TB) *room {
	t.Helper()
	return newRoomAt(t, filepath.Join(t.TempDir(), "berth.db"))
}

// newRoomAt is newRoom over the file at path, or a store in memory where there is no path.
func newRoomAt(t testing.TB, path string) *room {
	t.Helper()
	r := &room{t: t, path: path, clock: newClock(), host: "h1",
		pools: map[string]ipam.ID{}, spare: map[string]netip.Addr{}}
	r.store = storetest.NewFaulty(openStore(t, r.path))
	t.Cleanup(func() { r.store.Close() })
	r.open()
	return r
}

// open opens a service. A second one on etcd is another life of the daemon, with a handle of its own.
func (r *room) open() {
	r.t.Helper()
	if r.s != nil && *overEtcd != "" && r.path != "" {
		if err := r.store.Close(); err != nil {
			r.t.Fatal(err)
		}
		r.store = storetest.NewFaulty(openStore(r.t, r.path))
	}
	s, err := service.Open(ctx,
		onShared(r.t, service.Config{Store: r.store, Host: r.host, Now: r.clock.Now, Memories: memories,
			Known: r.known.as()}))
	if err != nil {
		r.t.Fatal(err)
	}
	r.s = s
}

// run runs a script.
func (r *room) run(script string) {
	r.t.Helper()
	for line := range strings.Lines(script) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		r.line(line)
	}
	r.reopened()
}

func (r *room) line(line string) {
	r.t.Helper()
	step, want, answered := strings.Cut(line+" ", " -> ")
	step, refusal, refused := strings.Cut(step, " ! ")
	var before map[string]string
	if refused {
		before = dump(r.t, r.store)
	}
	got, err := r.step(strings.Fields(step))
	if problems, checkErr := r.s.Check(ctx); checkErr != nil || len(problems) > 0 {
		r.t.Fatalf("%s\n\tafter it berth fsck says: %q, %v", line, problems, checkErr)
	}
	switch {
	case refused:
		r.refused(line, refusal, err)
		if r.onlyEnded(before) {
			before = dump(r.t, r.store)
			_, err = r.step(strings.Fields(step))
			r.refused(line, refusal, err)
		}
		if diff := cmp.Diff(before, dump(r.t, r.store)); diff != "" {
			r.t.Fatalf("%s\n\twas refused (%v) and changed records:\n%s", line, err, diff)
		}
	case err != nil:
		r.t.Fatalf("%s\n\t%v", line, err)
	case answered && got != strings.TrimSpace(want):
		r.t.Fatalf("%s\n\tgot %s", line, got)
	}
}

var errorKinds = map[string]error{
	"invalid": ipam.ErrInvalid, "notfound": ipam.ErrNotFound, "inuse": ipam.ErrInUse, "exhausted": ipam.ErrExhausted,
	"overlap": ipam.ErrOverlap, "changed": ipam.ErrChanged, "keyreused": ipam.ErrKeyReused,
}

// kindOf names the kind of an error.
func kindOf(err error) string {
	for _, name := range slices.Sorted(maps.Keys(errorKinds)) {
		if errors.Is(err, errorKinds[name]) {
			return name
		}
	}
	return fmt.Sprintf("no kind (%T)", err)
}

// refused holds an error against "kind|kind; what it says; what it says".
func (r *room) refused(line, want string, err error) {
	r.t.Helper()
	parts := strings.Split(want, ";")
	if err == nil {
		r.t.Fatalf("%s\n\twas not refused", line)
	}
	if kinds := strings.Split(strings.TrimSpace(parts[0]), "|"); !slices.Contains(kinds, kindOf(err)) {
		r.t.Fatalf("%s\n\twas refused as %s: %v", line, kindOf(err), err)
	}
	for _, part := range parts[1:] {
		if code, ok := strings.CutPrefix(strings.TrimSpace(part), "="); ok {
			r.coded(line, code, err)
			continue
		}
		if !strings.Contains(advice.Text(err), strings.TrimSpace(part)) {
			r.t.Fatalf("%s\n\tdoes not say %q: %v", line, strings.TrimSpace(part), err)
		}
	}
	if strings.Contains(err.Error(), "\n") {
		r.t.Fatalf("%s\n\tis more than one line: %v", line, err)
	}
}

// reopened starts the service afresh and compares what it shows.
func (r *room) reopened() {
	r.t.Helper()
	before := r.everything()
	r.open()
	if diff := shownDiff(before, r.everything()); diff != "" {
		r.t.Fatalf("after a restart other things are shown:\n%s", diff)
	}
}

// shownDiff says where two differ. Most often they do not, which is found out a hundred times as fast.
func shownDiff(a, b shown) string {
	if reflect.DeepEqual(a, b) {
		return ""
	}
	return cmp.Diff(a, b, showOptions)
}

var showOptions = cmp.Options{
	cmpopts.EquateComparable(netip.Addr{}, netip.Prefix{}),
	cmp.Comparer(func(a, b ipam.Count) bool { return a.Int.Cmp(b.Int) == 0 }),
	cmp.Comparer(func(a, b ipam.Range) bool { return a == b }),
	cmpopts.EquateEmpty(),
}

// shown is all that there is to see.
type shown struct {
	Networks     []ipam.NetworkInfo
	Whole        []ipam.NetworkInfo // with their maps
	Subnets      []ipam.SubnetInfo
	Leases       []ipam.LeaseInfo
	Reservations []ipam.ReservationInfo
	Taken        []ipam.TakenAddress
}

func (r *room) everything() (all shown) {
	r.t.Helper()
	var err error
	if all.Networks, err = r.s.Networks(ctx, ipam.NetworkFilter{}); err != nil {
		r.t.Fatal(err)
	}
	for _, n := range all.Networks {
		all.Whole = append(all.Whole, r.show(n.Name))
	}
	if all.Subnets, err = r.s.Subnets(ctx, ""); err != nil {
		r.t.Fatal(err)
	}
	all.Leases = listLeases(r.t, r.s, ipam.LeaseFilter{Remembered: true})
	all.Reservations = r.reservations(ipam.AddressFilter{})
	all.Taken = r.taken(ipam.AddressFilter{})
	return all
}

func (r *room) show(network string) ipam.NetworkInfo {
	r.t.Helper()
	n, err := r.s.Network(ctx, network)
	if err != nil {
		r.t.Fatalf("network %s: %v", network, err)
	}
	return n
}

func (r *room) reservations(f ipam.AddressFilter) (all []ipam.ReservationInfo) {
	r.t.Helper()
	for info, err := range r.s.Reservations(ctx, f) {
		if err != nil {
			r.t.Fatal(err)
		}
		all = append(all, info)
	}
	return all
}

func (r *room) taken(f ipam.AddressFilter) (all []ipam.TakenAddress) {
	r.t.Helper()
	for info, err := range r.s.Taken(ctx, f) {
		if err != nil {
			r.t.Fatal(err)
		}
		all = append(all, info)
	}
	return all
}

// edit makes edits that must succeed.
func (r *room) edit(edits ...ipam.Edit) ipam.Outcome {
	r.t.Helper()
	out, err := r.s.Edit(ctx, ipam.EditOptions{}, edits...)
	if err != nil {
		r.t.Fatal(err)
	}
	return out
}

// dump is every record of a store but those of the events' trimming, by key, in hexadecimal.
func dump(t testing.TB, st store.Store) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := st.View(context.Background(), func(tx store.Tx) error {
		clear(all)
		for rec, err := range tx.Scan(store.Range{}) {
			if err != nil {
				return err
			}
			all[fmt.Sprintf("%q", rec.Key)] = string(rec.Value)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	// the daemon's place in the cluster, that something may have changed, and what the next import sweeps
	if *overEtcd != "" {
		maps.DeleteFunc(all, func(key, _ string) bool {
			return slices.Contains([]string{`"mplan"`, `"mimporting"`}, key) || strings.HasPrefix(key, `"h`) ||
				strings.HasPrefix(key, `"j`)
		})
	}
	return all
}

// options splits words of the form key=value, and lone words, off the positional ones.
func options(words []string, flags ...string) (rest []string, opt map[string]string) {
	opt = map[string]string{}
	for _, word := range words {
		key, value, ok := strings.Cut(word, "=")
		switch {
		case slices.Contains(flags, key):
			opt[key] = value
		case ok && !strings.Contains(key, ":") && !strings.HasPrefix(key, "ip"):
			opt[key] = value
		default:
			rest = append(rest, word)
		}
	}
	return rest, opt
}

func mustRange(text string) (r ipam.Range) {
	if err := r.UnmarshalText([]byte(text)); err != nil {
		panic(err)
	}
	return r
}

func ptr[T any](v T) *T { return &v }

// step runs one step and returns its answer.
func (r *room) step(words []string) (string, error) {
	r.t.Helper()
	verb, args := words[0], words[1:]
	if got, done, err := r.ownerStep(verb, args); done {
		return got, err
	}
	if got, done, err := r.guessStep(verb, args); done {
		return got, err
	}
	if e := r.parseEdit(verb, args); e != nil {
		out, err := r.s.Edit(ctx, ipam.EditOptions{}, e)
		if err != nil {
			return "", err
		}
		return answer(out.Results[0]), nil
	}
	switch verb {
	case "attach", "ask", "has", "gateway", "back", "detach":
		return r.docker(verb, args)
	case "wait":
		d, err := time.ParseDuration(args[0])
		r.clock.now = r.clock.now.Add(d)
		return "", err
	case "host":
		r.host = args[0]
		r.open()
		return "", nil
	case "restart":
		r.reopened()
		return "", nil
	case "show":
		return r.describe(args), nil
	}
	r.t.Fatalf("there is no step %q", words)
	return "", nil
}

// answer is what an edit gave: addresses, else the subnet.
func answer(res ipam.Result) string {
	if len(res.Addresses) > 0 {
		return joined(res.Addresses)
	}
	if res.CIDR.IsValid() {
		return res.CIDR.String()
	}
	return ""
}

func joined[T fmt.Stringer](all []T) string {
	texts := make([]string, len(all))
	for i, v := range all {
		texts[i] = v.String()
	}
	return strings.Join(texts, " ")
}

// script runs each part of a table as a test of its own.
type script struct{ name, steps string }

func runScripts(t *testing.T, scripts []script) {
	t.Helper()
	for _, sc := range scripts {
		t.Run(sc.name, func(t *testing.T) { newRoom(t).run(sc.steps) })
	}
}

// scriptFile reads a file of testdata.
func scriptFile(t testing.TB, name string) string {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}
