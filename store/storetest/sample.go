package storetest

import (
	"iter"
	"math/rand/v2"
	"testing"
)

// few returns n, or a quarter of it under -short.
func few(n int) int {
	if testing.Short() {
		return (n + 3) / 4
	}
	return n
}

// Sampled yields 0, 1, 2 and so on without end, for a test that fails a call at each place. Under -short it yields one
// random number of each block.
func Sampled(t testing.TB, block int) iter.Seq[int] {
	t.Helper()
	draw := seeded(t, block)
	if !testing.Short() {
		block = 1
	}
	return func(yield func(int) bool) {
		for n := 0; yield(n + draw.IntN(block)); n += block {
		}
	}
}

// Drawn returns a function that returns true, for a test that fails calls in each way. Under -short it returns true at
// random, once in the given number of times on average.
func Drawn(t testing.TB, times int) func() bool {
	t.Helper()
	draw := seeded(t, times)
	return func() bool { return !testing.Short() || draw.IntN(times) == 0 }
}

// seeded returns a random source, and logs its seed.
func seeded(t testing.TB, of int) *rand.Rand {
	t.Helper()
	seed := rand.Uint64()
	if testing.Short() {
		t.Logf("one of %d is taken, with the seed %#x; without -short all are", of, seed)
	}
	return rand.New(rand.NewPCG(seed, 0))
}
