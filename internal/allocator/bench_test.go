package allocator_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"net/netip"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"berth/internal/ipam"
	"berth/internal/ipam/ipamtest"
	"berth/store/bolt"
)

// BenchmarkRequestAddress takes addresses of a /12, each with its lease and event durable on bolt, by 1, 16 and 64
// callers.
func BenchmarkRequestAddress(b *testing.B) {
	for _, callers := range []int{1, 16, 64} {
		b.Run(fmt.Sprintf("callers=%d", callers), func(b *testing.B) {
			ctx := context.Background()
			st, err := bolt.Open(ctx, bolt.Config{Path: filepath.Join(b.TempDir(), "berth.db")})
			if err != nil {
				b.Fatal(err)
			}
			defer st.Close()
			s := ipamtest.OpenService(b, st, time.Now)
			grant, err := s.RequestPool(ctx,
				ipam.PoolRequest{Space: "local", CIDR: netip.MustParsePrefix("10.0.0.0/8")})
			if err != nil {
				b.Fatal(err)
			}
			var next atomic.Int64
			var wg sync.WaitGroup
			b.ResetTimer()
			for range callers {
				wg.Go(func() {
					for {
						n := next.Add(1)
						if n > int64(b.N) {
							return
						}
						var mac ipam.MAC
						binary.BigEndian.PutUint32(mac[2:], uint32(n))
						if _, err := s.RequestAddress(ctx, ipam.AddressRequest{Pool: grant.ID, MAC: mac}); err != nil {
							b.Error(err)
							return
						}
					}
				})
			}
			wg.Wait()
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "takes/s")
		})
	}
}
