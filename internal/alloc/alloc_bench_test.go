package alloc

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"runtime"
	"testing"
	"time"
)

// ends times n steps, and reports how long each takes, and the last 1,000 compared with the first 1,000.
func ends(b *testing.B, n int, run func() (step func(i int))) {
	var first, last time.Duration
	for b.Loop() {
		step, began := run(), time.Now()
		for i := range n {
			switch i {
			case 1000:
				first += time.Since(began)
			case n - 1000:
				began = time.Now()
			}
			step(i)
		}
		last += time.Since(began)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "each-ns")
	b.ReportMetric(float64(last)/float64(first), "ratio")
}

// heap returns the bytes in use after garbage collection.
func heap() float64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc)
}

// BenchmarkFill takes all addresses of a subnet or, from a large one, as many as a /16 has.
func BenchmarkFill(b *testing.B) {
	for _, prefix := range []string{"10.0.0.0/16", "10.0.0.0/8", "fd00::/64"} {
		b.Run(prefix, func(b *testing.B) {
			p := netip.MustParsePrefix(prefix)
			ends(b, 65534, func() func(int) {
				s := NewSet(p)
				return func(i int) {
					if _, ok := take(s, Usable(p)); !ok {
						b.Fatalf("full after %d", i)
					}
				}
			})
		})
	}
}

// BenchmarkChurn removes a random member of a /16 and takes the next free address, with that many percent in
// use.
func BenchmarkChurn(b *testing.B) {
	p := netip.MustParsePrefix("10.0.0.0/16")
	for _, percent := range []int{50, 90, 99, 100} {
		b.Run(fmt.Sprintf("full=%d", percent), func(b *testing.B) {
			s, rng := NewSet(p), rand.New(rand.NewPCG(1, 2))
			var members []netip.Addr
			for _, i := range rng.Perm(65534)[:65534*percent/100] {
				a := valueOf(p.Addr()).add(u128{0, uint64(i + 1)}).addr(true)
				s.Add(a)
				members = append(members, a)
			}
			for b.Loop() {
				i := rng.IntN(len(members))
				s.Remove(members[i])
				a, ok := take(s, Usable(p))
				if !ok {
					b.Fatal("nothing is free")
				}
				members[i] = a
			}
		})
	}
}

// scattered returns n random addresses of a /64.
func scattered(p netip.Prefix, n int) []netip.Addr {
	rng := rand.New(rand.NewPCG(1, 2))
	all := make([]netip.Addr, n)
	for i := range all {
		all[i] = valueOf(p.Addr()).add(u128{0, rng.Uint64()}).addr(false)
	}
	return all
}

// BenchmarkScattered adds 20,000 random addresses of a /64, and reports the memory that they use.
func BenchmarkScattered(b *testing.B) {
	p := netip.MustParsePrefix("fd00::/64")
	all := scattered(p, 20000)
	before := heap()
	var s *Set
	for b.Loop() {
		s = NewSet(p)
		for _, a := range all {
			s.Add(a)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(all)), "each-ns")
	b.ReportMetric(heap()-before, "held-B")
	runtime.KeepAlive(s)
	runtime.KeepAlive(all)
}

// BenchmarkCarve carves 10,000 subnets in turn, around some routes of the host.
func BenchmarkCarve(b *testing.B) {
	base := netip.MustParsePrefix("10.0.0.0/8")
	for _, routes := range []int{0, 20} {
		b.Run(fmt.Sprintf("routes=%d", routes), func(b *testing.B) {
			var avoid []netip.Prefix
			for i := range routes {
				avoid = append(avoid, netip.MustParsePrefix(fmt.Sprintf("10.%d.7.0/24", i)))
			}
			ends(b, 10000, func() func(int) {
				s := NewBlocks()
				return func(i int) {
					if p, ok := s.Carve(base, 24, avoid); !ok || !s.Insert(p) {
						b.Fatalf("subnet %d: %v, %v", i, p, ok)
					}
				}
			})
		})
	}
}
