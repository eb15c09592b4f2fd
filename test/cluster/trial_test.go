package cluster

import (
	"context"
	"fmt"
	"testing"
	"time"

	api "github.com/docker/go-plugins-helpers/ipam"

	"berth/internal/admin/client"
	"berth/internal/ipam"
	"berth/test/lab"
)

// least is the minimum number of operations in a history. Refusals because the store is away do not count.
const least = 50_000

// party is one host in a trial, with its daemon and its counts so far.
type party struct {
	name string
	to   daemon
	// all leases in the shared network, as this host reads them
	leases func(ctx context.Context) ([]ipam.LeaseInfo, error)
	kept   func(ctx context.Context) (kept, error)
	check  func() error // an error if the records contradict one another
	counts counts
}

// kept is what a host has not yet delivered to the shared store, and how fresh its reads are.
type kept struct {
	waiting int
	fresh   time.Time
}

// trial records a history.
type trial struct {
	t       testing.TB
	etcd    *etcdServers
	hosts   []*host // if they are processes
	parties []*party
	clients []*caller
	rounds  int
	began   time.Time

	headroom int                // of each host
	silent   [][2]time.Duration // the times when some hosts had not yet mended: no take may be answered
}

// space is the space of the shared network.
const space = ipam.GlobalSpace

// ofHosts makes a trial whose parties are daemons.
func ofHosts(t testing.TB, e *etcdServers, hosts []*host) *trial {
	tr := &trial{t: t, etcd: e, hosts: hosts}
	for _, h := range hosts {
		c := client.New(h.admin())
		t.Cleanup(c.Close)
		tr.parties = append(tr.parties, &party{
			name: h.name, to: h,
			leases: func(ctx context.Context) ([]ipam.LeaseInfo, error) {
				return c.Leases(ctx, ipam.LeaseFilter{Space: space, Subnet: shared})
			},
			kept: func(ctx context.Context) (kept, error) {
				st, err := c.Status(ctx)
				if err != nil || st.Cluster == nil {
					return kept{fresh: time.Now()}, err
				}
				return kept{st.Cluster.Waiting, st.Cluster.Fresh}, nil
			},
			check: func() error { _, err := h.berth("state", "check"); return err },
		})
	}
	return tr
}

// begin attaches each host to the network and starts the callers.
func (tr *trial) begin(seed uint64) (stop func()) {
	tr.t.Helper()
	tr.began = time.Now()
	for i, p := range tr.parties {
		pool := attach(tr.t, p.to,
			api.RequestPoolRequest{AddressSpace: "local", Pool: shared.String(),
				Options: map[string]string{"network": "lan"}})
		for n := range callers {
			r := &recorder{to: p.to, pool: pool, begin: tr.began, host: i, number: n, counts: &p.counts}
			tr.clients = append(tr.clients, newCaller(r, seed))
		}
	}
	return work(tr.t, tr.clients)
}

// sum adds a count over all hosts.
func (tr *trial) sum(count func(*party) int64) (n int64) {
	for _, p := range tr.parties {
		n += count(p)
	}
	return n
}

// more waits until a count over all hosts has grown by n. It waits as long as the count grows at all, because a
// machine's speed proves nothing.
func (tr *trial) more(n int64, what string, count func(*party) int64) {
	tr.t.Helper()
	got := tr.sum(count)
	for until := got + n; got < until; got = tr.sum(count) {
		lab.AwaitOf(tr.t, what, func() error {
			if tr.sum(count) == got {
				return fmt.Errorf("%d of %d: %s", got, until, tr.state())
			}
			return nil
		})
	}
}

// everyone waits until the count of each party has grown by n.
func everyone(tr *trial, parties []*party, n int64, what string, count func(*party) int64) {
	tr.t.Helper()
	var until []int64
	for _, p := range parties {
		until = append(until, count(p)+n)
	}
	lab.AwaitOf(tr.t, what, func() error {
		for i, p := range parties {
			if got := count(p); got < until[i] {
				return fmt.Errorf("host %s is at %d of %d: %s", p.name, got, until[i], tr.state())
			}
		}
		return nil
	})
}

func decided(p *party) int64     { return p.counts.decided.Load() }
func answers(p *party) int64     { return p.counts.answered.Load() }
func refusals(p *party) int64    { return p.counts.away.Load() }
func nobodyThere(p *party) int64 { return p.counts.unsent.Load() }

// state describes the counts for the message of a failed wait.
func (tr *trial) state() (text string) {
	for _, p := range tr.parties {
		text += fmt.Sprintf(" %s answered %d, away %d, lost %d, unsent %d;", p.name, p.counts.answered.Load(),
			p.counts.away.Load(), p.counts.lost.Load(), p.counts.unsent.Load())
	}
	return text
}

// settle waits until every host has delivered everything to the store, and then until all their reads are newer
// than that.
func (tr *trial) settle() {
	tr.t.Helper()
	all := func(what string, settled func(kept) bool) {
		tr.t.Helper()
		lab.AwaitOf(tr.t, what, func() error {
			for _, p := range tr.parties {
				ctx, cancel := context.WithTimeout(context.Background(), patience)
				k, err := p.kept(ctx)
				cancel()
				if err != nil || !settled(k) {
					return fmt.Errorf("host %s: %+v, %v", p.name, k, err)
				}
			}
			return nil
		})
	}
	all("what was kept is delivered", func(k kept) bool { return k.waiting == 0 })
	since := time.Now()
	all("what is read is fresh", func(k kept) bool { return k.fresh.After(since) })
}

// readBack compares every host's leases with the acknowledged answers: no address is missing, and none is held
// that was never given.
func (tr *trial) readBack(h history) {
	tr.t.Helper()
	tr.settle()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	for _, p := range tr.parties {
		want := h.held()
		leases, err := p.leases(ctx)
		if err != nil {
			tr.t.Errorf("the leases, as host %s reads them: %v", p.name, err)
			continue
		}
		for _, l := range leases {
			who, addr := ownerOf(l), l.Address
			switch has, ok := want[who]; {
			case addr == gateway, l.Kind == ipam.Headroom:
			case !ok:
				tr.t.Errorf("LEAKED, as host %s reads it: %s is held by %s, who was not given it or gave it back",
					p.name, addr, l.MAC)
			case has != addr:
				tr.t.Errorf("host %s reads that %s has %s, who was given %s", p.name, l.MAC, addr, has)
			}
			delete(want, who)
		}
		for who, addr := range want {
			tr.t.Errorf("LOST, as host %s reads it: %s of %s", p.name, addr, who.mac())
		}
		if err := p.check(); err != nil {
			tr.t.Errorf("host %s: %v", p.name, err)
		}
	}
}

func ownerOf(l ipam.LeaseInfo) holder {
	return holder(l.MAC[2])<<24 | holder(l.MAC[3])<<16 | holder(l.MAC[4])<<8 | holder(l.MAC[5])
}

// judge checks the history in every way, and logs the results.
func (tr *trial) judge(name string) {
	tr.t.Helper()
	var recorders []*recorder
	for _, c := range tr.clients {
		recorders = append(recorders, c.recorder)
	}
	h := newHistory(recorders, tr.headroom > 0)
	for _, op := range h {
		if op.verdict == other {
			tr.t.Errorf("an answer that there should not be: %v", op)
			break
		}
	}
	for _, d := range h.doubled() {
		tr.t.Errorf("DOUBLED: %s", d)
	}
	for _, span := range tr.silent {
		for _, op := range h {
			if op.answered() && op.called > span[0] && op.returned < span[1] {
				tr.t.Errorf("answered between %v and %v, before all hosts had mended: %v", span[0], span[1], op)
			}
		}
	}
	for _, op := range h.falselyFull(addresses - tr.headroom*len(tr.parties)) {
		tr.t.Errorf("refused as full while an address was free: %v", op)
	}
	for _, op := range h.outstayed() {
		tr.t.Errorf("refused for an address that nobody asked for, after its host was answered: %v", op)
	}
	if err := h.linearizable(); err != nil {
		tr.t.Errorf("not linearizable: %v", err)
	}
	if forged, ok := h.doctored(); !ok {
		tr.t.Error("the history cannot be doctored, to see that it would not be explained")
	} else if forged.linearizable() == nil || len(forged.doubled()) == 0 {
		tr.t.Error("the history with an address given twice is explained, too: the check is worth nothing")
	}
	tr.readBack(h)
	verdicts := map[verdict]int{}
	for _, op := range h {
		verdicts[op.verdict]++
	}
	if n := len(h) - verdicts[away]; n < least {
		tr.t.Errorf("%d operations; want at least %d", n, least)
	}
	tr.t.Logf("%s: %d operations, %d not answered, %d refused by the lack of the store, %d as taken, %d as full", name,
		len(h), verdicts[lost], verdicts[away], verdicts[taken], verdicts[full])
}
