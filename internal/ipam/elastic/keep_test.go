package elastic_test

import (
	"context"
	"iter"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"berth/internal/ipam"
	room "berth/internal/ipam/elastic"
	"berth/store"
	"berth/store/mem"
)

// keptPair is two hosts that share a store. Each has an assigner that checks only what it hears of.
type keptPair struct {
	hosts [2]*story
	kept  [2]*room.Kept
}

var keptMark = [4]byte{0xc1, 0x05, 0x7e, 0x15}

// pair opens two hosts that share a store, with net1 on auto, a range for each host and one for both.
func pair(t *testing.T) *keptPair {
	t.Helper()
	truth := mem.New()
	t.Cleanup(func() { truth.Close() })
	p := &keptPair{}
	for i, name := range []string{"h1", "h2"} {
		b := newBench(t, name)
		b.shared, b.engine = truth, newEngine()
		b.member = &ipam.Member{Host: ipam.ID{byte(i + 1)}, Session: ipam.NewID(), Mark: keptMark}
		b.open(false)
		p.hosts[i] = &story{bench: b}
	}
	p.plays(`
		h1: network net1 subnet=10.20.0.0/24,pool
		h1: elastic net1 auto
		h1: range E0+2
		h1: range S1+2 host=h1
		h1: range S65+2 host=h2
		h1: allocate
		h1: allocate
	`)
	for _, b := range p.hosts {
		b.attach()
	}
	return p
}

// plays runs a script. Each line names its host.
func (p *keptPair) plays(script string) {
	for line := range strings.Lines(script) {
		if host, step, has := strings.Cut(strings.TrimSpace(line), ": "); has {
			p.hosts[host[1]-'1'].plays(step)
		}
	}
}

// looksOnly starts the keepers, with moments that stand still.
func (p *keptPair) looksOnly(ctx context.Context) {
	for i, b := range p.hosts {
		b.freeze()
		p.kept[i] = b.Kept(ctx)
	}
}

// keptSteps are the steps of a host. Repeated steps are more likely.
const keptSteps = `
	run $NAME
	run $NAME
	run $NAME
	stop
	stop
	says $NAME $SAYS
	to $ADDR $NAME move
	to $ADDR $NAME move egress
	off $ADDR
	elastic net1 $MODE
	account shop shop/*
	account shop shop/*; account.rm shop force
	range $RANGE
	range $RANGE; range.rm $RANGE
	reserve net1 $NAME
	unreserve net1 $NAME
	network.set net1 rule=d*=owner:$OWNER
	$SECOND
	$SECOND; network.rm net2 force
`

const secondNetwork = "network net2 space=other subnet=10.20.0.0/24; elastic net2 on"

var keptWords = map[string][]string{
	"$NAME": {"web", "job", "shop-web-1", "db"}, "$ADDR": {"E0", "E1"}, "$MODE": {"on", "auto", "auto"},
	"$OWNER": {"shop/*", "job"}, "$RANGE": {"S8+2 host=h1", "S72+2 host=h2"}, "$SAYS": {"", "ended", "80/tcp"},
	// a guest with the same address on another network, with an elastic address
	"$SECOND": {secondNetwork + "; reserve net2 web; to E0 web net=net2 move",
		secondNetwork + "; reserve net2 db; to E1 db net=net2 move"},
}

func (p *keptPair) step(t *rapid.T) {
	i := rapid.IntRange(0, 1).Draw(t, "host")
	switch step := drawn(t, keptSteps, keptWords); {
	case step == "stop":
		p.hosts[i].stops(t)
	default:
		p.hosts[i].tries(step)
		if strings.HasPrefix(step, "says") {
			p.kept[i].Hear()
		}
	}
}

// settles lets both hosts check what they have heard of until, by all records, nothing is left to do.
func (p *keptPair) settles(t rigT) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(time.Millisecond) {
		var left []string
		for i, b := range p.hosts {
			if err := p.kept[i].Round(b.t.Context()); err != nil {
				t.Fatalf("%v", err)
			}
		}
		for _, b := range p.hosts {
			more, err := b.Unsettled(b.t.Context())
			if err != nil {
				t.Fatalf("%v", err)
			}
			left = append(left, more...)
		}
		if len(left) == 0 {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("%q do not have what they are to have after%s%s", left, p.hosts[0].follows, p.hosts[1].follows)
		}
	}
}

// rigT is what *testing.T and *rapid.T have in common.
type rigT interface {
	Helper()
	Fatalf(format string, args ...any)
}

// TestKeptByCommits: each of two hosts that share a store gives its guests the system addresses that they must
// have by all records, though it checks only guests that a commit or the witness may have changed (CS-7, CS-8).
func TestKeptByCommits(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		ctx, cancel := context.WithCancel(t.Context())
		p := pair(t)
		p.looksOnly(ctx)
		defer func() {
			cancel()
			for i := range p.hosts {
				p.kept[i].End()
				p.hosts[i].Ledger.Store().Close()
			}
		}()
		for range rapid.IntRange(1, 40).Draw(rt, "steps") {
			p.step(rt)
			if rapid.Bool().Draw(rt, "look") {
				p.settles(rt)
			}
		}
		p.settles(rt)
		for _, b := range p.hosts {
			b.consistent()
		}
	})
}

// watched is a store that notes the watched kinds.
type watched struct {
	store.Store
	mu    sync.Mutex
	kinds string
}

func (w *watched) Watch(ctx context.Context, prefix []byte) iter.Seq2[store.Change, error] {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.kinds += string(prefix)
	return w.Store.Watch(ctx, prefix)
}

// TestKeptForNothing: if no network is on auto, the assigner watches only networks, and starts as soon as one is
// on auto. It never watches events.
func TestKeptForNothing(t *testing.T) {
	b := begin(t)
	b.engine = newEngine()
	var w *watched
	b.before = func(st store.Store) store.Store { w = &watched{Store: st}; return w }
	b.again(false)
	kinds := func() string {
		w.mu.Lock()
		defer w.mu.Unlock()
		return w.kinds
	}
	before := kinds()
	b.plays(`
		range S1+2 host=h1
		keep
	`)
	for end := time.Now().Add(10 * time.Second); kinds() == before && time.Now().Before(end); {
		time.Sleep(time.Millisecond)
	}
	b.plays(`
		run web
		elastic net1 on
	`)
	if got := kinds(); got != before+"n" {
		t.Errorf("it watches the kinds %q", got)
	}
	b.plays(`
		elastic net1 auto
		soon system -> web S1
	`)
	if got := kinds(); slices.Contains([]byte(got[len(before):]), 'e') {
		t.Errorf("it watches the kinds %q", got)
	}
}

// TestKeptOfARemovedHost: each of two hosts gives its guests addresses of its own ranges, and takes back those
// of a removed host (CS-8, CS-15).
func TestKeptOfARemovedHost(t *testing.T) {
	p := pair(t)
	p.plays(`
		h1: keep
		h2: keep
		h1: run web
		h2: run job
		h1: soon system -> job S65; web S1
		h2: rest
	`)
	first, second := p.hosts[0], p.hosts[1]
	must(second.bench, second.Ledger.Store().Close())
	_, err := first.Edit(t.Context(), ipam.EditOptions{}, &ipam.RemoveHost{Name: "h2", Off: true})
	must(first.bench, err)
	first.plays("soon system -> web S1")
}
