package elastic

import (
	"bytes"
	"net/netip"

	"berth/internal/ipam"
	"berth/internal/ipam/ledger"
)

// bearing are the kinds of records of which what an edge is to have is made.
var bearing = []byte{ledger.LeaseKeys, ledger.ElasticKeys, ledger.ElasticRangeKeys, ledger.AccountKeys,
	ledger.NetworkKeys, ledger.SubnetKeys}

// waking are further kinds on whose commits somebody waits.
var waking = []byte{ledger.AppliedKeys, ledger.HostKeys}

// touched marks the addresses that can lead elsewhere after some commits; all tells that any can.
func (t *tracker) touched(seen map[string][]byte, due map[netip.Addr]bool) (all bool) {
	networks := map[ipam.ID]bool{}
	var holders []holder
	for name, value := range seen {
		key := []byte(name)
		switch key[0] {
		case ledger.ElasticRangeKeys, ledger.AccountKeys:
			return true
		case ledger.ElasticKeys:
			if addr, ok := netip.AddrFromSlice(key[1:]); ok {
				due[addr] = true
			}
		case ledger.LeaseKeys:
			if has, ok := t.touchedBy(key, value, due); ok {
				holders = append(holders, has)
			}
		case ledger.NetworkKeys:
			networks[ipam.ID(key[1:])] = true
		case ledger.SubnetKeys:
			if sub, there := ledger.Decoded[ipam.Subnet](value); there {
				networks[sub.Value.Network] = true
			} else {
				t.gone(key, due)
			}
		}
	}
	t.room.ledger.Read(func(ix *ledger.Index) {
		for _, has := range holders {
			has.mark(ix, due)
		}
		if len(networks) == 0 {
			return
		}
		for addr, one := range ix.Elastics() {
			if one.Association != nil && networks[one.Association.Network] {
				due[addr] = true
			}
		}
	})
	return false
}

// gone marks the addresses that led to guests of a subnet which is there no more, nor another at its place.
func (t *tracker) gone(key []byte, due map[netip.Addr]bool) {
	for addr, l := range t.leads {
		if bytes.HasSuffix(key, l.Subnet.Addr().AsSlice()) {
			due[addr] = true
		}
	}
}

// touchedBy marks the addresses that led to a guest's, whose record was written, and tells who has that now.
func (t *tracker) touchedBy(key, value []byte, due map[netip.Addr]bool) (has holder, ok bool) {
	subnet, guest, ok := ledger.LeaseKeyParts(key)
	if !ok {
		return has, false
	}
	for _, addr := range t.guests[guest] {
		due[addr] = true
	}
	if value == nil {
		return has, false
	}
	l, err := ipam.DecodeLease(guest, value)
	if err != nil || !l.Held() && l.Reserved() == nil {
		return has, false // whoever reads it is refused; or nobody has it
	}
	return holder{subnet, l}, true
}

// holder is who has an address, or for whom it is reserved.
type holder struct {
	subnet ipam.ID
	lease  *ipam.Lease
}

// mark marks the addresses that are associated with him.
func (h holder) mark(ix *ledger.Index, due map[netip.Addr]bool) {
	sx := ix.Subnet(h.subnet)
	if sx == nil {
		return
	}
	n := ix.Network(sx.Record().Network)
	if n == nil || n.Elastic == ipam.ElasticOff {
		return
	}
	for _, addr := range ofHolder(ix, n, h.lease) {
		due[addr] = true
	}
}
