package main

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"berth/internal/ipam"
	"berth/internal/ipam/cluster"
	"berth/internal/ipam/service"
	"berth/store/etcd"
)

// clusterCallers is at how many callers hosts that share a store are compared with a bare client.
const clusterCallers = 64

// sharedNetwork is the one that all hosts take from.
const sharedNetwork = "lan"

var sharedSubnet = netip.MustParsePrefix("10.0.0.0/8")

// sharer is one host of a cluster: a store and a service of its own.
type sharer struct {
	store   *etcd.Store
	service *service.Service
	pool    ipam.ID
}

// openSharer opens a host over what is under the prefix.
func openSharer(ctx context.Context, s *servers, prefix, name string) (*sharer, error) {
	st, err := etcd.Open(ctx, etcd.Config{Endpoints: s.endpoints, Prefix: prefix, Timeout: 30 * time.Second,
		Bundle: cluster.Bundled()})
	if err != nil {
		return nil, err
	}
	service, err := service.Open(ctx, service.Config{Store: st, Host: name,
		Member: &ipam.Member{Host: ipam.NewID(), Session: ipam.NewID(), Mark: cluster.MarkOf(st.Cluster())}})
	if err != nil {
		return nil, errors.Join(err, st.Close())
	}
	return &sharer{store: st, service: service}, nil
}

// openSharers opens so many hosts and attaches each to the network, which the first one makes.
func openSharers(ctx context.Context, s *servers, prefix string, hosts int) (all []*sharer, err error) {
	defer func() {
		if err != nil {
			err = errors.Join(err, closeSharers(all))
		}
	}()
	for i := range hosts {
		h, err := openSharer(ctx, s, prefix, fmt.Sprintf("h%d", i))
		if err != nil {
			return all, err
		}
		all = append(all, h)
		if i == 0 {
			if _, err := h.service.Edit(ctx, ipam.EditOptions{},
				&ipam.CreateNetwork{Name: sharedNetwork, Space: ipam.GlobalSpace,
					Subnets: []ipam.SubnetSpec{{CIDR: sharedSubnet, Name: "wire"}}},
				&ipam.AddPool{Network: sharedNetwork, Subnet: "wire", Name: "front"}); err != nil {
				return all, err
			}
		}
		grant, err := h.service.RequestPool(ctx, ipam.PoolRequest{Space: ipam.GlobalSpace, Network: sharedNetwork})
		if err != nil {
			return all, err
		}
		h.pool = grant.ID
	}
	return all, nil
}

// leases are the addresses of all that is held, as the host reads it.
func (h *sharer) leases() (all []netip.Addr, err error) {
	for l, err := range h.service.Leases(context.Background(), ipam.LeaseFilter{Space: ipam.GlobalSpace}) {
		if err != nil {
			return nil, err
		}
		all = append(all, l.Address)
	}
	return all, nil
}

func closeSharers(all []*sharer) (err error) {
	for _, h := range all {
		err = errors.Join(err, h.store.Close())
	}
	return err
}

// takers are the callers of a comparison, with what they were given and how long that took.
type takers struct {
	hosts   []*sharer
	mac     macs
	given   [][]netip.Addr
	latency [][]time.Duration
}

func newTakers(hosts []*sharer, callers int) *takers {
	return &takers{hosts, make(macs, callers), make([][]netip.Addr, callers), make([][]time.Duration, callers)}
}

func (t *takers) take(caller int) error {
	h := t.hosts[caller%len(t.hosts)]
	start := time.Now()
	grant, err := h.service.RequestAddress(context.Background(),
		ipam.AddressRequest{Pool: h.pool, MAC: t.mac.next(caller)})
	if err != nil {
		return err
	}
	t.latency[caller] = append(t.latency[caller], time.Since(start))
	t.given[caller] = append(t.given[caller], grant.Addr())
	return nil
}

func (t *takers) p99() time.Duration {
	all := slices.Sorted(slices.Values(slices.Concat(t.latency...)))
	return all[len(all)*99/100]
}

// duplicates is how many addresses were given, and how many of those more than once; and it compares with the records,
// as each host reads them.
func (t *takers) duplicates() (given, twice int, err error) {
	seen := map[netip.Addr]int{}
	for _, addr := range slices.Concat(t.given...) {
		if seen[addr]++; seen[addr] == 2 {
			twice++
		}
	}
	for _, h := range t.hosts {
		leases, err := h.leases()
		if err != nil {
			return 0, 0, err
		}
		held := map[netip.Addr]bool{}
		for _, addr := range leases {
			held[addr] = true
		}
		for addr := range seen {
			if !held[addr] {
				return 0, 0, fmt.Errorf("%s was given and is not in the records", addr)
			}
		}
		if len(held) != len(leases) || len(held) != len(seen) {
			return 0, 0, fmt.Errorf("%d records of leases of %d addresses; %d were given", len(leases), len(held),
				len(seen))
		}
	}
	return len(seen), twice, nil
}

// conflicts is the share of the hosts' changes that were run again because of what another host had written.
func (t *takers) conflicts() float64 {
	var again, all uint64
	for _, h := range t.hosts {
		n := h.store.Counts()
		again, all = again+n.Conflicts, all+n.Updates
	}
	return float64(again) / float64(all)
}

func measureCluster(e env) ([]row, error) {
	var rows []row
	for _, m := range e.media() {
		for _, c := range []struct {
			name  string
			start func(dir string) (*servers, error)
		}{{"three members, embedded", embedded}, {"one member, Debian's", debian}} {
			dir := filepath.Join(m.path, c.name)
			if err := os.Mkdir(dir, 0o700); err != nil {
				return nil, err
			}
			s, err := c.start(dir)
			if err != nil {
				return nil, err
			}
			more, err := clusterRows(e, s, c.name+", "+m.name)
			if err := errors.Join(err, s.stop()); err != nil {
				return nil, err
			}
			rows = append(rows, more...)
		}
	}
	return rows, nil
}

func clusterRows(e env, s *servers, where string) ([]row, error) {
	var rows []row
	for _, c := range []struct {
		hosts int
		what  string
		ratio float64
	}{{3, "three hosts", 2}, {1, "one host", 3}} {
		more, err := sharedRate(e, s, c.hosts, c.what, c.ratio, where)
		if err != nil {
			return nil, err
		}
		rows = append(rows, more...)
	}
	cold, err := coldStart(s, where)
	return append(rows, cold), err
}

// sharedRate compares hosts that take from one pool with a bare client, at as many callers; and so does what each host
// writes, by itself.
func sharedRate(e env, s *servers, hosts int, what string, bound float64, where string) ([]row, error) {
	ctx := context.Background()
	all, err := openSharers(ctx, s, fmt.Sprintf("bench-%d/", hosts), hosts)
	if err != nil {
		return nil, err
	}
	defer closeSharers(all)
	c, err := s.client()
	if err != nil {
		return nil, err
	}
	defer c.Close()
	t, bare := newTakers(all, clusterCallers), bareCreates(c, clusterCallers)
	ours := func() (float64, error) { return load(clusterCallers, e.round, t.take) }
	theirs := func() (float64, error) { return load(clusterCallers, e.round, bare) }
	rate, bareRate, ratio, err := alternate(ours, theirs)
	if err != nil {
		return nil, err
	}
	measured := fmt.Sprintf("%.2fx (%.1fk/s of %.1fk/s)", ratio, rate/1000, bareRate/1000)
	if len(s.endpoints) > 1 { // where the members, and not the hosts, may have most of the work
		most, err := writesAlone(e, s, hosts, theirs)
		if err != nil {
			return nil, err
		}
		measured += fmt.Sprintf("; their writes alone: %.2fx", most)
	}
	given, twice, err := t.duplicates()
	if err != nil {
		return nil, err
	}
	p99, share := t.p99(), t.conflicts()
	return []row{
		{fmt.Sprintf("etcd: addresses of one pool by %s, %d callers in all, against a bare client's create of one "+
			"key for each: %s", what, clusterCallers, where),
			fmt.Sprintf("%.0fx", bound),
			measured, verdict(ratio >= bound)},
		{fmt.Sprintf("etcd: p99 then; conflicts run again; duplicates: %s, %s", what, where), "50 ms; 2 %; 0",
			fmt.Sprintf("%.1f ms; %.2f %%; %d of %d", float64(p99.Microseconds())/1000, 100*share, twice, given),
			verdict(p99 < 50*time.Millisecond && share < 0.02 && twice == 0)},
	}, nil
}

// writesAlone is how many addresses etcd takes, against theirs, where each host does nothing but send what it would
// write, one transaction after the other, for as many callers at once as it has.
func writesAlone(e env, s *servers, hosts int, theirs func() (float64, error)) (ratio float64, err error) {
	c, err := clientOf(s.endpoints[:1])
	if err != nil {
		return 0, err
	}
	defer c.Close()
	each := clusterCallers / hosts
	batches := bareBatches(c, hosts, each)
	_, _, ratio, err = alternate(func() (float64, error) {
		n, err := load(hosts, e.round, batches)
		return n * float64(each), err
	}, theirs)
	return ratio, err
}

// coldStart opens a host over a cluster of 65,536 leases.
func coldStart(s *servers, where string) (row, error) {
	const prefix = "bench-start/"
	ctx := context.Background()
	all, err := openSharers(ctx, s, prefix, 1)
	if err != nil {
		return row{}, err
	}
	t := newTakers(all, clusterCallers)
	errs := make([]error, clusterCallers)
	var wg sync.WaitGroup
	for i := range clusterCallers {
		wg.Go(func() {
			for range startLeases / clusterCallers {
				if errs[i] = t.take(i); errs[i] != nil {
					return
				}
			}
		})
	}
	wg.Wait()
	if err := errors.Join(append(errs, closeSharers(all))...); err != nil {
		return row{}, err
	}
	var times []time.Duration
	for n := range rounds {
		start := time.Now()
		h, err := openSharer(ctx, s, prefix, fmt.Sprintf("cold%d", n))
		if err != nil {
			return row{}, err
		}
		times = append(times, time.Since(start))
		leases, err := h.leases()
		if err := errors.Join(err, h.store.Close()); err != nil {
			return row{}, err
		}
		if len(leases) != startLeases {
			return row{}, fmt.Errorf("%d leases of %d are there after a cold start", len(leases), startLeases)
		}
	}
	ms := median(times)
	return row{fmt.Sprintf("etcd: a host ready with %d leases, store and service opened: %s", startLeases, where),
		"1 s",
		fmt.Sprintf("%d ms", ms.Milliseconds()), verdict(ms <= time.Second)}, nil
}
