package ledger

import (
	"encoding/binary"
	"net/netip"

	"berth/internal/ipam"
	"berth/store"
)

// The keys of the store. Each begins with a letter for its kind of record. All letters are here; those of records that
// one other room alone reads and writes have their names there:
//
//	a ID                         an attachment
//	c space                      a copy of the space to or from another store, which has not ended (stores)
//	e id(8)                      an event, in the order of time
//	f ID                         a range of elastic addresses
//	g address(4|16)              an elastic address that is not free
//	h name                       a host that shares the store
//	i name                       the id of the network of that name
//	k key                        the outcome of the edits that were made with that key (edit)
//	d network ID, owner          an owner in a network whose addresses somebody else chooses
//	l subnet ID, address(4|16)   a lease, a memory or a reservation
//	m name                       the store's own settings
//	n ID                         a network
//	o name 0 host                who stands in for the container of that name (choose)
//	p space 0 family address     a subnet, by its first address: overlap is a look at two neighbours
//	q seq(8)                     of a host that shares a store, in its own: what that store has not been told
//	                             (cluster)
//	r pool ID [address]          likewise: its headroom, by attachment (cluster)
//	s name                       a space
//	t time(8) key                when a key was used, for its end (edit)
//	u name                       an account, which has elastic addresses
//	v ...                        likewise: what it remembers of that store (cluster)
//	w name 0 host                for whom the container of that name stands in (choose)
//	x host 0 address(4|16)       what the edge of a host may have of an elastic address, and has said of it
//	y host                       the session of a host's edge in a shared store
const (
	AttachmentKeys = 'a'
	DynamicKeys    = 'd'
	EventKeys      = 'e'
	HostKeys       = 'h'
	NameKeys       = 'i'
	LeaseKeys      = 'l'
	SettingKeys    = 'm'
	NetworkKeys    = 'n'
	SubnetKeys     = 'p'
	SpaceKeys      = 's'

	AccountKeys      = 'u'
	ElasticRangeKeys = 'f'
	ElasticKeys      = 'g'
	AppliedKeys      = 'x'
	SessionKeys      = 'y'
)

// The functions append, so that the keys of a request share one buffer.

// AttachmentKey is that of an attachment.
func AttachmentKey(b []byte, id ipam.ID) []byte { return append(append(b, AttachmentKeys), id[:]...) }
func NetworkKey(b []byte, id ipam.ID) []byte    { return append(append(b, NetworkKeys), id[:]...) }
func NameKey(b []byte, name string) []byte      { return append(append(b, NameKeys), name...) }
func spaceKey(b []byte, name string) []byte {
	return append(append(b, SpaceKeys), name...)
}

// OwnerKey is that of an owner in a dynamic network.
func OwnerKey(network ipam.ID, owner string) []byte {
	return append(append([]byte{DynamicKeys}, network[:]...), owner...)
}

// EventKey is that of an event.
func EventKey(b []byte, id uint64) []byte {
	return binary.BigEndian.AppendUint64(append(b, EventKeys), id)
}

// EventID is the reverse of EventKey; 0 where the key is none.
func EventID(key []byte) uint64 {
	if len(key) != 9 {
		return 0
	}
	return binary.BigEndian.Uint64(key[1:])
}

// LeaseKey is that of the lease of an address.
func LeaseKey(b []byte, subnet ipam.ID, a netip.Addr) []byte {
	b = append(append(b, LeaseKeys), subnet[:]...)
	return ipam.AppendAddr(b, a)
}

// LeasesOf is the range of the leases of one subnet.
func LeasesOf(subnet ipam.ID) store.Range {
	return store.Prefix(append([]byte{LeaseKeys}, subnet[:]...))
}

// LeaseKeyParts is the reverse of LeaseKey.
func LeaseKeyParts(key []byte) (subnet ipam.ID, a netip.Addr, ok bool) {
	if len(key) < 17 {
		return ipam.ID{}, netip.Addr{}, false
	}
	a, ok = netip.AddrFromSlice(key[17:])
	return ipam.ID(key[1:17]), a, ok
}

// subnetFamily is the part of a subnet's key that it shares with all subnets of its space and family.
func subnetFamily(b []byte, space string, is6 bool) []byte {
	family := byte(4)
	if is6 {
		family = 6
	}
	return append(append(append(b, SubnetKeys), space...), 0, family)
}

// SubnetKey is that of a subnet; those of a space and family are in the order of their addresses.
func SubnetKey(b []byte, space string, p netip.Prefix) []byte {
	return ipam.AppendAddr(subnetFamily(b, space, p.Addr().Is6()), p.Addr())
}

// KindRange is the range of all records of a kind.
func KindRange(kind byte) store.Range { return store.Prefix([]byte{kind}) }
