package dhcp

import (
	"context"
	"encoding/binary"
	"runtime"
	"testing"
	"time"
)

// TestFlood: of any number of answers on the LAN, to pending questions and to others, few are kept, and a good
// answer is heard.
func TestFlood(t *testing.T) {
	const questions, answers, mostHeap = 1000, 32, 32 << 20
	s := newStation(place{parent: "eth0"})
	ids := make([]uint32, questions)
	for i := range ids {
		ids[i] = s.begin(time.Minute).id
	}
	heap := func() uint64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	message := append(offer4(), make([]byte, 1000)...) // nearly all that fits into a frame
	noise := func(id uint32) {
		frame := answer4(message)
		binary.BigEndian.PutUint32(frame[etherLength+ipv4Length+udpLength+4:], id)
		s.deliver(frame)
	}
	before, begun := heap(), time.Now()
	for range answers {
		for _, id := range ids {
			noise(id)
			noise(id + 1)
		}
	}
	kept := max(heap(), before) - before
	t.Logf("of %d answers of %d bytes %.1f MiB are kept, after %s", 2*answers*questions, len(message),
		float64(kept)/(1<<20), time.Since(begun).Round(time.Millisecond))
	if kept > mostHeap {
		t.Errorf("%d bytes are kept", kept)
	}

	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() { // the flood continues, with good answers in it
		defer close(stopped)
		for n := 0; ; n++ {
			select {
			case <-stop:
				return
			default:
			}
			if noise(ids[0]); n%100 == 99 {
				good := append(offer4(), 1)
				binary.BigEndian.PutUint32(good[4:], ids[0])
				s.deliver(answer4(good))
			}
		}
	}()
	defer func() { close(stop); <-stopped }()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	_, err := s.under[ids[0]].talk(ctx, func(int) error { return nil }, func(d datagram) verdict {
		if len(d.payload) == len(offer4())+1 {
			return settled
		}
		return passedOver
	})
	if err != nil {
		t.Errorf("a good answer is not heard: %v", err)
	}
}
