package main

import (
	"math"
	"runtime/debug"

	"golang.org/x/sys/unix"
)

// The settings of the garbage collector. While the records are read, nearly all allocated memory stays, and collections
// only delay the start. A limit keeps a large state from using five times its size. Above the limit the collector would
// hardly pause, and a shared store with its events, by default up to 64 MiB, needs less. Afterwards the index, which
// lasts as long as the daemon, is most of the memory. Little garbage then matters more than few collections, so it may
// be half of what is in use, with half of the floor as the minimum.
const (
	loadingPercent = 400
	loadingLimit   = 256 << 20 // bytes
	servingPercent = 50
	floorSize      = 32 << 20 // bytes
)

// memory holds the settings of the collector while it is reachable.
type memory struct {
	// The collector counts the floor as used memory. The system does not, because nobody writes to it. Without the
	// floor, a busy daemon with a small state would collect a hundred times a second for a megabyte of garbage.
	floor []byte
}

// memoryForLoading sets the collector for reading the records. Call it before any other allocation. Used memory would
// have to be cleared, and so written to.
func memoryForLoading() *memory {
	m := &memory{floor: make([]byte, floorSize)}
	_ = unix.Madvise(m.floor, unix.MADV_DONTNEED) // if the memory was used, it is zero again
	debug.SetGCPercent(loadingPercent)
	debug.SetMemoryLimit(loadingLimit + floorSize)
	return m
}

// settle sets the collector for serving, and returns the memory of reading to the system.
func (m *memory) settle() {
	debug.SetGCPercent(servingPercent)
	debug.SetMemoryLimit(math.MaxInt64)
	debug.FreeOSMemory()
}
