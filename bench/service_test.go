package bench

import (
	"context"
	"encoding/binary"
	"fmt"
	"net/netip"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.etcd.io/bbolt"

	"berth/internal/ipam"
	"berth/internal/ipam/service"
	"berth/internal/plan"
	"berth/store/bolt"
)

// openService opens a service on a file. It is closed when the benchmark ends.
func openService(b *testing.B, dir string, known ipam.Known) *service.Service {
	b.Helper()
	s, file := openOn(b, bolt.Config{Path: filepath.Join(dir, "berth.db")}, known)
	b.Cleanup(func() { must(b, file.Close()) })
	return s
}

func openOn(b *testing.B, cfg bolt.Config, known ipam.Known) (*service.Service, *bolt.Store) {
	b.Helper()
	st, err := bolt.Open(b.Context(), cfg)
	must(b, err)
	s, err := service.Open(b.Context(), service.Config{Store: st, Host: "bench", Known: known})
	must(b, err)
	return s, st
}

// planned imports a document with a network of that name.
func planned(b *testing.B, s *service.Service, network, document string) *takes {
	b.Helper()
	p, err := plan.ReadYAML(strings.NewReader("version: 1\n" + document))
	must(b, err)
	_, err = s.Import(b.Context(), p, ipam.ImportOptions{})
	must(b, err)
	return poolOf(b, s, ipam.PoolRequest{Network: network})
}

// takes takes addresses from one pool of a service.
type takes struct {
	*service.Service
	ctx  context.Context
	pool ipam.ID
}

func poolOf(b *testing.B, s *service.Service, req ipam.PoolRequest) *takes {
	b.Helper()
	grant, err := s.RequestPool(b.Context(), req)
	must(b, err)
	return &takes{s, b.Context(), grant.ID}
}

// wide is the pool of most benchmarks.
var wide = ipam.PoolRequest{Space: ipam.LocalSpace, CIDR: netip.MustParsePrefix("10.0.0.0/8")}

// take takes an address of the pool.
func (t *takes) take(mac ipam.MAC, name string) (netip.Addr, error) {
	grant, err := t.RequestAddress(t.ctx, ipam.AddressRequest{Pool: t.pool, MAC: mac, Name: name})
	return grant.Addr(), err
}

// nameless requests an address without an owner, unnamed for a new container by its MAC, and named by a MAC and a
// name like Compose's.
func (t *takes) nameless(int) error { _, err := t.take(ipam.MAC{}, ""); return err }
func (t *takes) unnamed(int) error  { _, err := t.take(newMAC(), ""); return err }
func (t *takes) named(int) error {
	mac := newMAC()
	_, err := t.take(mac, fmt.Sprintf("shop-web-%d", binary.BigEndian.Uint32(mac[2:])))
	return err
}

// coming requests an address under a new name, and releases it.
func (t *takes) coming(int) error {
	addr, err := t.take(ipam.MAC{}, newMAC().String())
	if err != nil {
		return err
	}
	return t.ReleaseAddress(t.ctx, t.pool, addr)
}

// BenchmarkService compares addresses, whose leases and events are durable before each answer, with bare bbolt
// transactions. These put two keys of the same size for each address, and as many addresses as there are callers.
func BenchmarkService(b *testing.B) {
	eachMedium(b, func(b *testing.B, dir string) {
		for _, callers := range []int{1, 16, 64} {
			b.Run(fmt.Sprintf("callers=%d", callers), func(b *testing.B) {
				dir := newDir(b, dir)
				ours := poolOf(b, openService(b, dir, ipam.Known{}), wide)
				compare(b, ratio, by(callers, ours.unnamed), bareKeys(b, filepath.Join(dir, "bare.db"), 2, callers))
			})
		}
	})
}

// bareKeys makes bare transactions. Its rate counts the addresses in them.
func bareKeys(b *testing.B, file string, keys, addresses int) side {
	b.Helper()
	db, err := openBare(file)
	must(b, err)
	b.Cleanup(func() { must(b, db.Close()) })
	transactions := by(1, func(int) error { return db.put(keys, addresses) })
	return func(b *testing.B) (float64, []time.Duration) {
		rate, took := transactions(b)
		return rate * float64(addresses), took
	}
}

// bare is a bbolt file.
type bare struct {
	*bbolt.DB
	last uint64
}

func openBare(file string) (*bare, error) {
	db, err := bbolt.Open(file, 0o600,
		&bbolt.Options{Timeout: time.Second, NoFreelistSync: true, FreelistType: bbolt.FreelistMapType})
	return &bare{DB: db}, err
}

// put puts keys for each of the addresses in one transaction.
func (d *bare) put(keys, addresses int) error {
	return d.Update(func(tx *bbolt.Tx) error {
		bucket, err := tx.CreateBucketIfNotExists([]byte("data"))
		for range addresses {
			d.last++
			for k := range keys {
				key := make([]byte, 21)
				key[0] = byte(k)
				binary.BigEndian.PutUint64(key[13:], d.last)
				if err == nil {
					err = bucket.Put(key, make([]byte, 100))
				}
			}
		}
		return err
	})
}
