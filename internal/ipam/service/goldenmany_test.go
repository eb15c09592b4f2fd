package service_test

import (
	"bytes"
	"encoding/binary"
	"net/netip"
	"testing"

	"berth/internal/golden"
	"berth/internal/ipam"
	"berth/internal/ipam/ipamtest"
	"berth/internal/ipam/ledger"
	"berth/store"
)

// goldenLease is the lease of the golden state that manyLeases copies. Its MAC has the last byte 24.
var goldenLease = netip.MustParseAddr("2001:db8:1::77")

// manyLeases writes n copies of the record of goldenLease as 1.0 wrote it, each with its own address, id and MAC.
// No code of today encodes them.
func manyLeases(t *testing.T, r *ipamtest.Stage, n int) {
	t.Helper()
	var subnet ipam.ID
	var value []byte
	for _, rec := range golden.Records(t, "state.txt") {
		if of, addr, ok := ledger.LeaseKeyParts(rec.Key); ok && rec.Key[0] == ledger.LeaseKeys && addr == goldenLease {
			subnet, value = of, rec.Value
		}
	}
	const id = 1767323045000044 // of the event that made it, as in shown.json
	was, mac := binary.AppendUvarint(nil, id), []byte{2, 0, 0, 0, 0, 24}
	if !bytes.Contains(value, was) || !bytes.Contains(value, mac) {
		t.Fatalf("the golden lease of %s has not the id %d and the MAC %x: %x", goldenLease, id, mac, value)
	}
	addr := goldenLease.As16()
	for done := 0; done < n; {
		upto := min(n, done+store.MaxWrites)
		err := r.Store.Update(ctx, func(tx store.Tx) error {
			for i := done; i < upto; i++ {
				copied := addr
				binary.BigEndian.PutUint32(copied[8:], uint32(i+1))
				its := bytes.ReplaceAll(value, was, binary.AppendUvarint(nil, id-1_000_000_000-uint64(i)))
				its = bytes.ReplaceAll(its, mac, binary.BigEndian.AppendUint32([]byte{6, 0}, uint32(i)))
				if err := tx.Put(ledger.LeaseKey(nil, subnet, netip.AddrFrom16(copied)), its); err != nil {
					return err
				}
			}
			return nil
		})
		fine(t, err)
		done = upto
	}
}

// TestGoldenManyLeases: a state of 1.0 with a million leases opens, is sound, and works; with -short it has fewer.
func TestGoldenManyLeases(t *testing.T) {
	many := 1_000_000
	if testing.Short() {
		many = 20_000
	}
	r := ipamtest.Golden(t)
	manyLeases(t, r, many)
	r.Open()
	if problems, err := r.S.Check(ctx); err != nil || len(problems) > 0 {
		t.Fatalf("%d problems, the first: %.1000q, %v", len(problems), problems, err)
	}
	got := 0
	for l, err := range r.S.Leases(ctx, ipam.LeaseFilter{Subnet: netip.MustParsePrefix("2001:db8:1::/64")}) {
		fine(t, err)
		if l.State != "held" {
			t.Fatalf("%+v", l)
		}
		got++
	}
	if got != many+1 {
		t.Errorf("%d leases of %d are there", got, many+1)
	}
	addr, err := r.S.RequestAddress(ctx, ipam.AddressRequest{Pool: r.Pools["S"], MAC: ipam.MAC{2, 0, 0, 0, 0, 200}})
	fine(t, err)
	if err := r.S.ReleaseAddress(ctx, r.Pools["S"], addr.Addr()); err != nil {
		t.Error(err)
	}
}
