package crash

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"berth/internal/admin/api"
	"berth/internal/admin/client"
	"berth/internal/ipam"
	"berth/internal/ipam/cluster"
	"berth/store/bolt"
	"berth/test/lab"
)

// TestRollbackEtcd lets the callers of two hosts work, puts their shared etcd back to an earlier snapshot or to
// nothing, ends the daemons before, after or not at all, and repairs it with `berth state mend`. Before, between
// and after the mends every running holder keeps its address, and no other gets it (invariant 1, BO-1, LN-12).
func TestRollbackEtcd(t *testing.T) {
	begin := time.Now()
	r := newReturn(t, rand.New(rand.NewPCG(drawnSeed(t), 2)))
	defer func() {
		if t.Failed() {
			t.Logf("in the round in which etcd is %s; the logs:\n%s\n%s", r.story, r.hosts[0].d.Log(),
				r.hosts[1].d.Log())
		}
	}()
	for round := range sample(*rollbacks) {
		r.round()
		if t.Failed() {
			t.Fatalf("in round %d of -seed %d", round+1, *seed)
		}
	}
	for _, h := range r.hosts {
		h.d.Stop(h.d.t)
	}
	if sample(*rollbacks) >= 10 && (r.put == 0 || r.seen == 0 || r.back == 0) {
		t.Errorf("too little went back: %d leases were remembered, %d seen, %d had ended", r.put, r.seen, r.back)
	}
	t.Logf("%d returns of etcd in %s, %d of them to nothing: %d leases were put back by what was remembered, %d by "+
		"the engine's word, "+
		"%d that had ended were back, %d addresses had two holders; 0 doubled among what runs", sample(*rollbacks),
		time.Since(begin).Round(time.Millisecond), r.emptied, r.put, r.seen, r.back, r.collided)
}

// etcdReturn is two hosts with an etcd that goes back in time.
type etcdReturn struct {
	t      testing.TB
	random *rand.Rand
	etcd   *etcdProcess
	*book
	hosts []*returnHost
	story string // this round's faults, for messages

	emptied  int
	put      int // leases that etcd had lost and a host remembered
	seen     int // lost leases that no host remembered, but whose holders run
	back     int // leases in etcd whose holders had ended
	collided int // addresses that have two holders by the mends
}

// returnHost is one host: its daemon, its ledger, and an engine that runs everything in the ledger.
type returnHost struct {
	*ledger
	name string
	d    *daemon
}

func newReturn(t *testing.T, random *rand.Rand) *etcdReturn {
	t.Helper()
	r := &etcdReturn{t: t, random: random, etcd: runEtcd(t), book: newBook()}
	for _, name := range []string{"alpha", "beta"} {
		p := newPlace(t)
		p.space = ipam.GlobalSpace
		h := &returnHost{ledger: &ledger{place: p, book: r.book, onePool: true}, name: name}
		p.flags = []string{"--host", name, "--store", "etcd", "--etcd-endpoints", r.etcd.client, "--log-level",
			"warning",
			"--docker-host", startEngine(h.ledger, rolled.String(), "10.9.0.1"), "--check-every", "0", "--check-grace",
			"1ms"}
		h.d = p.start()
		r.hosts = append(r.hosts, h)
	}
	r.hosts[0].must("network", "create", "lan", "--space", ipam.GlobalSpace, "--subnet", rolled.String()+
		",gateway=10.9.0.1,pool", "--headroom", "8", "--sticky", "off")
	for _, h := range r.hosts {
		if _, err := h.attach(rolled.String(), map[string]string{"network": "lan"}); err != nil {
			t.Fatal(err)
		}
	}
	return r
}

// must runs a command that must succeed.
func (h *returnHost) must(words ...string) string {
	h.t.Helper()
	out := h.d.berth(words...)
	if strings.Contains(out, "exit status") {
		h.t.Fatalf("host %s: berth %s:\n%s", h.name, strings.Join(words, " "), out)
	}
	return out
}

// round is one round: etcd goes back, and the hosts repair it.
func (r *etcdReturn) round() {
	r.t.Helper()
	r.goBack()
	for i, h := range r.shuffled() {
		for _, other := range r.hosts {
			other.refuses()
		}
		r.mend(h, i == len(r.hosts)-1)
	}
	for _, h := range r.hosts {
		h.ready()
	}
	r.hold("after the mends")
	r.repair()
	r.askedByStrangers()
	r.hold("after strangers have asked")
	for _, h := range r.hosts {
		h.d.fsck()
	}
	r.release()
}

// fate is what happens to a daemon while etcd goes back.
type fate int

const (
	goesOn fate = iota
	killedBefore
	killedBehind
	stopped
	fates
)

func (f fate) String() string {
	return []string{"goes on", "is killed before", "is killed behind", "is stopped before"}[f]
}

// goBack lets all callers work, takes a snapshot meanwhile, and later puts etcd back to it. Afterwards both
// daemons run and distrust etcd.
func (r *etcdReturn) goBack() {
	r.t.Helper()
	empty, token := r.random.IntN(5) == 0, []string{"etcd-cluster", "another"}[r.random.IntN(2)]
	if empty {
		r.emptied++
	}
	become := map[*returnHost]fate{}
	r.story = map[bool]string{true: "emptied", false: "restored with the token " + token}[empty]
	for _, h := range r.hosts {
		become[h] = fate(r.random.IntN(int(fates)))
		r.story += fmt.Sprintf(", host %s %s", h.name, become[h])
	}
	stop := make(chan struct{})
	var waits []func()
	r.wakeAfter(1 + r.random.IntN(300))
	for _, h := range r.hosts {
		waits = append(waits, work(h.ledger, h.pools[0].id, r.random.Uint64(), stop))
	}
	r.hear()
	saved := r.etcd.save()
	for _, h := range r.hosts { // a host that remembers nothing newer than the snapshot cannot know that etcd went back
		h.remembers(saved)
	}
	r.wakeAfter(1 + r.random.IntN(500)) // killed hosts do not remember these
	r.hear()
	for _, h := range r.shuffled() {
		switch become[h] {
		case killedBefore:
			h.d.Kill()
		case stopped:
			h.d.Stop(h.d.t)
		}
	}
	r.etcd.putBack(empty, token)
	for _, h := range r.hosts {
		if become[h] == killedBehind {
			h.d.Kill()
		}
		if become[h] != goesOn {
			h.d = h.launch()
		}
		h.distrusts()
	}
	close(stop)
	for _, wait := range waits {
		wait()
	}
	r.forgetUnanswered()
}

// hear waits until the planned number of calls is acknowledged.
func (r *etcdReturn) hear() {
	r.t.Helper()
	select {
	case <-r.wake:
	case <-time.After(patience):
		r.t.Fatalf("the callers hear nothing:\n%s", r.hosts[0].d.Log())
	}
}

// shuffled are the hosts in random order.
func (r *etcdReturn) shuffled() []*returnHost {
	all := slices.Clone(r.hosts)
	r.random.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	return all
}

// remembers waits until the host's own store has a shared revision above rev.
func (h *returnHost) remembers(rev int64) {
	h.t.Helper()
	copied := filepath.Join(h.dir, "copy")
	h.d.Await(h.d.t, func() error {
		if err := h.backUp(copied); err != nil {
			return err
		}
		own, err := bolt.Open(h.t.Context(), bolt.Config{Path: copied, NoSync: true})
		if err != nil {
			return err
		}
		defer own.Close()
		known, err := cluster.RecalledTrace(h.t.Context(), own)
		if err == nil && (known == nil || known.Revision <= rev) {
			err = fmt.Errorf("host %s remembers nothing behind revision %d: %+v", h.name, rev, known)
		}
		return err
	})
}

// backUp copies the host's own store to a file.
func (h *returnHost) backUp(name string) error {
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	defer f.Close()
	c := client.New(h.admin())
	defer c.Close()
	_, _, err = c.Backup(h.t.Context(), f, false)
	return err
}

// stands waits until the daemon's cluster status satisfies a condition.
func (h *returnHost) stands(is func(*api.ClusterStatus) bool) {
	h.t.Helper()
	c := client.New(h.admin())
	defer c.Close()
	h.d.Await(h.d.t, func() error {
		st, err := c.Status(h.t.Context())
		if err == nil && (st.Cluster == nil || !is(st.Cluster)) {
			err = fmt.Errorf("host %s: %+v", h.name, st.Cluster)
		}
		return err
	})
}

func (h *returnHost) distrusts() {
	h.t.Helper()
	h.stands(func(c *api.ClusterStatus) bool { return c.Back != nil })
}

func (h *returnHost) ready() {
	h.t.Helper()
	h.stands(func(c *api.ClusterStatus) bool {
		return c.Away == "" && c.Back == nil && c.Mending == nil && c.Waiting == 0
	})
}

// refuses fails the test if the host does not refuse a take.
func (h *returnHost) refuses() {
	h.t.Helper()
	_, err := h.take(h.pools[0].id, "")
	if text, ok := refused(err); !ok ||
		!strings.Contains(text, "Berth has given and changed nothing in the cluster's spaces") &&
			!strings.Contains(text, "so it gives and changes nothing in the cluster's spaces") {
		h.t.Errorf("host %s, while not all have mended, answers a take with %v", h.name, err)
	}
}

// forgetUnanswered forgets holders with an unfinished take or release: no engine has an endpoint for them.
func (r *etcdReturn) forgetUnanswered() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for mac, le := range r.open {
		if le.addr == "" || le.released {
			delete(r.open, mac)
		}
	}
}

// mend makes a host do its part of the repair, as the last host or not.
func (r *etcdReturn) mend(h *returnHost, last bool) {
	r.t.Helper()
	var report ipam.MendReport
	lab.Must(r.t, json.Unmarshal([]byte(h.must("state", "mend", "--yes", "--format", "json")), &report))
	if report.Nothing || !report.Remembers || !report.Sees || len(report.Problems) > 0 ||
		last != (len(report.Missing) == 0) {
		r.t.Errorf("host %s mends: %+v", h.name, report)
	}
	r.put += report.Leases
	r.seen += report.Running
	r.back += report.Ended
	r.collided += len(report.Collisions)
}

// leases are a host's leases of containers, by address.
func (h *returnHost) leases() map[string]ipam.LeaseInfo {
	h.t.Helper()
	c := client.New(h.admin())
	defer c.Close()
	all, err := c.Leases(h.t.Context(), ipam.LeaseFilter{Space: ipam.GlobalSpace, Subnet: rolled})
	lab.Must(h.t, err)
	held := map[string]ipam.LeaseInfo{}
	for _, l := range all {
		if l.Kind != ipam.Gateway && l.Kind != ipam.Headroom {
			held[l.Address.String()] = l
		}
	}
	return held
}

// hold fails the test if a running container's address is not held by its host, or is held by another running one.
func (r *etcdReturn) hold(when string) {
	r.t.Helper()
	has := r.hosts[r.random.IntN(2)].leases()
	for _, h := range r.hosts {
		for addr, le := range h.running() {
			l, held := has[addr]
			if other := r.open[l.MAC.String()]; !held || l.Host != h.name || l.MAC.String() != le.mac && other != nil {
				r.t.Errorf("LOST, %s: %s of %s on host %s is held by %s of host %q", when, addr, le.mac, h.name, l.MAC,
					l.Host)
			}
		}
	}
}

// repair makes each host compare the records with what runs, until they agree, as `berth check --repair` does:
// what a killed host released in its last second is back in the records.
func (r *etcdReturn) repair() {
	r.t.Helper()
	for range 6 {
		for _, h := range r.hosts {
			c := client.New(h.admin())
			_, err := c.Check(r.t.Context(), ipam.CheckRequest{Repair: true})
			c.Close()
			lab.Must(r.t, err)
		}
		if r.agrees() {
			return
		}
	}
	for addr, l := range r.hosts[0].leases() {
		if r.holder[addr] == nil {
			r.t.Errorf("%s is held by %s of host %s, and does not run", addr, l.MAC, l.Host)
		}
	}
}

// agrees reports whether every host has exactly as many leases as run.
func (r *etcdReturn) agrees() bool {
	for _, h := range r.hosts {
		if len(h.leases()) != len(r.holder) {
			return false
		}
	}
	return true
}

// askedByStrangers makes new callers request addresses from both hosts at once. Berth refuses each running
// address, and gives only others.
func (r *etcdReturn) askedByStrangers() {
	r.t.Helper()
	asked := make(chan string)
	var wg sync.WaitGroup
	for i := range callers {
		wg.Go(func() { r.hosts[i%len(r.hosts)].answerStrangers(asked) })
	}
	for _, addr := range slices.Sorted(maps.Keys(r.holder)) {
		asked <- addr
	}
	for range 60 {
		asked <- "" // any address
	}
	close(asked)
	wg.Wait()
}

func (h *returnHost) answerStrangers(asked <-chan string) {
	var given []*lease
	for addr := range asked {
		le, err := h.take(h.pools[0].id, addr)
		text, answered := refused(err)
		switch {
		case err == nil:
			given = append(given, le) // took has checked that it is not doubled
		case !answered || addr == "" || !strings.Contains(text, "held by"):
			h.t.Errorf("a stranger asks host %s for %q: %v", h.name, addr, err)
		}
	}
	for _, le := range given {
		h.mustGive(le)
	}
}

// release ends half of what runs, so that the subnet is never full.
func (r *etcdReturn) release() {
	r.t.Helper()
	for _, h := range r.hosts {
		n := 0
		for _, le := range h.running() {
			if n++; n%2 == 0 || n > 80 {
				h.mustGive(le)
			}
		}
	}
}
