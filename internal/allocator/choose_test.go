package allocator_test

import (
	"net/netip"
	"testing"

	"berth/internal/ipam"
	"berth/internal/ipam/ipamtest"
	"berth/internal/ipam/ledger"
)

// An address that is free in the index is given only if its record agrees (GA-22): it is not held, reserved or in
// quarantine.
func TestChosenByRecord(t *testing.T) {
	r := ipamtest.New(t)
	r.Run(`
		network n subnet=192.0.2.0/29,pool quarantine=1h
		attach N net=n
		reserve n own 192.0.2.1
		ask N a mac=1 -> 192.0.2.2
		ask N b mac=2 -> 192.0.2.3
		back N 192.0.2.3
	`)
	r.S.Ledger.Read(func(ix *ledger.Index) {
		for _, sx := range ix.Subnets() {
			for _, text := range []string{"192.0.2.1", "192.0.2.2", "192.0.2.3"} {
				addr := netip.MustParseAddr(text)
				sx.Move(addr, &ipam.Lease{Address: addr}, nil)
			}
		}
	})
	r.Run("ask N c mac=3 -> 192.0.2.4")
}
