package ledger

import (
	"iter"
	"maps"
	"net/netip"
	"slices"
	"time"

	"go4.org/netipx"

	"berth/internal/alloc"
	"berth/internal/ipam"
	"berth/store"
)

// What the rooms above ask of the index. The records that it hands out are shared: whoever changes one copies it first.

// Index is what is known of the records at this moment of the change.
func (c *Change) Index() *Index { return c.index }

// Tx is the store's transaction of the change, for records of which the index knows nothing.
func (c *Change) Tx() store.Tx { return c.tx }

// Now is the time of the change, the same in all of it.
func (c *Change) Now() time.Time { return c.now }

// Actor is who asks.
func (c *Change) Actor() string { return c.actor }

// Host is this host's name.
func (c *Change) Host() string { return c.host }

// Known is what a witness of this host's engine can tell.
func (c *Change) Known() *ipam.Known { return &c.known }

// SinceStart tells whether a lease began after the daemon's start.
func (c *Change) SinceStart(l *ipam.Lease) bool { return l.ID > c.begun || c.index.used[l.ID] }

// MarkUsed notes that headroom came into use, which keeps its id.
func (c *Change) MarkUsed(lease uint64) { c.mark(c.index.used, lease) }

// Memories is how many released addresses a subnet remembers the holders of.
func (c *Change) Memories() int { return c.memories }

// Forgets tells whether the state is rebuilt from what runs (BO-4).
func (c *Change) Forgets() bool { return c.forgets }

// Page is how many records one transaction removes at most.
func (c *Change) Page() int { return c.page }

// Subnet is the index of a subnet; nil where it is unknown.
func (ix *Index) Subnet(id ipam.ID) *SubnetIndex { return ix.subnets[id] }

// Attachment is the record of an attachment; nil where it is unknown.
func (ix *Index) Attachment(id ipam.ID) *ipam.Attachment { return ix.attachments[id].Value }

// NetworkIndex is the index of a network; nil where it is unknown, which has no record and no subnets.
func (ix *Index) NetworkIndex(id ipam.ID) *NetworkIndex { return ix.networks[id] }

// Host is the record of a host of the cluster, by name; nil where it is unknown.
func (ix *Index) Host(name string) *ipam.Host { return ix.hosts[name].Value }

// NetworkNamed is the network that has a name; the zero ID where none has.
func (ix *Index) NetworkNamed(name string) ipam.ID { return ix.names[name] }

// LastEvent is the id of the last event or lease, behind which new ids begin.
func (ix *Index) LastEvent() uint64 { return ix.lastEvent }

// AllRead tells whether the leases of all subnets were read. Those of one to which another host has given another CIDR
// are read again by the next change.
func (ix *Index) AllRead() bool { return len(ix.unread) == 0 }

// Events is what is stored of events.
func (ix *Index) Events() EventSum { return ix.events }

// Subnets yields all subnets, in no order.
func (ix *Index) Subnets() iter.Seq2[ipam.ID, *SubnetIndex] { return maps.All(ix.subnets) }

// Networks yields all networks, in no order; those of whose record nothing is known among them.
func (ix *Index) Networks() iter.Seq2[ipam.ID, *NetworkIndex] { return maps.All(ix.networks) }

// Attachments yields all attachments, in no order.
func (ix *Index) Attachments() iter.Seq2[ipam.ID, *ipam.Attachment] { return values(ix.attachments) }

// Hosts yields the hosts of the cluster by name, in no order.
func (ix *Index) Hosts() iter.Seq2[string, *ipam.Host] { return values(ix.hosts) }

// Names yields the names of networks with whose they are, in no order.
func (ix *Index) Names() iter.Seq2[string, ipam.ID] { return maps.All(ix.names) }

// inSpace is the index of a space for reading; that of one which is not there is empty, and is not kept.
func (ix *Index) inSpace(name string) *spaceIndex {
	if sp := ix.spaces[name]; sp != nil {
		return sp
	}
	return newSpaceIndex()
}

// Blocks is where a space has subnets, for reading only.
func (ix *Index) Blocks(space string) *alloc.Blocks { return ix.inSpace(space).Blocks }

// subnetAt is the subnet of a space that has just this CIDR; the zero ID where none has.
func (ix *Index) subnetAt(space string, cidr netip.Prefix) ipam.ID {
	return ix.inSpace(space).Ids[cidr]
}

// SubnetsIn yields the subnets of a space, in no order.
func (ix *Index) SubnetsIn(space string) iter.Seq[ipam.ID] { return maps.Values(ix.inSpace(space).Ids) }

// Turnover is what was given back through an attachment last; false where nothing was since the last take.
func (ix *Index) Turnover(attachment ipam.ID) (Turnover, bool) {
	t, was := ix.turnover[attachment]
	return t, was
}

// LeftBehind tells whether the IPv6 address of the start that a lease was taken in was refused, in this life of the
// daemon.
func (ix *Index) LeftBehind(lease uint64) bool { return ix.leftBehind[lease] }

// MarkLeftBehind notes it.
func (ix *Index) MarkLeftBehind(lease uint64) { ix.leftBehind[lease] = true }

// Answered tells whether a lease was given again where nothing could be written, in this life of the daemon.
func (ix *Index) Answered(lease uint64) bool { return ix.answered[lease] }

// MarkAnswered notes it.
func (ix *Index) MarkAnswered(lease uint64) { ix.answered[lease] = true }

// Spaces lists the names of the spaces, in no order.
func (ix *Index) Spaces() []string { return slices.Collect(maps.Keys(ix.spaces)) }

// Overlapping is the subnet of a space that overlaps p, one of them where there are several; nil where none does.
func (ix *Index) Overlapping(space string, p netip.Prefix) *SubnetIndex {
	sp := ix.inSpace(space)
	cidr, overlaps := sp.Blocks.Overlap(p)
	if !overlaps {
		return nil
	}
	return ix.subnets[sp.Ids[cidr]]
}

func values[K comparable, T any](of map[K]Cached[T]) iter.Seq2[K, *T] {
	return func(yield func(K, *T) bool) {
		for k, known := range of {
			if !yield(k, known.Value) {
				return
			}
		}
	}
}

// Record is the subnet's record as it was read or written last.
func (sx *SubnetIndex) Record() *ipam.Subnet { return sx.record.Value }

// Cached is Record beside its bytes.
func (sx *SubnetIndex) Cached() Cached[ipam.Subnet] { return sx.record }

// Records is how many addresses have a record: held, remembered or reserved.
func (sx *SubnetIndex) Records() uint64 { return sx.recorded.Len() }

// RecordsIn is how many addresses of r have a record.
func (sx *SubnetIndex) RecordsIn(r netipx.IPRange) uint64 { return sx.recorded.CountIn(r) }

// HasRecord tells whether an address is held, remembered or reserved.
func (sx *SubnetIndex) HasRecord(addr netip.Addr) bool { return sx.recorded.Contains(addr) }

// Remembers tells whether an address is free and its last holder remembered.
func (sx *SubnetIndex) Remembers(addr netip.Addr) bool { return sx.memories[addr] != nil }

// Memory is what is remembered of an address that is free; false where nothing is.
func (sx *SubnetIndex) Memory(addr netip.Addr) (Memory, bool) {
	if e := sx.memories[addr]; e != nil {
		return e.Value.(Memory), true
	}
	return Memory{}, false
}

// Remembered is how many addresses are.
func (sx *SubnetIndex) Remembered() int { return sx.released.Len() }

// Memories yields the remembered addresses, in no order.
func (sx *SubnetIndex) Memories() iter.Seq[Memory] {
	return func(yield func(Memory) bool) {
		for _, e := range sx.memories {
			if !yield(e.Value.(Memory)) {
				return
			}
		}
	}
}

// Idle is how many addresses are reserved and not held.
func (sx *SubnetIndex) Idle() uint64 { return sx.idle.Len() }

// IdleIn is how many addresses of r are.
func (sx *SubnetIndex) IdleIn(r netipx.IPRange) uint64 { return sx.idle.CountIn(r) }

// LAN yields how it stands with each lease of a DHCP server, but for those that are on their way back to it.
func (sx *SubnetIndex) LAN() iter.Seq[ipam.LANState] { return maps.Values(sx.lan) }

// Live is how many leases are in somebody's hands through an attachment; headroom among them.
func (sx *SubnetIndex) Live(attachment ipam.ID) int { return sx.live[attachment] }

// Headroom is the addresses that an attachment has claimed as headroom.
func (sx *SubnetIndex) Headroom(attachment ipam.ID) map[netip.Addr]struct{} {
	return sx.headroom[attachment]
}

// AllHeadroom yields the headroom of each attachment that has some, in no order.
func (sx *SubnetIndex) AllHeadroom() iter.Seq2[ipam.ID, map[netip.Addr]struct{}] {
	return maps.All(sx.headroom)
}

// SawMAC are the addresses at which a MAC was seen.
func (sx *SubnetIndex) SawMAC(m ipam.MAC) []netip.Addr {
	return addresses(&sx.byMAC, macKey(m))
}

// SawName are the addresses at which a name was seen, as ipam.RememberedName has it.
func (sx *SubnetIndex) SawName(name string) []netip.Addr {
	return addresses(&sx.byName, nameKey(name))
}

// SawContainer are the addresses at which a container was seen, by its short id.
func (sx *SubnetIndex) SawContainer(id string) []netip.Addr {
	return addresses(&sx.byID, nameKey(id))
}

// ByTaken tells which addresses persons took for an owner, by its name as ipam.RememberedName has it.
func (sx *SubnetIndex) ByTaken() *OwnerPlaces { return &sx.byTaken }

// ByOwner tells which addresses are reserved for an owner.
func (sx *SubnetIndex) ByOwner() *OwnerPlaces { return &sx.byOwner }

// Usable is the range of the addresses that the subnet allows for hosts.
func (sx *SubnetIndex) Usable() netipx.IPRange { return sx.usable }

// Reserved is how many addresses are reserved.
func (sx *SubnetIndex) Reserved() int { return sx.reserved }

// Record is the network's record as it was read or written last; nil where there is none.
func (nx *NetworkIndex) Record() *ipam.Network { return nx.record.Value }

// Cached is Record beside its bytes.
func (nx *NetworkIndex) Cached() Cached[ipam.Network] { return nx.record }

// Subnets lists the network's subnets in the order in which they are searched; whoever keeps the list copies it.
func (nx *NetworkIndex) Subnets() []ipam.ID {
	if nx == nil {
		return nil
	}
	return nx.subnets
}

// SubnetNamed is the subnet of a name; the zero ID where the network has none of it.
func (nx *NetworkIndex) SubnetNamed(name string) ipam.ID {
	if nx == nil {
		return ipam.ID{}
	}
	return nx.names[name]
}

// SkipIDs has all ids that are made from now on be greater than one which came from another store.
func (c *Change) SkipIDs(upTo uint64) { c.index.lastEvent = max(c.index.lastEvent, upTo) }

// MarkAnswered notes that the endpoint of a lease has it again, which nothing in the records says.
func (c *Change) MarkAnswered(lease uint64) { c.mark(c.index.answered, lease) }

func (c *Change) mark(marks map[uint64]bool, lease uint64) {
	if !marks[lease] {
		marks[lease] = true
		c.undo = append(c.undo, func() { delete(marks, lease) })
	}
}

// due lists the reservations and owners of dynamic networks that have ended, a page of them at most.
func (c *Change) Due() []Ending { return c.index.ends.due(c.now, c.page) }

// ForgetEnding has the index say no more that something ends: it has, or there is no such thing.
func (c *Change) ForgetEnding(what Ending) { c.index.ends.Remove(what) }

// setEnding notes when an owner of a dynamic network ends; the zero time: never.
func (c *Change) setEnding(network ipam.ID, owner string, until time.Time) {
	what := Ending{Network: network, Owner: owner}
	before := c.index.ends.At[what]
	c.index.ends.Remove(what)
	c.index.ends.Add(what, until)
	c.undo = append(c.undo, func() {
		c.index.ends.Remove(what)
		c.index.ends.Add(what, before)
	})
}

// FollowOwner notes when an owner of a dynamic network ends, whose record was put back as it was.
func (c *Change) FollowOwner(key, record []byte) {
	c.index.followOwner(&store.Foreign{Key: key, After: record})
	c.undo = append(c.undo, func() { c.index.followOwner(&store.Foreign{Key: key}) })
}

// RemoveSpace removes the record of a space in which nothing is.
func (c *Change) RemoveSpace(name string) error {
	if before, was := c.index.spaces[name]; was {
		delete(c.index.spaces, name)
		c.undo = append(c.undo, func() { c.index.spaces[name] = before })
	}
	return c.tx.Delete(spaceKey(nil, name))
}

// MoveSubnet puts a subnet whose CIDR changed in the place of what it was, with the index of what it is now.
func (c *Change) MoveSubnet(from, to *ipam.Subnet, sx *SubnetIndex) error {
	if err := c.tx.Delete(SubnetKey(nil, from.Space, from.CIDR)); err != nil {
		return err
	}
	raw, err := c.PutJSON(SubnetKey(nil, to.Space, to.CIDR), to)
	if err != nil {
		return err
	}
	sx.record = Cached[ipam.Subnet]{raw, to}
	before := c.index.dropSubnet(from)
	c.index.putSubnet(to, sx)
	c.undo = append(c.undo, func() {
		c.index.dropSubnet(to)
		c.index.putSubnet(from, before)
	})
	return nil
}
