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

	"berth/internal/atomicfile"
	"berth/internal/ipam"
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

// Recorder samples the use of all networks and pools, and keeps and saves their series.
type Recorder struct {
	use  func(context.Context) ([]ipam.PoolUse, error)
	path string
	now  func() time.Time

	mu  sync.Mutex
	all map[string]*series
}

// Open reads the recorded series. It starts empty if the file cannot be read.
func Open(path string, use func(context.Context) ([]ipam.PoolUse, error)) *Recorder {
	r := &Recorder{use: use, path: path, now: time.Now, all: map[string]*series{}}
	if info, err := os.Stat(path); err != nil || info.Size() > mostBytes {
		return r
	}
	text, err := os.ReadFile(path)
	if err != nil || json.Unmarshal(text, &r.all) != nil || r.all == nil {
		r.all = map[string]*series{}
	}
	maps.DeleteFunc(r.all, func(_ string, s *series) bool { return s == nil })
	return r
}

// The intervals of sampling and writing.
const (
	lookEach  = time.Minute
	writeEach = 10 // samples
)

// Run samples and writes until ctx ends.
func (r *Recorder) Run(ctx context.Context) error {
	tick := time.NewTicker(lookEach)
	defer tick.Stop()
	for n := 1; ; n++ {
		r.look(ctx)
		if n%writeEach == 0 {
			r.write()
		}
		select {
		case <-ctx.Done():
			r.write()
			return nil
		case <-tick.C:
		}
	}
}

// write writes the file. A failed write only loses samples.
func (r *Recorder) write() {
	r.mu.Lock()
	text, err := json.Marshal(r.all)
	r.mu.Unlock()
	if err == nil && len(text) <= mostBytes {
		_ = atomicfile.Write(r.path, text)
	}
}

// Of returns the history of a network, or of a pool if subnet and pool are given. It is empty if there is none.
func (r *Recorder) Of(space, network, subnet, pool string) (h History) {
	if r == nil {
		return h
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	s := r.all[key(space, network, subnet, pool)]
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
