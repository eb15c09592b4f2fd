package ledger

import (
	"cmp"
	"slices"
	"strings"

	"berth/internal/ipam"
)

// NetworkIndex is the index of one network: its record, and its subnets by age. They are searched in this order.
type NetworkIndex struct {
	record  Cached[ipam.Network]
	subnets []ipam.ID
	names   map[string]ipam.ID // of subnets
}

// Network returns a network's record, or nil.
func (ix *Index) Network(id ipam.ID) *ipam.Network { return ix.networks[id].Record() }

// Policy returns how the released addresses of a subnet are used again.
func (ix *Index) Policy(sub *ipam.Subnet) ipam.Policy {
	if n := ix.Network(sub.Network); n != nil {
		return n.Policy
	}
	return ipam.Policy{}
}

func (ix *Index) networkIndex(id ipam.ID) *NetworkIndex {
	nx := ix.networks[id]
	if nx == nil {
		nx = &NetworkIndex{}
		ix.networks[id] = nx
	}
	return nx
}

// setNetwork replaces a network's record in the index. The zero record means none.
func (ix *Index) setNetwork(id ipam.ID, record Cached[ipam.Network]) {
	nx := ix.networkIndex(id)
	if before := nx.record.Value; before != nil {
		if ix.names[before.Name] == id {
			delete(ix.names, before.Name)
		}
		for _, name := range before.FormerNames {
			if ix.formerNames[name] == id {
				delete(ix.formerNames, name)
			}
		}
		if record.Value != nil && record.Value.Policy.Quarantine < before.Policy.Quarantine {
			for _, sub := range nx.subnets {
				ix.suspect(sub, ix.subnets[sub])
			}
		}
	}
	nx.record = record
	if record.Value != nil && record.Value.Stage != ipam.Leaving {
		ix.names[record.Value.Name] = id
		for _, name := range record.Value.FormerNames {
			ix.formerNames[name] = id
		}
	}
	ix.dropEmpty(id, nx)
}

func (ix *Index) dropEmpty(id ipam.ID, nx *NetworkIndex) {
	if nx.record.Value == nil && len(nx.subnets) == 0 {
		delete(ix.networks, id)
	}
}

// addSubnet adds a new subnet to the index.
func (ix *Index) addSubnet(sub *ipam.Subnet, raw []byte) {
	sx := newSubnetIndex(sub.CIDR, &ix.ends)
	sx.record = Cached[ipam.Subnet]{raw, sub}
	ix.putSubnet(sub, sx)
}

// putSubnet adds a subnet that has its own index already.
func (ix *Index) putSubnet(sub *ipam.Subnet, sx *SubnetIndex) {
	ix.subnets[sub.ID] = sx
	ix.countDHCP(sub, 1)
	sp := ix.space(sub.Space)
	sp.Blocks.Insert(sub.CIDR)
	sp.Ids[sub.CIDR] = sub.ID
	nx := ix.networkIndex(sub.Network)
	at, _ := slices.BinarySearchFunc(nx.subnets, sub,
		func(id ipam.ID, s *ipam.Subnet) int { return ByAge(ix.subnets[id].record.Value, s) })
	nx.subnets = slices.Insert(nx.subnets, at, sub.ID)
	nx.name(sub.Name, sub.ID)
}

// ByAge orders the subnets of a network by creation, then by CIDR.
func ByAge(sub *ipam.Subnet, other *ipam.Subnet) int {
	return cmp.Or(sub.Created.Compare(other.Created), strings.Compare(sub.CIDR.String(), other.CIDR.String()))
}

// dropSubnet removes a subnet and returns its index, for putSubnet.
func (ix *Index) dropSubnet(sub *ipam.Subnet) *SubnetIndex {
	sx := ix.subnets[sub.ID]
	delete(ix.subnets, sub.ID)
	ix.countDHCP(sub, -1)
	sp := ix.space(sub.Space)
	sp.Blocks.Remove(sub.CIDR)
	delete(sp.Ids, sub.CIDR)
	nx := ix.networkIndex(sub.Network)
	nx.subnets = slices.DeleteFunc(nx.subnets, func(id ipam.ID) bool { return id == sub.ID })
	nx.unname(sub.Name, sub.ID)
	ix.dropEmpty(sub.Network, nx)
	return sx
}

// replaceSubnet replaces the record of a subnet. The CIDR stays the same.
func (ix *Index) replaceSubnet(sx *SubnetIndex, record Cached[ipam.Subnet]) {
	before := sx.record.Value
	nx := ix.networkIndex(before.Network)
	nx.unname(before.Name, before.ID)
	ix.countDHCP(before, -1)
	ix.countDHCP(record.Value, 1)
	sx.record = record
	nx.name(record.Value.Name, record.Value.ID)
}

func (nx *NetworkIndex) name(name string, id ipam.ID) {
	if name == "" {
		return
	}
	if nx.names == nil {
		nx.names = map[string]ipam.ID{}
	}
	nx.names[name] = id
}

func (nx *NetworkIndex) unname(name string, id ipam.ID) {
	if nx.names[name] == id {
		delete(nx.names, name)
	}
}
