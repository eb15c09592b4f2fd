package ledger

import (
	"net/netip"

	"berth/internal/ipam"
)

// BelieveMAC makes the index believe that a MAC was seen at an address.
func (sx *SubnetIndex) BelieveMAC(m ipam.MAC, a netip.Addr) { sx.byMAC.add(macKey(m), addr16Of(a)) }

// BelieveName makes the index believe that a name was seen at an address, like another name with the same hash.
func (sx *SubnetIndex) BelieveName(name string, a netip.Addr) {
	sx.byName.add(nameKey(name), addr16Of(a))
}
