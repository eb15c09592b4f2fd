package ledger

import (
	"net/netip"

	"berth/internal/ipam"
)

// BelieveMAC makes the index believe that a MAC was seen at an address.
func (sx *SubnetIndex) BelieveMAC(m ipam.MAC, a netip.Addr) { sx.byMAC.Add(macKey(m), spotOf(a)) }

// BelieveName makes the index believe that a name was seen at an address, like another name with the same hash.
func (sx *SubnetIndex) BelieveName(name string, a netip.Addr) {
	sx.byName.Add(nameKey(name), spotOf(a))
}
