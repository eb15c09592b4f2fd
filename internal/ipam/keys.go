package ipam

import (
	"encoding/binary"
	"net/netip"

	"berth/store"
)

// The keys of the store. Each begins with a letter for its kind of record:
//
//	a ID                         an attachment
//	e id(8)                      an event, in the order of time
//	l subnet ID, address(4|16)   a lease or a memory
//	m name                       the store's own settings
//	n ID                         a network
//	p space 0 family address     a subnet, by its first address: overlap is a look at two neighbours
//	s name                       a space
const (
	attachmentKeys = 'a'
	eventKeys      = 'e'
	leaseKeys      = 'l'
	settingKeys    = 'm'
	networkKeys    = 'n'
	subnetKeys     = 'p'
	spaceKeys      = 's'
)

func attachmentKey(id ID) []byte { return append([]byte{attachmentKeys}, id[:]...) }
func networkKey(id ID) []byte    { return append([]byte{networkKeys}, id[:]...) }
func spaceKey(name string) []byte {
	return append([]byte{spaceKeys}, name...)
}

func eventKey(id uint64) []byte {
	return binary.BigEndian.AppendUint64([]byte{eventKeys}, id)
}

func eventID(key []byte) uint64 {
	if len(key) != 9 {
		return 0
	}
	return binary.BigEndian.Uint64(key[1:])
}

func leaseKey(subnet ID, a netip.Addr) []byte {
	b := make([]byte, 0, 1+16+16)
	b = append(append(b, leaseKeys), subnet[:]...)
	return append(b, a.AsSlice()...)
}

// leaseKeyParts is the reverse of leaseKey.
func leaseKeyParts(key []byte) (subnet ID, a netip.Addr, ok bool) {
	if len(key) < 17 {
		return ID{}, netip.Addr{}, false
	}
	a, ok = netip.AddrFromSlice(key[17:])
	return ID(key[1:17]), a, ok
}

// subnetFamily is the part of a subnet's key that it shares with all subnets of its space and family.
func subnetFamily(space string, is6 bool) []byte {
	family := byte(4)
	if is6 {
		family = 6
	}
	return append(append([]byte{subnetKeys}, space...), 0, family)
}

func subnetKey(space string, p netip.Prefix) []byte {
	return append(subnetFamily(space, p.Addr().Is6()), p.Addr().AsSlice()...)
}

func kindRange(kind byte) store.Range { return store.Prefix([]byte{kind}) }
