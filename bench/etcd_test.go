package bench

import (
	"fmt"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"berth/internal/ipam"
	"berth/internal/ipam/cluster"
	"berth/internal/ipam/service"
	"berth/store/etcd"
	"berth/store/etcd/etcdtest"
)

// BenchmarkEtcd compares 64 callers, on one host or three, that take addresses of one pool, with as many callers
// of an etcd client, each of which creates one key per transaction. All members and hosts are in this process.
func BenchmarkEtcd(b *testing.B) {
	for _, members := range []int{1, 3} {
		b.Run(fmt.Sprintf("members=%d", members), func(b *testing.B) {
			eachMedium(b, func(b *testing.B, dir string) {
				s, err := etcdtest.Start(dir, members, true)
				must(b, err)
				b.Cleanup(s.Close)
				for _, n := range []int{1, 3} {
					b.Run(fmt.Sprintf("hosts=%d", n), func(b *testing.B) { shared(b, s.Endpoints, n) })
				}
				filled := openHost(b, s.Endpoints, "ready/")
				repeat(b, 65_536, 64, filled.unnamed)
				b.Run("ready", func(b *testing.B) {
					for b.Loop() {
						openHost(b, s.Endpoints, "ready/")
					}
				})
			})
		})
	}
}

// host is one host of a cluster, with its own store and service.
type host struct {
	*takes
	store *etcd.Store
}

// openHost opens a new host on the data under the prefix, and a Docker network on the one network there.
func openHost(b *testing.B, endpoints []string, prefix string) host {
	b.Helper()
	st, err := etcd.Open(b.Context(), etcd.Config{Endpoints: endpoints, Prefix: prefix, Timeout: 30 * time.Second,
		Bundle: cluster.Bundled()})
	must(b, err)
	b.Cleanup(func() { must(b, st.Close()) })
	s, err := service.Open(b.Context(), service.Config{Store: st, Host: fmt.Sprint("h", last.Add(1)),
		Member: &ipam.Member{Host: ipam.NewID(), Session: ipam.NewID(), Mark: cluster.MarkOf(st.Cluster())}})
	must(b, err)
	return host{planned(b, s, "lan", "networks: [{name: lan, space: global, subnets: [{cidr: 10.0.0.0/8, pool: true}]}]"), st}
}

// shared compares n hosts with a bare client, and reports their latency and how many of their changes ran again
// because of another host.
func shared(b *testing.B, endpoints []string, n int) {
	var hosts []host
	for range n {
		hosts = append(hosts, openHost(b, endpoints, b.Name()+"/"))
	}
	c, err := clientv3.New(clientv3.Config{Endpoints: endpoints, Logger: zap.NewNop(), DialTimeout: 5 * time.Second})
	must(b, err)
	b.Cleanup(func() { must(b, c.Close()) })
	value := strings.Repeat("v", 100)
	compare(b, ratio, by(64, func(caller int) error { return hosts[caller%n].unnamed(caller) }), by(64, func(int) error {
		key := "bare/" + newMAC().String()
		_, err := c.Txn(b.Context()).If(clientv3.Compare(clientv3.CreateRevision(key), "=", 0)).
			Then(clientv3.OpPut(key, value)).Commit()
		return err
	}))
	var again, all uint64
	for _, one := range hosts {
		counts := one.store.Counts()
		again, all = again+counts.Conflicts, all+counts.Updates
	}
	b.ReportMetric(100*float64(again)/float64(all), "conflicts-%")
}
