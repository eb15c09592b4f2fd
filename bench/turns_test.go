package bench

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"berth/internal/ipam"
)

// The units of comparisons.
const (
	ratio     = "ratio"      // of rates: more is better
	timeRatio = "time-ratio" // of the time of a call: less is better
	p99Ratio  = "p99-ratio"  // of its 99th percentiles
)

// How long one side of a comparison runs at a time: for rates, and for latencies.
const (
	round = 250 * time.Millisecond
	while = 2 * time.Second
)

// call is one request of a caller.
type call func(caller int) error

// side is one side of a comparison: it runs for a round and returns its rate per second and each call's time.
type side func(b *testing.B) (rate float64, took []time.Duration)

// by is a side with this many callers. Each calls again as soon as it has its answer.
func by(callers int, do call) side { return during(callers, do, func() { time.Sleep(round) }) }

// during is a side with callers that call while something else runs.
func during(callers int, do call, other func()) side {
	return func(b *testing.B) (float64, []time.Duration) {
		begun, over := time.Now(), atomic.Bool{}
		took, errs := make([][]time.Duration, callers), make([]error, callers)
		var wg sync.WaitGroup
		for i := range callers {
			wg.Go(func() {
				for errs[i] == nil && !over.Load() {
					asked := time.Now()
					errs[i] = do(i)
					took[i] = append(took[i], time.Since(asked))
				}
			})
		}
		other()
		over.Store(true)
		wg.Wait()
		must(b, errors.Join(errs...))
		all := slices.Concat(took...)
		return float64(len(all)) / time.Since(begun).Seconds(), all
	}
}

// compare runs both sides in turn and reports the comparison.
func compare(b *testing.B, unit string, ours, theirs side) {
	var rates [2]float64
	var took [2][]time.Duration
	for b.Loop() {
		for i, s := range []side{ours, theirs} {
			rate, all := s(b)
			rates[i], took[i] = rates[i]+rate, append(took[i], all...)
		}
	}
	p99 := percentile(took[0], 99)
	only(b)
	b.ReportMetric(rates[0]/float64(b.N), "ours/s")
	b.ReportMetric(p99, "p99-ms")
	switch unit {
	case ratio:
		b.ReportMetric(rates[0]/rates[1], unit)
	case timeRatio:
		b.ReportMetric(rates[1]/rates[0], unit)
	case p99Ratio:
		b.ReportMetric(p99/percentile(took[1], 99), unit)
	}
}

// compareBy compares requests for each number of callers.
func compareBy(b *testing.B, unit string, callers []int, ours, theirs call) {
	for _, n := range callers {
		b.Run(fmt.Sprintf("callers=%d", n), func(b *testing.B) { compare(b, unit, by(n, ours), by(n, theirs)) })
	}
}

// compareP99 compares the latency of calls beside other work with that of calls alone.
func compareP99(b *testing.B, callers int, do call, other func()) {
	b.Run(fmt.Sprintf("callers=%d", callers), func(b *testing.B) {
		compare(b, p99Ratio, during(callers, do, other), during(callers, do, func() { time.Sleep(while) }))
	})
}

// repeat makes n calls with this many concurrent callers.
func repeat(b *testing.B, n, callers int, do call) {
	b.Helper()
	errs := make([]error, callers)
	var wg sync.WaitGroup
	for i := range callers {
		wg.Go(func() {
			for call := 0; call < n/callers && errs[i] == nil; call++ {
				errs[i] = do(i)
			}
		})
	}
	wg.Wait()
	must(b, errors.Join(errs...))
}

// percentile sorts durations and returns the given percentile, in milliseconds.
func percentile(all []time.Duration, percent int) float64 {
	slices.Sort(all)
	return ms(all[(len(all)-1)*percent/100])
}

func ms(d time.Duration) float64 { return d.Seconds() * 1000 }

// only omits the time of an iteration, which is meaningless here.
func only(b *testing.B) { b.ReportMetric(0, "ns/op") }

// eachMedium runs a benchmark with its files on the disk, and in memory, where a sync costs nothing. This
// separates the disk's share from Berth's own.
func eachMedium(b *testing.B, run func(b *testing.B, dir string)) {
	b.Run("disk", func(b *testing.B) { run(b, newDir(b, os.TempDir())) })
	b.Run("memory", func(b *testing.B) { run(b, newDir(b, memory)) })
}

const memory = "/dev/shm"

// newDir makes a directory with a name short enough for sockets in it.
func newDir(b *testing.B, in string) string {
	b.Helper()
	dir, err := os.MkdirTemp(in, "bench")
	must(b, err)
	b.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

var last atomic.Int64

// newMAC is a MAC that no container has had.
func newMAC() ipam.MAC { return macOf(last.Add(1)) }

func macOf(n int64) ipam.MAC {
	return ipam.MAC{2, 0, byte(n >> 24), byte(n >> 16), byte(n >> 8), byte(n)}
}

func must(b *testing.B, err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}
