package bench

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/miekg/dns"

	"berth/store/etcd/etcdtest"
	"berth/test/lab"
)

// BenchmarkNames takes and releases an address 50 times. It reports the longest time from the daemon's answer
// until its name appears, and until it disappears: at this daemon, and at another host's daemon on the same etcd.
func BenchmarkNames(b *testing.B) {
	listen, elsewhere := lab.Free(b), lab.Free(b)
	zone := []string{"--dns-zone", "bench.example", "--dns-listen"}
	d := servePools(b, append(zone, listen)...)
	b.Run("here", func(b *testing.B) { changes(b, d, listen, "local") })

	members, err := etcdtest.Start(newDir(b, os.TempDir()), 3, true)
	must(b, err)
	b.Cleanup(members.Close)
	shared := []string{"--store", "etcd", "--etcd-endpoints", strings.Join(members.Endpoints, ",")}
	alpha := serve(b, newDir(b, os.TempDir()), append(shared, "--host", "alpha")...)
	serve(b, newDir(b, os.TempDir()), slices.Concat(shared, zone, []string{elsewhere, "--host", "beta"})...)
	b.Run("elsewhere", func(b *testing.B) { changes(b, alpha, elsewhere, "global") })
}

func changes(b *testing.B, d *daemon, listen, space string) {
	network := fmt.Sprint("net", last.Add(1))
	edit := func(format string, args ...any) {
		_, err := d.post("admin/v1/edits", fmt.Sprintf(`{"edits":[{`+format+`}]}`, args...))
		must(b, err)
	}
	edit(`"op":"network.create","name":%q,"space":%q,"subnets":[{"cidr":"10.200.0.0/24","pool":true}]`, network, space)
	var there, gone time.Duration
	change := func() {
		edit(`"op":"address.take","network":%q,"owner":"changer"`, network)
		there = max(there, seen(b, listen, network, true))
		edit(`"op":"address.release","network":%q,"owner":"changer"`, network)
		gone = max(gone, seen(b, listen, network, false))
	}
	change()
	there, gone = 0, 0 // a new daemon first reads the existing data
	for b.Loop() {
		for range 50 {
			change()
		}
	}
	edit(`"op":"network.remove","network":%q`, network)
	only(b)
	b.ReportMetric(ms(there), "there-ms")
	b.ReportMetric(ms(gone), "gone-ms")
}

// seen queries the name until it appears or disappears, and returns how long that took.
func seen(b *testing.B, listen, network string, there bool) (took time.Duration) {
	b.Helper()
	q := new(dns.Msg).SetQuestion("changer."+network+".bench.example.", dns.TypeA)
	for begun := time.Now(); ; {
		m, err := dns.Exchange(q, listen)
		must(b, err)
		if took = time.Since(begun); (len(m.Answer) > 0) == there {
			return took
		}
		if took > 10*time.Second {
			b.Fatal("the change is not seen")
		}
	}
}
