// Package trend records the use of each network and pool. It keeps an hour by the minute, a day by the quarter of an
// hour, and a week by the hour. The small file next to the state may be lost without harm.
//
// Run samples all pools once a minute (sample.go) and writes the file from time to time. Of returns the samples of one
// network or pool for the page.
package trend

import (
	"context"
	"encoding/json"
	"maps"
	"os"
	"sync"
	"time"

	"berth/internal/ipam"
	"berth/internal/wholefile"
)

// Limits: mostSeries keeps the file below mostBytes.
const (
	mostBytes  = 1 << 20
	mostSeries = 1500
)

// unknown is the value of a time without a sample.
const unknown = 255

// ring is a row of percentages, one per time span, the latest last.
type ring struct {
	At     int64  `json:"at"` // the number of the last span, counted from 1970
	Values []byte `json:"values"`
}

// scale is the length of a ring's spans and their maximum number.
type scale struct {
	span time.Duration
	most int
}

// The scales of a series.
var scales = [...]scale{{time.Minute, 60}, {15 * time.Minute, 96}, {time.Hour, 168}}

// series is the recorded use of one network or pool, with a ring for each scale.
type series [len(scales)]ring

// note records a percentage. A span keeps its maximum.
func (r *ring) note(of scale, now time.Time, percent byte) {
	at := now.Unix() / int64(of.span/time.Second)
	// first sample, long pause, or the clock was set back
	if len(r.Values) == 0 || at-r.At > int64(of.most) || at < r.At {
		r.At, r.Values = at, []byte{percent}
		return
	}
	for ; r.At < at; r.At++ {
		r.Values = append(r.Values, unknown)
	}
	r.Values = r.Values[max(0, len(r.Values)-of.most):]
	if last := &r.Values[len(r.Values)-1]; *last == unknown || percent > *last {
		*last = percent
	}
}

// History is the use over time in percent, the latest last; -1 for times without a sample.
type History struct{ Hour, Day, Week []int }

// Book has all recorded series.
type Book struct {
	use  func(context.Context) ([]ipam.PoolUse, error)
	path string
	now  func() time.Time

	mu  sync.Mutex
	all map[string]*series
}

// Open reads the recorded series. It starts empty if the file cannot be read.
func Open(path string, use func(context.Context) ([]ipam.PoolUse, error)) *Book {
	b := &Book{use: use, path: path, now: time.Now, all: map[string]*series{}}
	if info, err := os.Stat(path); err != nil || info.Size() > mostBytes {
		return b
	}
	text, err := os.ReadFile(path)
	if err != nil || json.Unmarshal(text, &b.all) != nil || b.all == nil {
		b.all = map[string]*series{}
	}
	maps.DeleteFunc(b.all, func(_ string, s *series) bool { return s == nil })
	return b
}

// The intervals of sampling and writing.
const (
	lookEach  = time.Minute
	writeEach = 10 // samples
)

// Run samples and writes until ctx ends.
func (b *Book) Run(ctx context.Context) error {
	tick := time.NewTicker(lookEach)
	defer tick.Stop()
	for n := 1; ; n++ {
		b.look(ctx)
		if n%writeEach == 0 {
			b.write()
		}
		select {
		case <-ctx.Done():
			b.write()
			return nil
		case <-tick.C:
		}
	}
}

// write writes the file. A failed write only loses samples.
func (b *Book) write() {
	b.mu.Lock()
	text, err := json.Marshal(b.all)
	b.mu.Unlock()
	if err == nil && len(text) <= mostBytes {
		_ = wholefile.Write(b.path, text)
	}
}

// Of returns the history of a network, or of a pool if subnet and pool are given. It is empty if there is none.
func (b *Book) Of(space, network, subnet, pool string) (h History) {
	if b == nil {
		return h
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	s := b.all[key(space, network, subnet, pool)]
	if s == nil {
		return h
	}
	for i, to := range []*[]int{&h.Hour, &h.Day, &h.Week} {
		for _, percent := range s[i].Values {
			value := int(percent)
			if percent > 100 {
				value = -1
			}
			*to = append(*to, value)
		}
	}
	return h
}
