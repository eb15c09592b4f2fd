package cluster

import (
	"errors"
	"fmt"
	"strconv"
	"testing"

	"berth/test/lab"
)

// fault is a failure that happens while all hosts work.
type fault struct {
	name string
	// strike starts the fault. proof returns nil once the fault is proven to be in force, and heal ends it.
	strike   func(tr *trial) (proof func() error, heal func())
	headroom int // of each host
	// hit are the hosts whose callers notice the fault, counted by sign. The others' callers continue.
	hit  []int
	sign func(*party) int64
}

var faults = []fault{
	{name: "leader cut off", strike: func(tr *trial) (func() error, func()) {
		leader, others := tr.etcd.leader()
		leader.cut(tr.t)
		return func() error { return errors.Join(leader.dropped(), tr.etcd.another(others)) },
			func() { leader.heal(tr.t) }
	}},
	{name: "leader killed", strike: func(tr *trial) (func() error, func()) {
		leader, others := tr.etcd.leader()
		leader.Kill()
		return func() error { return errors.Join(leader.Killed(), tr.etcd.another(others)) }, leader.start
	}},
	{name: "leader stopped", strike: func(tr *trial) (func() error, func()) {
		leader, others := tr.etcd.leader()
		leader.freeze()
		return func() error { return errors.Join(leader.stopped(), tr.etcd.another(others)) }, leader.thaw
	}},
	{name: "quorum lost", hit: []int{0, 1, 2}, sign: refusals, strike: loseQuorum},
	{name: "quorum lost, with headroom", headroom: 16, hit: []int{0, 1, 2}, sign: refusals, strike: loseQuorum},
	{name: "host cut off", hit: []int{0}, sign: refusals, strike: func(tr *trial) (func() error, func()) {
		h := tr.hosts[0]
		h.cut(tr.t)
		return h.dropped, func() { h.heal(tr.t) }
	}},
	{name: "restored snapshot", hit: []int{0, 1, 2}, sign: refusals, strike: restoreSnapshot},
	{name: "restored snapshot, with headroom", headroom: 16, hit: []int{0, 1, 2}, sign: refusals,
		strike: restoreSnapshot},
	{name: "emptied etcd", hit: []int{0, 1, 2}, sign: refusals, strike: emptyEtcd},
	{name: "daemon killed", hit: []int{0}, sign: nobodyThere, strike: func(tr *trial) (func() error, func()) {
		h := tr.hosts[0]
		h.Kill()
		return h.Killed, h.start
	}},
}

// loseQuorum cuts off two members.
func loseQuorum(tr *trial) (proof func() error, heal func()) {
	leader, others := tr.etcd.leader()
	leader.cut(tr.t)
	others[0].cut(tr.t)
	proof = func() error {
		return errors.Join(leader.dropped(), others[0].dropped(), tr.etcd.headless(others[1]))
	}
	return proof, func() { leader.heal(tr.t); others[0].heal(tr.t) }
}

// rounds is how often the fault happens in one history.
const rounds = 3

// TestFaults: whatever happens to etcd's leader, to its quorum, to a host's connection or to a daemon, no address
// has two holders, acknowledged changes are kept, and the answers are linearizable (LN-12, BO-1, GA-22). After the
// fault everything recovers by itself.
func TestFaults(t *testing.T) {
	for i, f := range faults {
		t.Run(f.name, func(t *testing.T) {
			e := startEtcd(t)
			var hosts []*host
			for n := 1; n <= 3; n++ {
				h := newHost(t, n, "--store", "etcd", "--etcd-endpoints", e.endpoints())
				h.start()
				hosts = append(hosts, h)
			}
			plan(hosts[0], f.headroom)
			tr := ofHosts(t, e, hosts)
			tr.headroom = f.headroom
			tr.run(f, uint64(i))
		})
	}
}

// TestAlone is the same for one daemon with its own store. The daemon is killed.
func TestAlone(t *testing.T) {
	h := newHost(t, 1, "--store", "bolt")
	h.start()
	plan(h, 0)
	tr := ofHosts(t, nil, []*host{h})
	tr.run(faults[len(faults)-1], 0)
}

// plan creates the network from which all take addresses.
func plan(h *host, headroom int) {
	h.t.Helper()
	args := []string{"network", "create", "lan", "--space", space, "--subnet",
		fmt.Sprintf("%s,gateway=%s,pool", shared, gateway)}
	if headroom > 0 {
		args = append(args, "--headroom", strconv.Itoa(headroom))
	}
	if _, err := h.berth(args...); err != nil {
		h.t.Fatal(err)
	}
}

// run starts the callers, makes the fault happen, and judges the answers.
func (tr *trial) run(f fault, seed uint64) {
	tr.t.Helper()
	stop := tr.begin(seed)
	tr.more(least/20, "before the fault", answers)
	for tr.rounds = range rounds {
		proof, heal := f.strike(tr)
		lab.AwaitOf(tr.t, f.name+" is in force", proof)
		tr.during(f)
		heal()
		if tr.etcd != nil {
			tr.etcd.whole()
		}
		everyone(tr, tr.parties, least/100, "after the fault", answers)
	}
	tr.more(least-tr.sum(decided), "to the end of the history", decided)
	stop()
	tr.judge(f.name)
}

// during waits until the hosts that the fault hits have noticed it often enough, and the others have had enough
// answers.
func (tr *trial) during(f fault) {
	tr.t.Helper()
	var hit []*party
	for _, i := range f.hit {
		hit = append(hit, tr.parties[i])
	}
	everyone(tr, hit, 4*callers, "noticed where it hits", f.sign)
	if len(hit) < len(tr.parties) {
		tr.more(least/50, "answered while the fault is in force", answers)
	}
}
