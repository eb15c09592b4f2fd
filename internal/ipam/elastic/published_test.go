package elastic_test

import (
	"context"
	"fmt"
	"net/netip"
	"path/filepath"
	"testing"

	"berth/internal/ipam"
	"berth/store/mem"
)

// many is the number of associated addresses while one of them is changed.
const many = 10_000

// BenchmarkPublished measures how soon the edge learns of a change to one of ten thousand associations, whose guests
// run: with the host's own store, and with a shared store, where each address is granted.
func BenchmarkPublished(b *testing.B) {
	b.Run("own", func(b *testing.B) { published(b, nil) })
	b.Run("shared", func(b *testing.B) { published(b, mem.New()) })
}

func published(b *testing.B, shared *mem.Store) {
	s := newBench(b, "h1")
	s.path, s.shared = filepath.Join(b.TempDir(), "berth.db"), shared
	if shared != nil {
		b.Cleanup(func() { shared.Close() })
		s.member = &ipam.Member{Host: ipam.ID{1}, Session: ipam.NewID(), Mark: keptMark}
	}
	s.begin()
	one := s.thousands(many)
	grant, err := s.RequestPool(b.Context(), ipam.PoolRequest{Network: "net1", CIDR: netip.MustParsePrefix("10.32.0.0/16")})
	if err != nil {
		b.Fatal(err)
	}
	for i := range many {
		_, err := s.RequestAddress(b.Context(), ipam.AddressRequest{Pool: grant.ID, Name: fmt.Sprintf("crowd/%d", i)})
		if err != nil {
			b.Fatal(err)
		}
	}
	ctx, cancel := context.WithCancel(b.Context())
	told, ended := make(chan ipam.EdgeMapping, many), make(chan struct{})
	go func() { defer close(ended); s.hears(ctx, told) }()
	defer func() { cancel(); <-ended }()
	for range many {
		<-told
	}
	egress := false
	for b.Loop() {
		egress = !egress
		_, err := s.Edit(ctx, ipam.EditOptions{}, &ipam.AssociateElastic{Address: one, Instance: "crowd/0",
			EgressOnly: egress})
		if err != nil {
			b.Fatal(err)
		}
		if m := <-told; m.Elastic != one || m.EgressOnly != egress {
			b.Fatalf("an edge is told %+v", m)
		}
	}
}

// hears listens for the edge, reports all the time that it is there, and passes on mappings that lead in.
func (b *bench) hears(ctx context.Context, told chan<- ipam.EdgeMapping) {
	for news, err := range b.EdgeNews(ctx, false) {
		if err != nil {
			b.t.Error(err)
			return
		}
		for _, m := range news.Set {
			if !m.Staged {
				told <- m
			}
		}
		if news.Session != "" {
			_ = b.ReportEdge(ctx, ipam.EdgeReport{Session: news.Session}) // it ends with its listener
		}
	}
}
