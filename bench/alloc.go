package main

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"runtime"
	"time"

	"berth/internal/alloc"

	"go4.org/netipx"
)

// take takes the lowest free address.
func take(s *alloc.Set, r netipx.IPRange) netip.Addr {
	a, ok := s.NextFree(r)
	if ok {
		s.Add(a)
	}
	return a
}

func measureAlloc(env) ([]row, error) {
	rows := []row{fillSixteen()}
	for _, percent := range []int{50, 90, 99} {
		rows = append(rows, churn(percent))
	}
	return append(rows, scattered()), nil
}

// fillSixteen fills a /16 several times, and compares the first and the last thousand.
func fillSixteen() row {
	p := netip.MustParsePrefix("10.1.0.0/16")
	r := alloc.Usable(p)
	var all, ends []float64
	for range 41 {
		s := alloc.NewSet(p)
		var first, last time.Duration
		start := time.Now()
		for i := range 65534 {
			switch i {
			case 1000:
				first = time.Since(start)
			case 65534 - 1000:
				last = time.Since(start)
			}
			take(s, r)
		}
		total := time.Since(start)
		all = append(all, float64(total.Nanoseconds())/65534)
		ends = append(ends, float64(total-last)/float64(first))
	}
	ns, ratio := median(all), median(ends)
	return row{"alloc: filling a /16, per address; last 1,000 against first 1,000", "100 ns; 1.5x",
		fmt.Sprintf("%.0f ns; %.2fx", ns, ratio), verdict(ns <= 100 && ratio <= 1.5)}
}

// churn gives a random address back and takes the next, in a /16 that is so full.
func churn(percent int) row {
	p := netip.MustParsePrefix("10.1.0.0/16")
	r := alloc.Usable(p)
	s := alloc.NewSet(p)
	random := rand.New(rand.NewPCG(1, 2))
	var held []netip.Addr
	for range 65534 {
		held = append(held, take(s, r))
	}
	random.Shuffle(len(held), func(i, j int) { held[i], held[j] = held[j], held[i] })
	keep := len(held) * percent / 100
	for _, a := range held[keep:] {
		s.Remove(a)
	}
	held = held[:keep]
	var rounds []float64
	for range 9 {
		const n = 100_000
		start := time.Now()
		for range n {
			i := random.IntN(keep)
			s.Remove(held[i])
			held[i] = take(s, r)
		}
		rounds = append(rounds, float64(time.Since(start).Nanoseconds())/n)
	}
	ns := median(rounds)
	return row{fmt.Sprintf("alloc: give one back and take the next, a /16 %d %% full", percent), "300 ns",
		fmt.Sprintf("%.0f ns", ns), verdict(ns <= 300)}
}

// scattered adds 20,000 random addresses of a /64.
func scattered() row {
	p := netip.MustParsePrefix("fd00::/64")
	random := rand.New(rand.NewPCG(3, 4))
	addrs := make([]netip.Addr, 20_000)
	for i := range addrs {
		raw := p.Addr().As16()
		binary.BigEndian.PutUint64(raw[8:], random.Uint64())
		addrs[i] = netip.AddrFrom16(raw)
	}
	var rounds []float64
	var bytes uint64
	for range 9 {
		before := heap()
		s := alloc.NewSet(p)
		start := time.Now()
		for _, a := range addrs {
			s.Add(a)
		}
		rounds = append(rounds, float64(time.Since(start).Nanoseconds())/float64(len(addrs)))
		bytes = heap() - before
		runtime.KeepAlive(s)
	}
	ns, mib := median(rounds), float64(bytes)/(1<<20)
	return row{"alloc: 20,000 scattered addresses of a /64: time each; memory of all", "1,000 ns; 2 MiB",
		fmt.Sprintf("%.0f ns; %.2f MiB", ns, mib), verdict(ns <= 1000 && mib <= 2)}
}

func heap() uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// measureCarve carves 10,000 subnets, and compares the first and the last thousand.
func measureCarve(env) ([]row, error) {
	base := netip.MustParsePrefix("10.0.0.0/8")
	var ratios, each []float64
	for range 21 {
		b := alloc.NewBlocks()
		var first, last time.Duration
		start := time.Now()
		for i := range 10_000 {
			switch i {
			case 1000:
				first = time.Since(start)
			case 9000:
				last = time.Since(start)
			}
			p, ok := b.Carve(base, 24, nil)
			if !ok || !b.Insert(p) {
				return nil, fmt.Errorf("subnet %d could not be carved", i)
			}
		}
		total := time.Since(start)
		ratios = append(ratios, float64(total-last)/float64(first))
		each = append(each, float64(total.Nanoseconds())/10_000)
	}
	ratio := median(ratios)
	return []row{{"10,000 subnets carved from 10.0.0.0/8: last 1,000 against first 1,000", "2x",
		fmt.Sprintf("%.2fx (%.0f ns each)", ratio, median(each)), verdict(ratio <= 2)}}, nil
}
