package ipamtest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"berth/internal/advice"
	"berth/internal/ipam"
	"berth/internal/ipam/service"
	"berth/store"
	"berth/store/storetest"
)

// Stage is a service over its own store, with a clock that only the test moves, and names for the ids that Docker
// would know.
type Stage struct {
	T     testing.TB
	Path  string // of its file; "": in memory
	Clock *Clock
	Store *storetest.Faulty
	S     *service.Service // the open one
	Asked Engine           // answers Docker's requests; nil: S
	Host  string
	Pools map[string]ipam.ID    // the attachments of Docker networks, by the script's name for them
	Spare map[string]netip.Addr // addresses, by the script's name for them
	known Onlooker              // what the witness says
}

// Engine answers Docker's requests.
type Engine interface {
	RequestPool(context.Context, ipam.PoolRequest) (ipam.PoolGrant, error)
	ReleasePool(context.Context, ipam.ID) error
	RequestAddress(context.Context, ipam.AddressRequest) (netip.Prefix, error)
	ReleaseAddress(context.Context, ipam.ID, netip.Addr) error
}

// Known returns what the stage's witness says.
func (r *Stage) Known() ipam.Known { return r.known.As() }

// New returns a stage over its own file.
func New(t testing.TB) *Stage {
	t.Helper()
	return NewAt(t, filepath.Join(t.TempDir(), "berth.db"))
}

// NewAt is New over the file at path, or over a store in memory if path is empty.
func NewAt(t testing.TB, path string) *Stage {
	t.Helper()
	r := &Stage{T: t, Path: path, Clock: NewClock(), Host: "h1",
		Pools: map[string]ipam.ID{}, Spare: map[string]netip.Addr{}}
	r.Store = storetest.NewFaulty(OpenStore(t, r.Path))
	t.Cleanup(func() { r.Store.Close() })
	r.Open()
	return r
}

// Open opens a service. A second one on etcd is a restart of the daemon, with its own handle.
func (r *Stage) Open() {
	r.T.Helper()
	if r.S != nil && *OverEtcd != "" && r.Path != "" {
		fine(r.T, r.Store.Close())
		r.Store = storetest.NewFaulty(OpenStore(r.T, r.Path))
	}
	s, err := service.Open(ctx,
		onShared(r.T, service.Config{Store: r.Store, Host: r.Host, Now: r.Clock.Now, Memories: Memories,
			Known: r.known.As(), Upgrading: Upgrading()}))
	fine(r.T, err)
	r.S = s
}

// Run runs a script.
func (r *Stage) Run(script string) {
	r.T.Helper()
	for line := range strings.Lines(script) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		r.Line(line)
	}
	r.Reopened()
}

// Line runs one step of a script, and compares the result with the script.
func (r *Stage) Line(line string) {
	r.T.Helper()
	step, want, answered := strings.Cut(line+" ", " -> ")
	step, refusal, refused := strings.Cut(step, " ! ")
	var before map[string]string
	var shown Shown
	still := refused || strings.HasPrefix(step, "@dry")
	if still {
		before, shown = Dump(r.T, r.Store), r.Everything()
	}
	got, err := r.Step(strings.Fields(step))
	if problems, checkErr := r.S.Check(ctx); checkErr != nil || len(problems) > 0 {
		r.T.Fatalf("%s\n\tafter it berth state check says: %q, %v", line, problems, checkErr)
	}
	if refused {
		r.Refused(line, refusal, err)
		if r.onlyEnded(before) {
			before, shown = Dump(r.T, r.Store), r.Everything()
			_, err = r.Step(strings.Fields(step))
			r.Refused(line, refusal, err)
		}
	}
	if still {
		if diff := cmp.Diff(before, Dump(r.T, r.Store)) + ShownDiff(shown, r.Everything()); diff != "" {
			r.T.Fatalf("%s\n\tended so: %v, and changed something:\n%s", line, err, diff)
		}
	}
	switch {
	case refused:
	case err != nil:
		r.T.Fatalf("%s\n\t%v", line, err)
	case answered:
		want = strings.TrimSpace(want)
		if end, is := strings.CutPrefix(want, "..."); got != want && !(is && strings.HasSuffix(got, end)) {
			r.T.Fatalf("%s\n\tgot %s", line, got)
		}
	}
}

var errorKinds = map[string]error{
	"invalid": ipam.ErrInvalid, "notfound": ipam.ErrNotFound, "inuse": ipam.ErrInUse, "exhausted": ipam.ErrExhausted,
	"overlap": ipam.ErrOverlap, "changed": ipam.ErrChanged, "keyreused": ipam.ErrKeyReused, "full": store.ErrNoSpace,
	"away": ipam.ErrAway, "host": ipam.ErrHost,
}

// KindOf names the kind of an error.
func KindOf(err error) string {
	for _, name := range slices.Sorted(maps.Keys(errorKinds)) {
		if errors.Is(err, errorKinds[name]) {
			return name
		}
	}
	return fmt.Sprintf("no kind (%T)", err)
}

// Refused compares an error with "kind|kind; part of its text; part of its text".
func (r *Stage) Refused(line, want string, err error) {
	r.T.Helper()
	parts := strings.Split(want, ";")
	if err == nil {
		r.T.Fatalf("%s\n\twas not refused", line)
	}
	if kinds := strings.Split(strings.TrimSpace(parts[0]), "|"); !slices.Contains(kinds, KindOf(err)) {
		r.T.Fatalf("%s\n\twas refused as %s: %v", line, KindOf(err), err)
	}
	for _, part := range parts[1:] {
		if code, ok := strings.CutPrefix(strings.TrimSpace(part), "="); ok {
			r.coded(line, code, err)
			continue
		}
		var of *ipam.EditError
		if at, ok := strings.CutPrefix(strings.TrimSpace(part), "at="); ok {
			if !errors.As(err, &of) || at != strconv.Itoa(of.Index) {
				r.T.Fatalf("%s\n\tis said of %+v", line, of)
			}
			continue
		}
		if !strings.Contains(advice.Text(err), strings.TrimSpace(part)) {
			r.T.Fatalf("%s\n\tdoes not say %q: %v", line, strings.TrimSpace(part), err)
		}
	}
	if strings.ContainsAny(err.Error(), "\n\x1b") {
		r.T.Fatalf("%s\n\tis more than one line: %q", line, err)
	}
}

// Reopened restarts the service and compares what it shows.
func (r *Stage) Reopened() {
	r.T.Helper()
	before := r.Everything()
	r.Open()
	if diff := ShownDiff(before, r.Everything()); diff != "" {
		r.T.Fatalf("after a restart other things are shown:\n%s", diff)
	}
}

// Edit makes edits that must succeed.
func (r *Stage) Edit(edits ...ipam.Edit) ipam.Outcome {
	r.T.Helper()
	out, err := r.S.Edit(ctx, ipam.EditOptions{}, edits...)
	fine(r.T, err)
	return out
}

// options separates words of the form key=value, and flags, from the positional words.
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

// MustRange reads a range that the test wrote.
func MustRange(text string) (r ipam.Range) {
	if err := r.UnmarshalText([]byte(text)); err != nil {
		panic(err)
	}
	return r
}

// Step runs one step and returns its answer.
func (r *Stage) Step(words []string) (string, error) {
	r.T.Helper()
	verb, args := words[0], words[1:]
	if got, done, err := r.ownerStep(verb, args); done {
		return got, err
	}
	if got, done, err := r.guessStep(verb, args); done {
		return got, err
	}
	if got, done, err := r.edits(words); done {
		return got, err
	}
	switch verb {
	case "attach", "ask", "has", "gateway", "back", "detach":
		return r.docker(verb, args)
	case "wait":
		d, err := time.ParseDuration(args[0])
		r.Clock.Time = r.Clock.Time.Add(d)
		return "", err
	case "host":
		r.Host = args[0]
		r.Open()
		return "", nil
	case "restart":
		r.Reopened()
		return "", nil
	case "trim":
		return "", r.S.Trim(ctx)
	case "fail":
		r.Store.Next(storetest.Fault{Reruns: 1, Before: store.ErrNoSpace})
		return "", nil
	case "show":
		return r.Describe(args), nil
	}
	r.T.Fatalf("there is no step %q", words)
	return "", nil
}

// answer returns the result of an edit: its addresses, else its warnings, else its subnet.
func answer(res ipam.Result) string {
	if len(res.Addresses) > 0 {
		return Joined(res.Addresses)
	}
	if len(res.Warnings) > 0 {
		return strings.Join(res.Warnings, "; ")
	}
	if res.CIDR.IsValid() {
		return res.CIDR.String()
	}
	return ""
}

// Joined joins all in one line.
func Joined[T fmt.Stringer](all []T) string {
	texts := make([]string, len(all))
	for i, v := range all {
		texts[i] = v.String()
	}
	return strings.Join(texts, " ")
}

// Script is a part of a table that runs as its own test. It is an alias, so that rows need no keys.
type Script = struct{ Name, Steps string }

// RunScripts runs each script as its own test, on its own stage.
func RunScripts(t *testing.T, scripts []Script) {
	t.Helper()
	for _, sc := range scripts {
		t.Run(sc.Name, func(t *testing.T) { New(t).Run(sc.Steps) })
	}
}
