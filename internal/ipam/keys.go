package ipam

import (
	"encoding/binary"
	"net/netip"

	"berth/store"
)

// The keys of the store. Each begins with a letter for its kind of record:
//
//	a ID                         an attachment
//	c space                      a copy of the space to or from another store, which has not ended
//	e id(8)                      an event, in the order of time
//	h name                       a host that shares the store
//	i name                       the id of the network of that name
//	j ...                        the journal of an import that has begun and not ended
//	k key                        the outcome of the edits that were made with that key
//	d network ID, owner          an owner in a network whose addresses somebody else chooses
//	l subnet ID, address(4|16)   a lease, a memory or a reservation
//	m name                       the store's own settings
//	n ID                         a network
//	p space 0 family address     a subnet, by its first address: overlap is a look at two neighbours
//	q seq(8)                     of a host that shares a store, in its own: what that store has not been told
//	r pool ID [address]          likewise: its headroom, by attachment
//	s name                       a space
//	t time(8) key                when a key was used, for its end
const (
	attachmentKeys = 'a'
	copyKeys       = 'c'
	dynamicKeys    = 'd'
	eventKeys      = 'e'
	hostKeys       = 'h'
	nameKeys       = 'i'
	importKeys     = 'j'
	outcomeKeys    = 'k'
	leaseKeys      = 'l'
	settingKeys    = 'm'
	networkKeys    = 'n'
	subnetKeys     = 'p'
	outboxKeys     = 'q'
	headroomKeys   = 'r'
	spaceKeys      = 's'
	usedKeys       = 't'
)

// The functions append, so that the keys of a request share one buffer.

func attachmentKey(b []byte, id ID) []byte { return append(append(b, attachmentKeys), id[:]...) }
func networkKey(b []byte, id ID) []byte    { return append(append(b, networkKeys), id[:]...) }
func nameKey(b []byte, name string) []byte { return append(append(b, nameKeys), name...) }
func spaceKey(b []byte, name string) []byte {
	return append(append(b, spaceKeys), name...)
}

// ownerKey is that of an owner in a dynamic network.
func ownerKey(network ID, owner string) []byte {
	return append(append([]byte{dynamicKeys}, network[:]...), owner...)
}

func eventKey(b []byte, id uint64) []byte {
	return binary.BigEndian.AppendUint64(append(b, eventKeys), id)
}

func eventID(key []byte) uint64 {
	if len(key) != 9 {
		return 0
	}
	return binary.BigEndian.Uint64(key[1:])
}

func leaseKey(b []byte, subnet ID, a netip.Addr) []byte {
	b = append(append(b, leaseKeys), subnet[:]...)
	return appendAddr(b, a)
}

// leasesOf is the range of the leases of one subnet.
func leasesOf(subnet ID) store.Range {
	return store.Prefix(append([]byte{leaseKeys}, subnet[:]...))
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
func subnetFamily(b []byte, space string, is6 bool) []byte {
	family := byte(4)
	if is6 {
		family = 6
	}
	return append(append(append(b, subnetKeys), space...), 0, family)
}

func subnetKey(b []byte, space string, p netip.Prefix) []byte {
	return appendAddr(subnetFamily(b, space, p.Addr().Is6()), p.Addr())
}

func kindRange(kind byte) store.Range { return store.Prefix([]byte{kind}) }
