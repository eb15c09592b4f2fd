package elastic

import (
	"maps"
	"slices"
	"time"

	"berth/internal/ipam"
	"berth/internal/ipam/ledger"
)

// keeping are the kinds of records of which the keeper hears: those that bear on what is mapped, and hosts, whose
// system addresses are taken back when they are removed.
var keeping = append([]byte{ledger.HostKeys}, bearing...)

// autoTerms is what of a network on auto has a say in which of its guests have a system address.
type autoTerms struct {
	kind  ipam.NetworkType
	links []ipam.Link
	rules []ipam.OwnerRule
}

func (t autoTerms) same(other autoTerms) bool {
	return t.kind == other.kind && slices.Equal(t.links, other.links) && slices.Equal(t.rules, other.rules)
}

// termsOf are those of a network; false where it is not on auto, or not there as a whole.
func termsOf(n *ipam.Network) (t autoTerms, auto bool) {
	if n == nil || n.Stage != "" || n.Elastic != ipam.ElasticAuto {
		return t, false
	}
	return autoTerms{n.Type, n.Links, n.Rules}, true
}

// bears marks the guests that some commits can bear on besides by what is mapped to them; all tells that any can be.
func (k *keeper) bears(seen map[string][]byte, due map[guestPlace]bool) (all bool) {
	freed := false
	k.ledger.Read(func(ix *ledger.Index) {
		for name, value := range seen {
			switch key := []byte(name); key[0] {
			case ledger.HostKeys, ledger.ElasticRangeKeys, ledger.AccountKeys:
				all = true
			case ledger.NetworkKeys:
				all = k.replans(ipam.ID(key[1:]), value) || all
			case ledger.SubnetKeys:
				all = k.resizes(value) || all
			case ledger.LeaseKeys:
				if subnet, guest, ok := ledger.LeaseKeyParts(key); ok && k.isAuto(ix, subnet) {
					due[guestPlace{subnet, guest}] = true
				}
			case ledger.ElasticKeys:
				one, there := ledger.Decoded[ipam.Elastic](value)
				if !there || one.Value.State != ipam.ElasticAllocated {
					freed = true
				} else if at, leads := systemPlace(ix, one.Value); leads {
					due[at] = true
				}
			}
		}
	})
	if freed {
		maps.Copy(due, k.lacking)
	}
	return all
}

// replans tells whether a network that was written has come to be on auto, or is no more, or is it on other terms. Most
// commits of one are about something else: what is reserved there.
func (k *keeper) replans(id ipam.ID, value []byte) bool {
	was, before := k.networks[id]
	n, there := ledger.Decoded[ipam.Network](value)
	if !there {
		return before
	}
	now, auto := termsOf(n.Value)
	return auto != before || auto && !was.same(now)
}

// isBehind tells whether the network of a guest is on other terms by now than when all guests were looked at. The commit
// of that is still to be heard of, perhaps together with one that takes it back, of which replans would see nothing.
func (k *keeper) isBehind(ix *ledger.Index, at guestPlace) bool {
	sx := ix.Subnet(at.subnet)
	if sx == nil || sx.Record() == nil {
		return false
	}
	was, before := k.networks[sx.Record().Network]
	now, auto := termsOf(ix.Network(sx.Record().Network))
	return auto != before || auto && !was.same(now)
}

// resizes tells whether a subnet that was written is of a network on auto, or is gone.
func (k *keeper) resizes(value []byte) bool {
	sub, there := ledger.Decoded[ipam.Subnet](value)
	if !there {
		return true
	}
	_, auto := k.networks[sub.Value.Network]
	return auto
}

func (k *keeper) isAuto(ix *ledger.Index, subnet ipam.ID) bool {
	sx := ix.Subnet(subnet)
	if sx == nil {
		return false
	}
	_, auto := termsOf(ix.Network(sx.Record().Network))
	return auto
}

// systemPlace is the guest that has a system address.
func systemPlace(ix *ledger.Index, one *ipam.Elastic) (at guestPlace, leads bool) {
	if !one.System || one.Association == nil {
		return at, false
	}
	sub := subnetAt(ix, one.Association.Network, one.Association.Guest)
	if sub == nil {
		return at, false
	}
	return guestPlace{sub.ID, one.Association.Guest}, true
}

// hear marks the guests to which another address leads now than when they were looked at, or may lead, and all that run
// here where the witness has said something. What was written since may have been looked at before it was heard of, so
// that it counts what a guest was seen to have.
func (k *keeper) hear(due map[guestPlace]bool) {
	for guest, subnets := range k.here {
		for _, id := range subnets {
			at := guestPlace{id, guest}
			if k.heard || k.leads.moved[guest] || k.leads.worked[k.by[at]] {
				due[at] = true
			}
		}
	}
	k.heard = false
	clear(k.leads.moved)
	clear(k.leads.worked)
	maps.Copy(due, k.waits)
}

// tick marks once more, each second, what was looked at before: a commit that was taken back was in the index then.
func (k *keeper) tick(now time.Duration, due map[guestPlace]bool) {
	if now-k.ticked < lookAgain {
		return
	}
	k.ticked = now
	maps.Copy(due, k.before)
	k.before, k.looked = k.looked, map[guestPlace]bool{}
}

// inOrder are some guests by their addresses.
func inOrder(due map[guestPlace]bool) []guestPlace {
	return slices.SortedFunc(maps.Keys(due), func(a, b guestPlace) int {
		if by := a.addr.Compare(b.addr); by != 0 {
			return by
		}
		return slices.Compare(a.subnet[:], b.subnet[:])
	})
}
