package bench

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"berth/internal/ipam"
	"berth/store/bolt"
)

// trimEach is the number of leases after which old events are removed, as a daemon always does. Otherwise the
// daemon would remove most of them at its start, and write the long list of free pages with each commit.
const trimEach = 20_000

// fill plans a network of one subnet in the state of a daemon in dir and takes n addresses, each with a MAC, a
// name and an event. It returns their pool. It syncs nothing.
func fill(b *testing.B, dir, subnet string, leases int) string {
	b.Helper()
	s, file := openOn(b, bolt.Config{Path: filepath.Join(dir, "state", "berth.db"), NoSync: true}, ipam.Known{})
	defer file.Close()
	name, _, _ := strings.Cut("net"+subnet, "/")
	t := planned(b, s, name, fmt.Sprintf("networks: [{name: %s, subnets: [{cidr: %s, pool: true}]}]", name, subnet))
	for left := leases; left > 0; left -= trimEach {
		repeat(b, min(left, trimEach), 50, t.named)
		must(b, s.Trim(b.Context()))
	}
	return t.pool.String()
}

// BenchmarkStart starts a daemon on an almost full /16, and shows its network.
func BenchmarkStart(b *testing.B) {
	dir := newDir(b, os.TempDir())
	fill(b, dir, "10.0.0.0/16", 65_500)
	b.Run("ready", func(b *testing.B) { starts(b, dir) })
	d := serve(b, dir)
	b.Run("show", func(b *testing.B) {
		for b.Loop() {
			d.berth(b, "network", "show", "net10.0.0.0")
		}
	})
}

// starts reports a daemon's time from exec to its first answer, including the check of its whole file, and its
// memory and disk use then.
func starts(b *testing.B, dir string) {
	var ready time.Duration
	var resident float64
	for b.Loop() {
		begun := time.Now()
		d := serve(b, dir)
		ready += time.Since(begun)
		resident += d.memory(b, "VmRSS")
		d.stop()
	}
	only(b)
	b.ReportMetric(ms(ready)/float64(b.N), "ms")
	b.ReportMetric(resident/float64(b.N), "resident-MiB")
	b.ReportMetric(fileSize(b, dir), "file-MiB")
}

// fileSize is the size of a daemon's state, in MiB.
func fileSize(b *testing.B, dir string) float64 {
	b.Helper()
	info, err := os.Stat(filepath.Join(dir, "state", "berth.db"))
	must(b, err)
	return float64(info.Size()) / (1 << 20)
}

// BenchmarkMillion uses a daemon with a million leases: it starts, lists them and gives addresses, compared with a
// daemon with 100,000.
func BenchmarkMillion(b *testing.B) {
	const leases = 1_000_000
	many, some := newDir(b, memory), newDir(b, memory)
	pool, smallPool := fill(b, many, "10.0.0.0/11", leases), fill(b, some, "10.0.0.0/11", leases/10)
	b.Run("ready", func(b *testing.B) { starts(b, many) })
	large, small := serve(b, many), serve(b, some)
	b.Run("list", func(b *testing.B) {
		for b.Loop() {
			if n := strings.Count(large.berth(b, "lease", "ls", "-q"), "\n"); n < leases {
				b.Fatalf("%d leases are listed", n)
			}
		}
	})
	compareBy(b, ratio, []int{1, 16}, large.takes(pool, "shop-api"), small.takes(smallPool, "shop-api"))
}

// BenchmarkThrowAways lets a million containers come and go, and compares that daemon with a new one. The memory
// is the process's own: the mapped part of the file is the kernel's cache.
func BenchmarkThrowAways(b *testing.B) {
	dir := newDir(b, memory)
	used, fresh := serve(b, dir), serve(b, newDir(b, memory))
	throw := used.throws(b)
	repeat(b, 1_000_000, 50, throw)
	b.Run("state", func(b *testing.B) {
		for b.Loop() {
			b.ReportMetric(fileSize(b, dir), "file-MiB")
			b.ReportMetric(used.memory(b, "RssAnon"), "own-MiB")
		}
		only(b)
	})
	compareBy(b, ratio, []int{1}, throw, fresh.throws(b))
}

// throws is a container's call: it takes an address and releases it.
func (d *daemon) throws(b *testing.B) call {
	pool := d.pool(b, "10.0.0.0/16")
	return func(int) error {
		addr, err := d.take(pool, "job")
		if err == nil {
			_, err = d.post("plugin/IpamDriver.ReleaseAddress", fmt.Sprintf(`{"PoolID":%q,"Address":%q}`, pool, addr))
		}
		return err
	}
}
