package main

import (
	"math"
	"runtime/debug"
)

// How the garbage collector works. While the records are read nearly everything that is allocated stays, and collecting
// only delays the moment in which the daemon is ready; a bound keeps a large state from taking five times its size.
// Afterwards most of the memory is the index, which lives as long as the daemon, and little garbage is worth more than
// few collections.
const (
	loadingPercent = 400
	loadingLimit   = 128 << 20 // bytes
	servingPercent = 50
)

// memoryForLoading sets the collector for reading the records. The function that it returns sets it for serving, and
// gives back to the system what reading took.
func memoryForLoading() (settled func()) {
	debug.SetGCPercent(loadingPercent)
	debug.SetMemoryLimit(loadingLimit)
	return func() {
		debug.SetGCPercent(servingPercent)
		debug.SetMemoryLimit(math.MaxInt64)
		debug.FreeOSMemory()
	}
}
