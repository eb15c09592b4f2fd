package etcd

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"berth/store"
)

const callers = 64

// among runs fn b.N times by callers goroutines.
func among(b *testing.B, fn func(n int64) error) {
	var n atomic.Int64
	var wg sync.WaitGroup
	before := cpu()
	b.ResetTimer()
	for range callers {
		wg.Go(func() {
			for {
				i := n.Add(1)
				if i > int64(b.N) {
					return
				}
				if err := fn(i); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "ops/s")
	b.ReportMetric(float64((cpu()-before).Microseconds())/float64(b.N), "cpu-us/op") // the server's in it
}

// cpu is the processor time that this process has taken.
func cpu() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkUpdate is what giving out an address asks of the store: read one record, write it, write an event. A handle
// of a host counts its transactions besides, and tells what is to be remembered.
func BenchmarkUpdate(b *testing.B) {
	b.Run("nobody's", func(b *testing.B) { updates(b, Config{Prefix: freshPrefix()}) })
	b.Run("a host's", func(b *testing.B) {
		updates(b, Config{Prefix: freshPrefix(), Host: "a", Remember: func(key []byte) bool { return key[0] != 'e' }})
	})
}

func updates(b *testing.B, cfg Config) {
	s := open(b, cfg)
	ctx, cancel := context.WithCancel(context.Background())
	var taken sync.WaitGroup
	defer taken.Wait()
	defer cancel()
	taken.Go(func() {
		for again := time.NewTicker(500 * time.Millisecond); ; {
			select {
			case <-ctx.Done():
				again.Stop()
				return
			case <-again.C:
				_, _ = s.Written(ctx) // nil: the next call tells it
			}
		}
	})
	lease, event := make([]byte, 60), make([]byte, 80)
	among(b, func(n int64) error {
		key, about := fmt.Appendf(nil, "l/%016x", n), fmt.Appendf(nil, "e/%016x", n)
		return s.Update(context.Background(), func(tx store.Tx) error {
			if _, err := tx.Get(key); err != nil {
				return err
			}
			if err := tx.Put(key, lease); err != nil {
				return err
			}
			return tx.Put(about, event)
		})
	})
	c := s.Counts()
	b.ReportMetric(float64(c.Updates)/float64(c.Commits), "updates/commit")
}

// BenchmarkBare is what etcd's own client makes of as many callers: a transaction each that creates one key.
func BenchmarkBare(b *testing.B) {
	c, err := clientv3.New(clientv3.Config{Endpoints: []string{embedded()}, Logger: zap.NewNop()})
	if err != nil {
		b.Fatal(err)
	}
	defer c.Close()
	prefix, value := freshPrefix(), string(make([]byte, 60))
	among(b, func(n int64) error {
		key := fmt.Sprintf("%sl/%016x", prefix, n)
		_, err := c.Txn(context.Background()).If(clientv3.Compare(clientv3.CreateRevision(key), "=",
			0)).Then(clientv3.OpPut(key, value)).Commit()
		return err
	})
}

// BenchmarkOpen opens a store of 65,536 records.
func BenchmarkOpen(b *testing.B) {
	cfg := Config{Prefix: freshPrefix(), Timeout: 10 * time.Second}
	s := open(b, cfg)
	const each = 2048
	for at := 0; at < 65536; at += each {
		err := s.Update(context.Background(), func(tx store.Tx) error {
			for i := range each {
				if err := tx.Put(fmt.Appendf(nil, "l/%016x", at+i), make([]byte, 60)); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			b.Fatal(err)
		}
	}
	for b.Loop() {
		s := open(b, cfg)
		if err := s.Close(); err != nil {
			b.Fatal(err)
		}
	}
}
