package bolt

import (
	"context"
	"fmt"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

	"go.etcd.io/bbolt"

	"berth/store"
)

// benchKey is 30 bytes long, benchValue 100 and benchEvent 90: what a lease and an event take.
func benchKey(kind string, n int64) []byte { return fmt.Appendf(nil, "%s/%028x", kind, n) }

func BenchmarkUpdate(b *testing.B) {
	b.Run("bbolt-one-key", benchBare)
	for _, callers := range []int{1, 16, 64} {
		b.Run(fmt.Sprintf("callers=%d", callers), func(b *testing.B) { benchUpdate(b, callers, 0) })
	}
	for _, callers := range []int{1, 16, 64} {
		b.Run(fmt.Sprintf("3gets/callers=%d", callers), func(b *testing.B) { benchUpdate(b, callers, 3) })
	}
}

func benchBare(b *testing.B) {
	db, err := bbolt.Open(filepath.Join(b.TempDir(), "bare.db"), 0o600, &bbolt.Options{NoStatistics: true})
	if err != nil {
		b.Fatal(err)
	}
	defer db.Close()
	name, value := []byte("data"), make([]byte, 100)
	err = db.Update(func(tx *bbolt.Tx) error { _, err := tx.CreateBucket(name); return err })
	if err != nil {
		b.Fatal(err)
	}
	var n int64
	for b.Loop() {
		n++
		err := db.Update(func(tx *bbolt.Tx) error { return tx.Bucket(name).Put(benchKey("l", n), value) })
		if err != nil {
			b.Fatal(err)
		}
	}
	perSecond(b, b.N)
}

func benchUpdate(b *testing.B, callers, gets int) {
	s := open(b, filepath.Join(b.TempDir(), "berth.db"))
	value, event := make([]byte, 100), make([]byte, 90)
	var n atomic.Int64
	var wg sync.WaitGroup
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	b.ReportAllocs()
	b.ResetTimer()
	for range callers {
		wg.Go(func() {
			for {
				i := n.Add(1)
				if i > int64(b.N) {
					return
				}
				lease, ev := benchKey("l", i), benchKey("n", i)
				err := s.Update(ctx, func(tx store.Tx) error {
					for g := range gets {
						if _, err := tx.Get(benchKey("l", i/int64(g+2))); err != nil {
							return err
						}
					}
					if err := tx.Put(lease, value); err != nil {
						return err
					}
					return tx.Put(ev, event)
				})
				if err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	perSecond(b, b.N)
	b.StopTimer()
	b.ReportMetric(float64(b.N)/float64(commits(b, s)), "updates/commit")
}

func perSecond(b *testing.B, n int) {
	b.ReportMetric(float64(n)/b.Elapsed().Seconds(), "updates/s")
}
