package alloc

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"runtime"
	"testing"
	"time"

	"go4.org/netipx"
)

// fill takes n addresses, and returns the nanoseconds that each of the first 1,000 and of the last 1,000 took.
func fill(b *testing.B, s *Set, r netipx.IPRange, n int) (first, last float64) {
	began := time.Now()
	var lastBegan time.Time
	for i := range n {
		switch i {
		case 1000:
			first = float64(time.Since(began)) / 1000
		case n - 1000:
			lastBegan = time.Now()
		}
		if _, ok := take(s, r); !ok {
			b.Fatalf("full after %d of %d", i, n)
		}
	}
	return first, float64(time.Since(lastBegan)) / 1000
}

// heap returns the bytes in use once all garbage is gone.
func heap() float64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc)
}

func benchmarkFill(b *testing.B, p netip.Prefix) {
	r := Usable(p)
	n := int(Size(r).Int64())
	var first, last float64
	for b.Loop() {
		f, l := fill(b, NewSet(p), r, n)
		first, last = first+f, last+l
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "addr-ns")
	b.ReportMetric(first/float64(b.N), "first-ns")
	b.ReportMetric(last/float64(b.N), "last-ns")
}

func BenchmarkFill16(b *testing.B) { benchmarkFill(b, netip.MustParsePrefix("10.0.0.0/16")) }

// The same 65,534 addresses at the beginning of a /64.
func BenchmarkFill64(b *testing.B) {
	p := netip.MustParsePrefix("fd00::/64")
	var first, last float64
	for b.Loop() {
		f, l := fill(b, NewSet(p), Usable(p), 65534)
		first, last = first+f, last+l
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/65534, "addr-ns")
	b.ReportMetric(first/float64(b.N), "first-ns")
	b.ReportMetric(last/float64(b.N), "last-ns")
}

// 16.7 million addresses, and the memory held when half of them are taken (every other one, the worst case) and when
// all are.
func BenchmarkFill8(b *testing.B) {
	p := netip.MustParsePrefix("10.0.0.0/8")
	benchmarkFill(b, p)
	before := heap()
	s := NewSet(p)
	for a := p.Addr(); p.Contains(a); a = a.Next().Next() {
		s.Add(a)
	}
	b.ReportMetric(heap()-before, "half-held-B")
	s.AddRange(netipx.RangeOfPrefix(p))
	b.ReportMetric(heap()-before, "full-held-B")
	runtime.KeepAlive(s)
}

// benchmarkChurn gives back a random member of a /16 and takes the next free address, at so many percent full.
func benchmarkChurn(b *testing.B, percent int) {
	p := netip.MustParsePrefix("10.0.0.0/16")
	r, s, rng := Usable(p), NewSet(p), rand.New(rand.NewPCG(1, 2))
	var members []netip.Addr
	for _, i := range rng.Perm(65534)[:65534*percent/100] {
		a := s.base.add(u128{0, uint64(i + 1)}).addr(true)
		s.Add(a)
		members = append(members, a)
	}
	for b.Loop() {
		i := rng.IntN(len(members))
		s.Remove(members[i])
		a, ok := take(s, r)
		if !ok {
			b.Fatal("nothing is free")
		}
		members[i] = a
	}
	if s.Len() != uint64(len(members)) {
		b.Fatalf("%d members, not %d", s.Len(), len(members))
	}
}

func BenchmarkChurn50(b *testing.B)  { benchmarkChurn(b, 50) }
func BenchmarkChurn90(b *testing.B)  { benchmarkChurn(b, 90) }
func BenchmarkChurn99(b *testing.B)  { benchmarkChurn(b, 99) }
func BenchmarkChurn100(b *testing.B) { benchmarkChurn(b, 100) }

// The same in a full /8, where each address given back opens a full block.
func BenchmarkChurnFull8(b *testing.B) {
	p := netip.MustParsePrefix("10.0.0.0/8")
	s, r, rng := NewSet(p), netipx.RangeOfPrefix(p), rand.New(rand.NewPCG(1, 2))
	s.AddRange(r)
	for b.Loop() {
		s.Remove(s.base.add(u128{0, rng.Uint64N(1 << 24)}).addr(true))
		if _, ok := take(s, r); !ok {
			b.Fatal("nothing is free")
		}
	}
}

// scattered returns n random addresses of a prefix.
func scattered(p netip.Prefix, n int) []netip.Addr {
	rng := rand.New(rand.NewPCG(1, 2))
	s := NewSet(p)
	all := make([]netip.Addr, n)
	for i := range all {
		x := u128{rng.Uint64() & s.max.hi, rng.Uint64() & s.max.lo}
		all[i] = s.base.add(x).addr(s.is4)
	}
	return all
}

func benchmarkScattered(b *testing.B, p netip.Prefix, n int) {
	all := scattered(p, n)
	before := heap()
	var s *Set
	for b.Loop() {
		s = NewSet(p)
		for _, a := range all {
			s.Add(a)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "add-ns")
	b.ReportMetric(heap()-before, "held-B")
	began := time.Now()
	for _, a := range all {
		s.Remove(a)
	}
	b.ReportMetric(float64(time.Since(began).Nanoseconds())/float64(n), "remove-ns")
	if s.Len() != 0 {
		b.Fatalf("%d members are left", s.Len())
	}
	runtime.KeepAlive(all)
}

func BenchmarkScattered64(b *testing.B) {
	benchmarkScattered(b, netip.MustParsePrefix("fd00::/64"), 20000)
}

func BenchmarkScattered48(b *testing.B) {
	benchmarkScattered(b, netip.MustParsePrefix("fd00::/48"), 20000)
}

func BenchmarkScatteredMillion64(b *testing.B) {
	benchmarkScattered(b, netip.MustParsePrefix("fd00::/64"), 1000000)
}

// benchmarkCarve carves and inserts so many subnets one after the other, past some routes of the host.
func benchmarkCarve(b *testing.B, routes int) {
	base := netip.MustParsePrefix("10.0.0.0/8")
	var avoid []netip.Prefix
	for i := range routes {
		avoid = append(avoid, netip.MustParsePrefix(fmt.Sprintf("10.%d.7.0/24", i)))
	}
	const n = 10000
	var first, last time.Duration
	var s *Blocks
	before := heap()
	for b.Loop() {
		s = NewBlocks()
		began := time.Now()
		for i := range n {
			switch i {
			case 1000:
				first += time.Since(began)
			case n - 1000:
				began = time.Now()
			}
			if p, ok := s.Carve(base, 24, avoid); !ok || !s.Insert(p) {
				b.Fatalf("subnet %d: %v, %v", i, p, ok)
			}
		}
		last += time.Since(began)
	}
	b.ReportMetric(float64(first)/float64(b.N)/1000, "first-ns")
	b.ReportMetric(float64(last)/float64(b.N)/1000, "last-ns")
	b.ReportMetric(heap()-before, "held-B")
	runtime.KeepAlive(s)
}

func BenchmarkCarve10k(b *testing.B)       { benchmarkCarve(b, 0) }
func BenchmarkCarve10kRoutes(b *testing.B) { benchmarkCarve(b, 20) }

// Counting what is taken in a part of a crowded block.
func BenchmarkCountIn(b *testing.B) {
	s := NewSet(netip.MustParsePrefix("10.0.0.0/16"))
	for i := 0; i < 65536; i += 3 {
		s.Add(s.base.add(u128{0, uint64(i)}).addr(true))
	}
	r := netipx.IPRangeFrom(netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("10.0.255.254"))
	for b.Loop() {
		s.CountIn(r)
	}
}
