package elastic_test

import (
	"context"
	"fmt"
	"iter"
	"net/netip"
	"slices"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"berth/internal/ipam"
	room "berth/internal/ipam/elastic"
	"berth/store"
	"berth/store/mem"
)

// keptPair is two hosts that share a store, each with a keeper that looks only at what it hears of.
type keptPair struct {
	hosts   [2]*bench
	kept    [2]*room.Kept
	running [2][]netip.Addr
	follows string // what was done, for a failure
}

var keptMark = [4]byte{0xc1, 0x05, 0x7e, 0x15}

// pair opens two hosts that share a store, with net1 on auto, ranges of each and one of both.
func pair(t *testing.T) *keptPair {
	t.Helper()
	truth := mem.New()
	t.Cleanup(func() { truth.Close() })
	p := &keptPair{}
	for i, name := range []string{"h1", "h2"} {
		b := &bench{t: t, host: name, published: map[string][]string{}, shared: truth, engine: newEngine(),
			member: &ipam.Member{Host: ipam.ID{byte(i + 1)}, Session: ipam.NewID(), Mark: keptMark}}
		b.open(false)
		p.hosts[i] = b
	}
	b := p.hosts[0]
	b.edit(&ipam.CreateNetwork{Name: "net1", Subnets: []ipam.SubnetSpec{{CIDR: netip.MustParsePrefix(lan), Pool: true}}})
	b.mode("auto")
	b.edit(&ipam.AddElasticRange{Range: rangeAt(t, "203.0.113.10+2")})
	b.edit(&ipam.AddElasticRange{Range: rangeAt(t, systemFirst+"+2"), Host: "h1"})
	b.edit(&ipam.AddElasticRange{Range: rangeAt(t, "198.51.100.65+2"), Host: "h2"})
	b.edit(&ipam.AllocateElastic{})
	b.edit(&ipam.AllocateElastic{})
	for _, b := range p.hosts {
		grant, err := b.RequestPool(t.Context(), ipam.PoolRequest{Network: "net1", CIDR: netip.MustParsePrefix(lan)})
		if err != nil {
			t.Fatal(err)
		}
		b.pool = grant.ID
	}
	return p
}

// looksOnly begins the keepers, with moments that stand still.
func (p *keptPair) looksOnly(ctx context.Context) {
	for i, b := range p.hosts {
		b.freeze()
		p.kept[i] = b.Kept(ctx)
	}
}

func (p *keptPair) try(b *bench, e ipam.Edit) {
	_, err := b.Edit(b.t.Context(), ipam.EditOptions{}, e)
	p.follows += fmt.Sprintf("\n%s: %s %+v: %v", b.host, e.Op(), e, err)
}

var keptNames = []string{"web", "job", "shop-web-1", "db"}

func (p *keptPair) step(t *rapid.T) {
	i := rapid.IntRange(0, 1).Draw(t, "host")
	b, name := p.hosts[i], rapid.SampledFrom(keptNames).Draw(t, "name")
	one := addr(rapid.SampledFrom([]string{elastic, next}).Draw(t, "address"))
	flag := rapid.Bool().Draw(t, "flag")
	switch rapid.SampledFrom([]string{"start", "start", "start", "stop", "stop", "says", "associate", "associate",
		"disassociate", "mode", "account", "range", "reserve", "rule", "second"}).Draw(t, "what") {
	case "start":
		got, err := b.RequestAddress(b.t.Context(), ipam.AddressRequest{Pool: b.pool, Name: name})
		p.follows += fmt.Sprintf("\n%s: start %s: %v %v", b.host, name, got, err)
		if err == nil {
			p.running[i] = append(p.running[i], got.Addr())
		}
	case "stop":
		if n := len(p.running[i]); n > 0 {
			at := rapid.IntRange(0, n-1).Draw(t, "which")
			err := b.ReleaseAddress(b.t.Context(), b.pool, p.running[i][at])
			p.follows += fmt.Sprintf("\n%s: stop %s: %v", b.host, p.running[i][at], err)
			p.running[i] = slices.Delete(p.running[i], at, at+1)
		}
	case "says":
		h := ipam.Holder{Known: true, PortsKnown: true, Ended: flag}
		if rapid.Bool().Draw(t, "publishes") {
			h.Published = []string{"80/tcp"}
		}
		b.engine.says(name, h)
		p.kept[i].Hear()
		p.follows += fmt.Sprintf("\n%s: the engine says of %s %+v", b.host, name, h)
	case "associate":
		p.try(b, &ipam.AssociateElastic{Address: one, Instance: name, Move: true, EgressOnly: flag})
	case "disassociate":
		p.try(b, &ipam.DisassociateElastic{Address: one})
	case "mode":
		mode := map[bool]string{true: "auto", false: "on"}[flag || rapid.Bool().Draw(t, "auto")]
		p.try(b, &ipam.ModifyNetwork{Network: "net1", Elastic: &mode})
	case "account":
		p.try(b, &ipam.CreateAccount{Account: "shop", Owners: []string{"shop/*"}})
		if !flag {
			p.try(b, &ipam.RemoveAccount{Account: "shop", Force: true})
		}
	case "range":
		r := rangeAt(b.t, map[string]string{"h1": "198.51.100.8+2", "h2": "198.51.100.72+2"}[b.host])
		p.try(b, &ipam.AddElasticRange{Range: r, Host: b.host})
		if flag {
			p.try(b, &ipam.RemoveElasticRange{Range: r})
		}
	case "reserve":
		if flag {
			p.try(b, &ipam.AddReservation{Network: "net1", Owner: name})
		} else {
			p.try(b, &ipam.RemoveReservation{Network: "net1", Owner: name})
		}
	case "rule":
		owner := map[bool]string{true: "shop/*", false: "job"}[flag]
		p.try(b, &ipam.ModifyNetwork{Network: "net1", OwnerRules: []ipam.OwnerRule{{Pattern: "d*", Owner: owner}}})
	case "second": // a guest of the same address elsewhere, to which one leads
		on := "on"
		p.try(b, &ipam.CreateNetwork{Name: "net2", Space: "other",
			Subnets: []ipam.SubnetSpec{{CIDR: netip.MustParsePrefix(lan)}}})
		p.try(b, &ipam.ModifyNetwork{Network: "net2", Elastic: &on})
		p.try(b, &ipam.AddReservation{Network: "net2", Owner: name})
		p.try(b, &ipam.AssociateElastic{Address: one, Instance: name, Network: "net2", Move: true})
		if flag {
			p.try(b, &ipam.RemoveNetwork{Network: "net2", Force: true})
		}
	}
}

// settles lets both look at what they have heard of until nothing is left to be done by the records as a whole.
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
			t.Fatalf("%q do not have what they are to have after%s", left, p.follows)
		}
	}
}

// rigT is what *testing.T and *rapid.T have in common.
type rigT interface {
	Helper()
	Fatalf(format string, args ...any)
}

// TestKeptByCommits: of two hosts that share a store each gives its guests the system addresses that they are to have
// by all records, though it looks only at those that a commit or the witness can have changed (CS-7, CS-8).
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

// watched is a store that notes what is watched.
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

// TestKeptForNothing: where no network is on auto the keeper hears of networks alone, and begins as soon as one is; it
// never hears of events.
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
	b.edit(&ipam.AddElasticRange{Range: rangeAt(t, systemFirst+"+2"), Host: "h1"})
	b.keep()
	for end := time.Now().Add(10 * time.Second); kinds() == before && time.Now().Before(end); {
		time.Sleep(time.Millisecond)
	}
	b.start("web")
	b.mode("on")
	if got := kinds(); got != before+"n" {
		t.Errorf("it watches the kinds %q", got)
	}
	b.mode("auto")
	b.soon("auto", "web "+systemFirst)
	if got := kinds(); slices.Contains([]byte(got[len(before):]), 'e') {
		t.Errorf("it watches the kinds %q", got)
	}
}

// TestKeptOfARemovedHost: each of two hosts gives its guests addresses of its own ranges, and takes back those of one
// that was removed (CS-8, CS-15).
func TestKeptOfARemovedHost(t *testing.T) {
	p := pair(t)
	first, second := p.hosts[0], p.hosts[1]
	first.keep()
	end := second.keep()
	first.start("web")
	second.start("job")
	first.soon("a start on each", "job 198.51.100.65", "web "+systemFirst)
	end()
	if err := second.Ledger.Store().Close(); err != nil {
		t.Fatal(err)
	}
	first.edit(&ipam.RemoveHost{Name: "h2", Off: true})
	first.soon("one is removed", "web "+systemFirst)
}
