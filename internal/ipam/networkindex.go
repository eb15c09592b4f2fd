package ipam

import (
	"cmp"
	"slices"
	"strings"
)

// networkIndex is the index of one network: its record, and its subnets in the order in which they were made, which is
// that in which they are searched (GA-16).
type networkIndex struct {
	record  cached[Network]
	subnets []ID
	names   map[string]ID // of subnets
}

// network is what is known of a network's record, nil where nothing is.
func (ix *index) network(id ID) *Network {
	if nx := ix.networks[id]; nx != nil {
		return nx.record.value
	}
	return nil
}

func (ix *index) networkIndex(id ID) *networkIndex {
	nx := ix.networks[id]
	if nx == nil {
		nx = &networkIndex{}
		ix.networks[id] = nx
	}
	return nx
}

// setNetwork takes the index to another record of a network; the zero one is none.
func (ix *index) setNetwork(id ID, record cached[Network]) {
	nx := ix.networkIndex(id)
	if before := nx.record.value; before != nil && ix.names[before.Name] == id {
		delete(ix.names, before.Name)
	}
	nx.record = record
	if record.value != nil && record.value.Stage != Leaving {
		ix.names[record.value.Name] = id
	}
	ix.dropEmpty(id, nx)
}

func (ix *index) dropEmpty(id ID, nx *networkIndex) {
	if nx.record.value == nil && len(nx.subnets) == 0 {
		delete(ix.networks, id)
	}
}

// addSubnet puts a new subnet into the index.
func (ix *index) addSubnet(sub *Subnet, raw []byte) {
	sx := newSubnetIndex(sub.CIDR, &ix.ends)
	sx.record = cached[Subnet]{raw, sub}
	ix.putSubnet(sub, sx)
}

// putSubnet puts a subnet in with an index of its own that is there already.
func (ix *index) putSubnet(sub *Subnet, sx *subnetIndex) {
	ix.subnets[sub.ID] = sx
	sp := ix.space(sub.Space)
	sp.blocks.Insert(sub.CIDR)
	sp.ids[sub.CIDR] = sub.ID
	nx := ix.networkIndex(sub.Network)
	at, _ := slices.BinarySearchFunc(nx.subnets, sub, func(id ID, s *Subnet) int { return ix.subnets[id].record.value.byAge(s) })
	nx.subnets = slices.Insert(nx.subnets, at, sub.ID)
	nx.name(sub.Name, sub.ID)
}

// byAge orders the subnets of a network.
func (sub *Subnet) byAge(other *Subnet) int {
	return cmp.Or(sub.Created.Compare(other.Created), strings.Compare(sub.CIDR.String(), other.CIDR.String()))
}

// dropSubnet takes a subnet out, and returns its index for putSubnet.
func (ix *index) dropSubnet(sub *Subnet) *subnetIndex {
	sx := ix.subnets[sub.ID]
	delete(ix.subnets, sub.ID)
	sp := ix.space(sub.Space)
	sp.blocks.Remove(sub.CIDR)
	delete(sp.ids, sub.CIDR)
	nx := ix.networkIndex(sub.Network)
	nx.subnets = slices.DeleteFunc(nx.subnets, func(id ID) bool { return id == sub.ID })
	nx.unname(sub.Name, sub.ID)
	ix.dropEmpty(sub.Network, nx)
	return sx
}

// replaceSubnet takes the record of a subnet to another one of the same CIDR.
func (ix *index) replaceSubnet(sx *subnetIndex, record cached[Subnet]) {
	before := sx.record.value
	nx := ix.networkIndex(before.Network)
	nx.unname(before.Name, before.ID)
	sx.record = record
	nx.name(record.value.Name, record.value.ID)
}

func (nx *networkIndex) name(name string, id ID) {
	if name == "" {
		return
	}
	if nx.names == nil {
		nx.names = map[string]ID{}
	}
	nx.names[name] = id
}

func (nx *networkIndex) unname(name string, id ID) {
	if nx.names[name] == id {
		delete(nx.names, name)
	}
}
