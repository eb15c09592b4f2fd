package ledger

import (
	"encoding/binary"
	"hash/maphash"
	"iter"
	"net/netip"
	"slices"

	"berth/internal/ipam"
)

// places maps a key to the addresses where it was seen, in no order. Nearly all keys have one address, so the further
// ones are stored apart.
type places[K, A comparable] struct {
	one  map[K]A
	more map[K][]A
}

// OwnerPlaces are the addresses of owners, by name.
type OwnerPlaces = places[string, netip.Addr]

// sightings are the addresses of MACs or names in a subnet, held or remembered. A subnet may have millions. They hold
// no pointers, so the garbage collector skips them, and each takes some 40 bytes.
type sightings = places[uint64, addr16]

// addr16 is an address as 16 bytes.
type addr16 [16]byte

func addr16Of(a netip.Addr) addr16 { return a.As16() }

// addr is the reverse of addr16Of. No subnet has IPv4-mapped IPv6 addresses, so Unmap is safe.
func (s addr16) addr() netip.Addr { return netip.AddrFrom16(s).Unmap() }

// macKey is a MAC as a key of sightings; 0 means none.
func macKey(m ipam.MAC) uint64 {
	var b [8]byte
	copy(b[2:], m[:])
	return binary.BigEndian.Uint64(b[:])
}

var nameSeed = maphash.MakeSeed()

// nameKey is the hash of a name as a key of sightings; 0 means none. Names with the same hash share their addresses,
// and the records tell them apart.
func nameKey(name string) uint64 {
	if name == "" {
		return 0
	}
	return maphash.String(nameSeed, name)
}

// add notes that k was seen at addr. The zero K is ignored.
func (p *places[K, A]) add(k K, addr A) {
	var none K
	if k == none {
		return
	}
	if p.one == nil {
		p.one, p.more = map[K]A{}, map[K][]A{} // made late, because many subnets stay empty
	}
	if was, ok := p.one[k]; ok && was != addr {
		p.more[k] = append(p.more[k], was)
	}
	p.one[k] = addr
}

// remove forgets that k was seen at addr.
func (p *places[K, A]) remove(k K, addr A) {
	more := p.more[k]
	switch {
	case p.one[k] == addr && len(more) == 0:
		delete(p.one, k)
	case p.one[k] == addr:
		p.one[k] = more[len(more)-1]
		more = more[:len(more)-1]
	default:
		more = slices.DeleteFunc(more, func(a A) bool { return a == addr })
	}
	if len(more) > 0 {
		p.more[k] = more
	} else if len(p.more) > 0 {
		delete(p.more, k)
	}
}

// Has reports whether k was seen anywhere.
func (p *places[K, A]) Has(k K) bool {
	_, seen := p.one[k]
	return seen
}

// Of yields the addresses where k was seen.
func (p *places[K, A]) Of(k K) iter.Seq[A] {
	return func(yield func(A) bool) {
		addr, ok := p.one[k]
		if !ok || !yield(addr) {
			return
		}
		for _, addr := range slices.Backward(p.more[k]) {
			if !yield(addr) {
				return
			}
		}
	}
}

// All yields each key with each of its addresses.
func (p *places[K, A]) All() iter.Seq2[K, A] {
	return func(yield func(K, A) bool) {
		for k, addr := range p.one {
			if !yield(k, addr) {
				return
			}
		}
		for k, addrs := range p.more {
			for _, addr := range addrs {
				if !yield(k, addr) {
					return
				}
			}
		}
	}
}

// addresses returns the addresses where k was seen, or nil.
func addresses(p *sightings, k uint64) (all []netip.Addr) {
	if at, seen := p.one[k]; seen {
		all = append(all, at.addr())
		for _, at := range slices.Backward(p.more[k]) {
			all = append(all, at.addr())
		}
	}
	return all
}

// claims are the headroom addresses of a subnet, by attachment.
type claims map[ipam.ID]map[netip.Addr]struct{}

func (c *claims) add(l *ipam.Lease) {
	if l.Kind != ipam.Headroom {
		return
	}
	if *c == nil {
		*c = claims{}
	}
	if (*c)[l.Attachment] == nil {
		(*c)[l.Attachment] = map[netip.Addr]struct{}{}
	}
	(*c)[l.Attachment][l.Address] = struct{}{}
}

func (c claims) remove(l *ipam.Lease) {
	if l.Kind != ipam.Headroom {
		return
	}
	if delete(c[l.Attachment], l.Address); len(c[l.Attachment]) == 0 {
		delete(c, l.Attachment)
	}
}
