package names_test

import (
	"context"
	"fmt"
	"net/netip"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"berth/internal/dns"
	"berth/internal/ipam"
	"berth/internal/ipam/service"
	"berth/store/bolt"
)

// BenchmarkRequest is an address taken and given back by one of 16 callers, on a file: alone, and while a server of
// names follows what is committed.
func BenchmarkRequest(b *testing.B) {
	for _, followed := range []bool{false, true} {
		b.Run(fmt.Sprintf("followed=%t", followed), func(b *testing.B) {
			st, err := bolt.Open(b.Context(), bolt.Config{Path: filepath.Join(b.TempDir(), "berth.db")})
			must(b, err)
			defer st.Close()
			s, err := service.Open(b.Context(), service.Config{Store: st, Host: "alpha"})
			must(b, err)
			grant, err := s.RequestPool(b.Context(), ipam.PoolRequest{Space: ipam.LocalSpace,
				CIDR: netip.MustParsePrefix("10.1.0.0/16")})
			must(b, err)
			if followed {
				x := dns.New("lan.example", time.Now)
				ctx, cancel := context.WithCancel(b.Context())
				ended := make(chan struct{})
				go func() {
					defer close(ended)
					for news, err := range s.NameNews(ctx) {
						if err == nil {
							x.Apply(&news)
						}
					}
				}()
				defer func() { cancel(); <-ended }()
			}
			var n atomic.Int64
			b.SetParallelism(8)
			b.ResetTimer()
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					name := fmt.Sprintf("shop-web-%d", n.Add(1))
					got, err := s.RequestAddress(b.Context(), ipam.AddressRequest{Pool: grant.ID, Name: name})
					must(b, err)
					must(b, s.ReleaseAddress(b.Context(), grant.ID, got.Addr()))
				}
			})
		})
	}
}
