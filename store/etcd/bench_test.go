package etcd

import (
	"fmt"
	"runtime"
	"sync/atomic"
	"testing"

	"berth/store"
)

// BenchmarkUpdate makes the store's work for one given address, with 64 callers: read one record, write it,
// write an event.
func BenchmarkUpdate(b *testing.B) {
	s := open(b, Config{Prefix: freshPrefix()})
	lease, event := make([]byte, 60), make([]byte, 80)
	var last atomic.Int64
	b.SetParallelism(max(1, 64/runtime.GOMAXPROCS(0)))
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			n := last.Add(1)
			err := s.Update(b.Context(), func(tx store.Tx) error {
				key := fmt.Appendf(nil, "l/%016x", n)
				if _, err := tx.Get(key); err != nil {
					return err
				}
				if err := tx.Put(key, lease); err != nil {
					return err
				}
				return tx.Put(fmt.Appendf(nil, "e/%016x", n), event)
			})
			if err != nil {
				b.Error(err)
				return
			}
		}
	})
	c := s.Counts()
	b.ReportMetric(float64(c.Updates)/float64(c.Commits), "updates/commit")
}
