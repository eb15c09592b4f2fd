package main

import (
	"math"
	"runtime/debug"

	"golang.org/x/sys/unix"
)

// How the garbage collector works. While the records are read nearly everything that is allocated stays, and collecting
// only delays the moment in which the daemon is ready; a bound keeps a large state from taking five times its size.
// Afterwards most of the memory is the index, which lives as long as the daemon, and little garbage is worth more than
// few collections: half of what is in use, and half of the floor.
const (
	loadingPercent = 400
	loadingLimit   = 128 << 20 // bytes
	servingPercent = 50
	floorSize      = 32 << 20 // bytes
)

// memory has the collector work in one way or the other, for as long as it is reachable.
type memory struct {
	// The collector counts it as in use, and the system does not, because nobody ever writes to it. Without it a daemon
	// with a small state that is asked much would collect a hundred times a second, for garbage of a megabyte.
	floor []byte
}

// memoryForLoading sets the collector for reading the records. It comes before anything else is allocated: what was
// used before would have to be cleared, and so written to.
func memoryForLoading() *memory {
	m := &memory{floor: make([]byte, floorSize)}
	_ = unix.Madvise(m.floor, unix.MADV_DONTNEED) // where it was used before all the same: it is all zeros again
	debug.SetGCPercent(loadingPercent)
	debug.SetMemoryLimit(loadingLimit + floorSize)
	return m
}

// settle sets the collector for serving, and gives back to the system what reading took.
func (m *memory) settle() {
	debug.SetGCPercent(servingPercent)
	debug.SetMemoryLimit(math.MaxInt64)
	debug.FreeOSMemory()
}
