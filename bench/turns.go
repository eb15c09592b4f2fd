package main

import (
	"cmp"
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"berth/internal/ipam"
)

// turns compare the latency of a request while something else is done with that while it is not. Callers go on all the
// time, and what is beside them begins and ends in the order A B B A: what drifts, such as the machine's other work or
// the size of the state, meets both alike.
type turns struct {
	callers int
	take    func(caller int) error
	groups  int           // of four turns
	length  time.Duration // of a turn
	settle  time.Duration // before each turn, in which nothing counts: that begins or ends what is beside
	warm    time.Duration // before the first one, in which callers go on and nothing counts
}

// company is what is done in the turns of kind B. begin does not wait; each turn is called within every such turn, and
// ends before that does; end waits until nothing is done any more.
type company struct {
	begin, turn, end func() error
}

// compared is what turns have found: latencies in groups, by kind.
type compared struct {
	alone, with []spectrum // a group each
	first, last []spectrum // the alone of each group by its two turns: how well alike things agree
}

// run makes all turns.
func (t *turns) run(b company) (*compared, error) {
	ctx, cancel := context.WithCancel(context.Background())
	all, errs := make([][]sample, t.callers), make([]error, t.callers)
	begun := time.Now()
	var wg sync.WaitGroup
	for i := range t.callers {
		wg.Go(func() {
			for ctx.Err() == nil {
				from := time.Since(begun)
				if errs[i] = t.take(i); errs[i] != nil {
					return
				}
				all[i] = append(all[i], sample{from, time.Since(begun) - from})
			}
		})
	}
	time.Sleep(t.warm)
	var spans []span
	var err error
	for group := 0; group < t.groups && err == nil; group++ {
		var more []span
		more, err = t.group(begun, b)
		spans = append(spans, more...)
	}
	cancel()
	wg.Wait()
	if err := errors.Join(append(errs, err)...); err != nil {
		return nil, err
	}
	return sortedOut(spans, all), nil
}

// group makes four turns.
func (t *turns) group(begun time.Time, b company) (spans []span, err error) {
	turn := func(fn func() error) error {
		time.Sleep(t.settle)
		from := time.Since(begun)
		err := fn()
		time.Sleep(from + t.length - time.Since(begun))
		spans = append(spans, span{from, from + t.length})
		return err
	}
	nothing := func() error { return nil }
	if err := turn(nothing); err != nil {
		return nil, err
	}
	err = b.begin()
	for range 2 {
		if err == nil {
			err = turn(b.turn)
		}
	}
	if err := errors.Join(err, b.end()); err != nil {
		return nil, err
	}
	return spans, turn(nothing)
}

// sample is one request: when it began, and how long it took.
type sample struct{ from, took time.Duration }

// span is when a turn was.
type span struct{ from, to time.Duration }

// sortedOut puts the requests that began in each turn where they belong.
func sortedOut(spans []span, all [][]sample) *compared {
	of := make([]spectrum, len(spans))
	for _, samples := range all {
		for _, s := range samples {
			i, exact := slices.BinarySearchFunc(spans, s.from, func(a span, at time.Duration) int {
				return cmp.Compare(a.from, at)
			})
			if !exact {
				i--
			}
			if i >= 0 && s.from < spans[i].to {
				of[i].add(s.took)
			}
		}
	}
	c := new(compared)
	for i := 0; i+3 < len(of); i += 4 {
		c.first, c.last = append(c.first, of[i]), append(c.last, of[i+3])
		c.alone = append(c.alone, sum([]spectrum{of[i], of[i+3]}))
		c.with = append(c.with, sum([]spectrum{of[i+1], of[i+2]}))
	}
	return c
}

// spectrum counts latencies, by classes that are 1/200 wide.
type spectrum [4000]uint32

const (
	classes      = 200 // to e times as long
	shortestTime = time.Microsecond
)

func (s *spectrum) add(d time.Duration) {
	at := math.Log(float64(max(d, shortestTime))/float64(shortestTime)) * classes
	s[min(int(at), len(s)-1)]++
}

func sum(all []spectrum) (total spectrum) {
	for i := range all {
		for at, n := range all[i] {
			total[at] += n
		}
	}
	return total
}

// count is how many requests there were.
func (s *spectrum) count() (n uint64) {
	for _, c := range s {
		n += uint64(c)
	}
	return n
}

// quantile is in milliseconds.
func (s *spectrum) quantile(q float64) float64 {
	wanted := q * float64(s.count())
	below := 0.0
	for at, n := range s {
		if next := below + float64(n); n > 0 && next >= wanted {
			within := (wanted - below) / float64(n)
			return milliseconds(shortestTime) * math.Exp((float64(at)+within)/classes)
		}
		below += float64(s[at])
	}
	return 0
}

// ratio is that of a quantile with what is beside to that without, in all groups together.
func (c *compared) ratio(q float64) float64 {
	with, alone := sum(c.with), sum(c.alone)
	return with.quantile(q) / alone.quantile(q)
}

// typical is the median of the groups' own ratios: what a burst of other work in a few of them does not move.
func (c *compared) typical(q float64) float64 {
	ratios := make([]float64, len(c.with))
	for i := range c.with {
		ratios[i] = c.with[i].quantile(q) / c.alone[i].quantile(q)
	}
	return median(ratios)
}

// resamples is how often the spread draws groups anew.
const resamples = 1000

// spread is between what the ratio of a quantile lies in 95 of 100 cases, by drawing as many groups as there are anew,
// with some twice and some not at all (Efron's bootstrap).
func spread(q float64, over, under []spectrum) (low, high float64) {
	random := rand.New(rand.NewPCG(1, uint64(len(over))))
	all := make([]float64, resamples)
	for i := range all {
		var a, b spectrum
		for range over {
			n := random.IntN(len(over))
			for at := range a {
				a[at] += over[n][at]
				b[at] += under[n][at]
			}
		}
		all[i] = a.quantile(q) / b.quantile(q)
	}
	slices.Sort(all)
	return all[resamples/40], all[resamples-resamples/40-1]
}

// taking has callers take addresses by MACs of their own.
func taking(callers int, take func(ipam.MAC) error) func(int) error {
	mac := make(macs, callers)
	return func(caller int) error { return take(mac.next(caller)) }
}
