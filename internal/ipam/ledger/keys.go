package ledger

import (
	"encoding/binary"
	"net/netip"

	"berth/internal/ipam"
	"berth/store"
)

// The keys of the store. Each begins with a letter for its kind of record. All letters are listed here. If only one
// other package uses a kind, that package (in parentheses) defines the constant:
//
//	a ID                         an attachment
//	c space                      an unfinished copy of the space to or from another store (stores)
//	d network ID, owner          an owner in a dynamic network
//	e id(8)                      events, in the order of time
//	f ID                         a range of elastic addresses
//	g address(4|16)              an elastic address that is not free
//	h name                       a host that shares the store
//	i name                       the id of the network of that name
//	k key                        the outcome of the edits that were made with that key (edit)
//	l subnet ID, address(4|16)   a lease, a memory or a reservation
//	m name                       the store's own settings
//	n ID                         a network
//	o name 0 host                the stand-in for the container of that name (allocator)
//	p space 0 family address     a subnet, by its first address: overlaps are found among two neighbours
//	q seq(8)                     in a host's own store: what waits for the shared store (cluster)
//	r pool ID [address]          in a host's own store: its headroom, by attachment (cluster)
//	s name                       a space
//	t time(8) key                when an edit key was used, so that it can expire (edit)
//	u name                       an account, which has elastic addresses
//	v ...                        in a host's own store: what it remembers of the shared store (cluster)
//	w name 0 host                the container that the one of that name stands in for (allocator)
//	x host 0 address(4|16)       the report of a host's edge about an elastic address
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

// AttachmentKey is the key of an attachment.
func AttachmentKey(b []byte, id ipam.ID) []byte { return append(append(b, AttachmentKeys), id[:]...) }
func NetworkKey(b []byte, id ipam.ID) []byte    { return append(append(b, NetworkKeys), id[:]...) }
func NameKey(b []byte, name string) []byte      { return append(append(b, NameKeys), name...) }
func spaceKey(b []byte, name string) []byte {
	return append(append(b, SpaceKeys), name...)
}

// OwnerKey is the key of an owner in a dynamic network.
func OwnerKey(network ipam.ID, owner string) []byte {
	return append(append([]byte{DynamicKeys}, network[:]...), owner...)
}

// EventKey is the key of a record of events, by the id of its last event.
func EventKey(b []byte, id uint64) []byte {
	return binary.BigEndian.AppendUint64(append(b, EventKeys), id)
}

// EventID is the reverse of EventKey. It returns 0 if the key is not of events.
func EventID(key []byte) uint64 {
	if len(key) != 9 {
		return 0
	}
	return binary.BigEndian.Uint64(key[1:])
}

// LeaseKey is the key of an address's lease, memory or reservation.
func LeaseKey(b []byte, subnet ipam.ID, a netip.Addr) []byte {
	b = append(append(b, LeaseKeys), subnet[:]...)
	return ipam.AppendAddr(b, a)
}

// LeasesOf is the range of one subnet's lease keys.
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

// subnetFamily is the beginning that all subnet keys of a space and family share.
func subnetFamily(b []byte, space string, is6 bool) []byte {
	family := byte(4)
	if is6 {
		family = 6
	}
	return append(append(append(b, SubnetKeys), space...), 0, family)
}

// SubnetKey is the key of a subnet. Within a space and family the keys have the order of the addresses.
func SubnetKey(b []byte, space string, p netip.Prefix) []byte {
	return ipam.AppendAddr(subnetFamily(b, space, p.Addr().Is6()), p.Addr())
}

// KindRange is the range of all records of a kind.
func KindRange(kind byte) store.Range { return store.Prefix([]byte{kind}) }
