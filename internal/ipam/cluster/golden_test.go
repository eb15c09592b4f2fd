package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"berth/internal/allocator"
	"berth/internal/golden"
	"berth/internal/ipam"
	"berth/internal/ipam/ledger"
	"berth/internal/ipam/service"
	"berth/store"
	"berth/store/etcd"
	"berth/store/mem"
)

// goldenCluster is what a test must know of the golden cluster. Its only host is a.
type goldenCluster struct {
	Now     time.Time
	Host    ipam.ID
	Cluster string
	Pool    ipam.ID    // the pool of its Docker network on lan
	Queued  netip.Addr // its release waits in the host's own store
}

// goldenEdits make a record of each kind in a shared store that an edit can make.
func goldenEdits() []ipam.Edit {
	elastic := ipam.Range{IPRange: allocator.WholeRange(netip.MustParsePrefix("203.0.113.0/28")).IPRange}
	return []ipam.Edit{
		lanWith(2, lanCIDR),
		&ipam.ModifyNetwork{Network: "lan", Elastic: new("on")},
		&ipam.AddReservation{Network: "lan", Owner: "db", Wishes: []ipam.Wish{{Address: addrs("200")[0]}}},
		&ipam.CreateNetwork{Name: "seen", Space: ipam.GlobalSpace, Type: string(ipam.Dynamic),
			Subnets: []ipam.SubnetSpec{{CIDR: netip.MustParsePrefix("10.78.0.0/24")}}},
		&ipam.AddReservation{Network: "seen", Owner: "vm/1"},
		&ipam.CreateAccount{Account: "shop", Owners: []string{"web"}},
		&ipam.AddElasticRange{Range: elastic},
		&ipam.AllocateElastic{Account: "shop"},
		&ipam.AllocateElastic{},
		&ipam.LockDeploy{Project: "shop", ID: ipam.ID{1}, Host: "a", PID: 17, TTL: ipam.Duration(time.Minute)},
	}
}

// goldenClock stands still.
func goldenClock(at time.Time) func() time.Time { return func() time.Time { return at } }

// writeGoldenCluster writes the golden files of a cluster: etcd.txt, host.txt and cluster.json.
func writeGoldenCluster(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	r := newBackRig(t)
	t.Cleanup(r.end)
	r.now = goldenClock(now)
	a := r.host("a")
	a.ready()
	_, err := a.Edit(t.Context(), ipam.EditOptions{Key: "golden"}, goldenEdits()...)
	fine(t, err)
	a.attach()
	first, queued := a.mustRun(1), a.mustRun(2)
	a.end(a.mustRun(3))
	standsIn(t, a.svc(), "shop-web-4", "shop-web-2")
	goldenEdge(t, a.svc(), first)
	a.comes("it has its headroom", func() bool {
		a.Shared.mu.Lock()
		defer a.Shared.mu.Unlock()
		return len(a.Shared.headroom) == 1
	})
	a.remembered()
	r.save()
	a.kill()
	goldenQueue(t, a, queued)
	var all []store.Record
	for key, value := range r.saved {
		name := strings.TrimPrefix(key, r.cfg.Prefix)
		place, _, _ := strings.Cut(name, "/")
		if !slices.Contains([]string{"t", "p", "h"}, place) { // these keys end with a daemon
			all = append(all, store.Record{Key: []byte(name), Value: []byte(value)})
		}
	}
	slices.SortFunc(all, func(a, b store.Record) int { return strings.Compare(string(a.Key), string(b.Key)) })
	golden.WriteRecords(t, "etcd.txt", "All of a shared store of 1.0, as it is in etcd: key without prefix and value "+
		"of each, in hexadecimal.", all)
	golden.WriteRecords(t, "host.txt", "What the host keeps of that store in its own: key and value of each.",
		ownRecords(t, a))
	text, err := json.MarshalIndent(goldenCluster{now, a.id, a.cluster, a.pool, queued}, "", " ")
	fine(t, err)
	golden.Write(t, "cluster.json", append(text, '\n'))
}

// goldenEdge maps an elastic address to a container, and reports it as in force.
func goldenEdge(t *testing.T, svc *service.Service, guest netip.Addr) {
	t.Helper()
	elastic := netip.MustParseAddr("203.0.113.1")
	_, err := svc.Edit(t.Context(), ipam.EditOptions{},
		&ipam.AssociateElastic{Address: elastic, Instance: testMAC(1).String(), Network: "lan"})
	fine(t, err)
	edge := listen(t, svc)
	defer edge.end()
	m := edge.has(elastic)
	err = edge.reports(ipam.EdgeReport{Applied: []ipam.EdgeApplied{{Address: elastic, Association: m.Association,
		Guest: guest, Grant: m.Grant}}})
	fine(t, err)
}

// goldenQueue has a host release an address while etcd is unreachable.
func goldenQueue(t *testing.T, h *backHost, addr netip.Addr) {
	t.Helper()
	away, err := OpenShared(t.Context(), SharedConfig{Own: h.own, Mark: sharedMark, Host: h.name, Now: h.r.now,
		Reach: func() store.Reach { return store.Reach{Err: store.ErrAway} }})
	fine(t, err)
	fine(t, away.ReleaseAddress(t.Context(), h.pool, addr))
}

func ownRecords(t *testing.T, h *backHost) (all []store.Record) {
	t.Helper()
	err := h.own.View(t.Context(), func(tx store.Tx) error {
		all = nil
		for rec, err := range tx.Scan(store.Range{}) {
			if err != nil {
				return err
			}
			all = append(all, rec)
		}
		return nil
	})
	fine(t, err)
	return all
}

// openGoldenCluster loads the golden cluster into an etcd of this process, and returns its host's store. The
// daemon of the host does not run.
func openGoldenCluster(t *testing.T) (r *backRig, was goldenCluster, own *mem.Store) {
	t.Helper()
	if golden.Read(t, "etcd.txt") == nil {
		writeGoldenCluster(t)
	}
	fine(t, json.Unmarshal(golden.Read(t, "cluster.json"), &was))
	r, own = newBackRig(t), mem.New()
	t.Cleanup(r.end)
	r.now = goldenClock(was.Now)
	r.saved = map[string]string{}
	for _, rec := range golden.Records(t, "etcd.txt") {
		r.saved[r.cfg.Prefix+string(rec.Key)] = string(rec.Value)
	}
	r.back(false)
	err := own.Update(t.Context(), func(tx store.Tx) error {
		for _, rec := range golden.Records(t, "host.txt") {
			if err := tx.Put(rec.Key, rec.Value); err != nil {
				return err
			}
		}
		return nil
	})
	fine(t, err)
	return r, was, own
}

// TestGoldenCluster: a shared store of 1.0, as it is in etcd, opens, is sound, and shows the same as before
// (GA-26).
func TestGoldenCluster(t *testing.T) {
	r, was, _ := openGoldenCluster(t)
	cfg := r.cfg
	cfg.Cluster = was.Cluster
	st, err := etcd.Open(t.Context(), cfg)
	fine(t, err)
	defer st.Close()
	kinds := map[byte]bool{}
	err = st.View(t.Context(), func(tx store.Tx) error {
		for rec, err := range tx.Scan(store.Range{}) {
			if err != nil {
				return err
			}
			kinds[rec.Key[0]] = true
		}
		return nil
	})
	fine(t, err)
	for _, kind := range []byte("adefghiklmnopstuwxy") { // without j, z and a host's own c, q, r, v
		if !kinds[kind] {
			t.Errorf("it has no record of the kind %c", kind)
		}
	}
	svc, err := service.Open(t.Context(), service.Config{Store: st, Host: "a", Now: r.now, Upgrading: upgrading(),
		Member: &ipam.Member{Host: was.Host, Session: ipam.ID{2}, Mark: sharedMark}})
	fine(t, err)
	if problems, err := svc.Check(t.Context()); err != nil || len(problems) > 0 {
		t.Fatalf("%q, %v", problems, err)
	}
	golden.JSON(t, "clustershown.json", shownOfCluster(t, svc))
}

// upgrading upgrades a store of an older format without a backup.
func upgrading() ledger.Upgrading {
	return ledger.Upgrading{Backup: func(context.Context, int) (string, error) { return "", nil }}
}

// shownOfCluster returns what a host of a cluster shows, without what its start adds.
func shownOfCluster(t *testing.T, s *service.Service) map[string]any {
	t.Helper()
	all := map[string]any{}
	add := func(name string, list any, err error) {
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		all[name] = list
	}
	hosts, err := s.Hosts(t.Context())
	add("hosts", hosts, err)
	networks, err := s.Networks(t.Context(), ipam.NetworkFilter{})
	add("networks", networks, err)
	subnets, err := s.Subnets(t.Context(), "")
	add("subnets", subnets, err)
	var leases []ipam.LeaseInfo
	for l, err := range s.Leases(t.Context(), ipam.LeaseFilter{Remembered: true}) {
		fine(t, err)
		leases = append(leases, l)
	}
	add("leases", leases, nil)
	accounts, err := s.Accounts(t.Context())
	add("accounts", accounts, err)
	elastics, err := s.Elastics(t.Context(), "", netip.Addr{}, 100)
	add("elastic addresses", elastics, err)
	standIns, err := s.StandIns(t.Context())
	add("stand-ins", standIns, err)
	events, err := s.Events(t.Context(), ipam.EventFilter{})
	add("events", events, err)
	return all
}

// TestGoldenHost: the host takes part again. Its own store remembers the cluster, even with another etcd, and
// the waiting release is done.
func TestGoldenHost(t *testing.T) {
	r, was, own := openGoldenCluster(t)
	kinds := map[byte]bool{}
	for _, rec := range golden.Records(t, "host.txt") {
		kinds[rec.Key[0]] = true
	}
	for _, kind := range []byte{outboxKeys, headroomKeys, recallKeys} {
		if !kinds[kind] {
			t.Errorf("it has no record of the kind %c", kind)
		}
	}
	a := r.hostOf("a", was.Host, own)
	a.pool = was.Pool
	a.sees = false
	a.comes("it has looked at etcd",
		func() bool { return a.State().Err == nil || errors.Is(a.State().Err, store.ErrBack) })
	if errors.Is(a.State().Err, store.ErrBack) { // the host knows that this is not the etcd of 1.0
		r.plays("a: mend")
	}
	a.ready()
	a.comes("the release is done", func() bool {
		n, err := Undelivered(t.Context(), own)
		return err == nil && n == 0
	})
	if now := r.leases(a)[was.Queued]; now != nil {
		t.Errorf("the release is not done: %+v", now)
	}
	a.mustRun(4)
	if problems, err := a.svc().Check(t.Context()); err != nil || len(problems) > 0 {
		t.Fatalf("%q, %v", problems, err)
	}
}
