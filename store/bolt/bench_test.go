package bolt

import (
	"fmt"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

	"berth/store"
)

// benchKey is 30 bytes long, benchValue 100 and benchEvent 90: the sizes of a lease and an event.
func benchKey(kind string, n int64) []byte { return fmt.Appendf(nil, "%s/%028x", kind, n) }

// BenchmarkUpdate puts a lease and an event in each update, by 1, 16 and 64 callers.
func BenchmarkUpdate(b *testing.B) {
	for _, callers := range []int{1, 16, 64} {
		b.Run(fmt.Sprintf("callers=%d", callers), func(b *testing.B) {
			s := open(b, filepath.Join(b.TempDir(), "berth.db"))
			value, event := make([]byte, 100), make([]byte, 90)
			var last atomic.Int64
			var wg sync.WaitGroup
			b.ReportAllocs()
			b.ResetTimer()
			for range callers {
				wg.Go(func() {
					for n := last.Add(1); n <= int64(b.N); n = last.Add(1) {
						err := s.Update(b.Context(), func(tx store.Tx) error {
							if err := tx.Put(benchKey("l", n), value); err != nil {
								return err
							}
							return tx.Put(benchKey("n", n), event)
						})
						if err != nil {
							b.Error(err)
							return
						}
					}
				})
			}
			wg.Wait()
			b.StopTimer()
			b.ReportMetric(float64(b.N)/float64(commits(b, s)), "updates/commit")
		})
	}
}
