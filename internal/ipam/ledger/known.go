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

// The methods below are the index for other packages. The records that they return are shared: copy one before you
// change it.

// Index is the index as the change has left it so far.
func (c *Change) Index() *Index { return c.index }

// Tx is the store's transaction, for records that are not in the index.
func (c *Change) Tx() store.Tx { return c.tx }

// Now is the time of the change. It stays the same during one run.
func (c *Change) Now() time.Time { return c.now }

// Actor is who makes the request (ipam.ActorOf).
func (c *Change) Actor() string { return c.actor }

// Host is this host's name.
func (c *Change) Host() string { return c.host }

// Known has the observations of the witness of this host's engine.
func (c *Change) Known() *ipam.Known { return &c.known }

// SinceStart reports whether a lease began, or headroom came into use, after the daemon's start.
func (c *Change) SinceStart(l *ipam.Lease) bool { return l.ID > c.begun || c.index.used[l.ID] }

// MarkUsed notes that headroom came into use. Its id does not change then.
func (c *Change) MarkUsed(lease uint64) { c.mark(c.index.used, lease) }

// Memories is the number of released addresses whose holders a subnet remembers.
func (c *Change) Memories() int { return c.memories }

// Forgets reports whether the state is rebuilt from the running containers.
func (c *Change) Forgets() bool { return c.forgets }

// Page is the most records that one transaction removes.
func (c *Change) Page() int { return c.page }

// Subnet returns the index of a subnet, or nil.
func (ix *Index) Subnet(id ipam.ID) *SubnetIndex { return ix.subnets[id] }

// Attachment returns the record of an attachment, or nil.
func (ix *Index) Attachment(id ipam.ID) *ipam.Attachment { return ix.attachments[id].Value }

// NetworkIndex returns the index of a network, or nil if the network has neither a record nor subnets.
func (ix *Index) NetworkIndex(id ipam.ID) *NetworkIndex { return ix.networks[id] }

// Host returns the record of a host of the cluster by name, or nil.
func (ix *Index) Host(name string) *ipam.Host { return ix.hosts[name].Value }

// NetworkNamed returns the network of a name, or the zero ID.
func (ix *Index) NetworkNamed(name string) ipam.ID { return ix.names[name] }

// FormerlyNamed returns the network that had a name before, or the zero ID. Another network may have the name now.
func (ix *Index) FormerlyNamed(name string) ipam.ID { return ix.formerNames[name] }

// Asked returns the network that Docker means by a name: the one that has it, or else the one that had it before; the
// zero ID if there is neither.
func (ix *Index) Asked(name string) ipam.ID {
	if id, is := ix.names[name]; is {
		return id
	}
	return ix.formerNames[name]
}

// LastEvent is the greatest id of an event or lease. New ids are greater.
func (ix *Index) LastEvent() uint64 { return ix.lastEvent }

// AllRead reports whether the leases of all subnets are in the index. If another host changed a subnet's CIDR, the next
// change rereads its leases.
func (ix *Index) AllRead() bool { return len(ix.unread) == 0 }

// Events is the sum of stored events.
func (ix *Index) Events() EventSum { return ix.events }

// Subnets yields all subnets, in no order.
func (ix *Index) Subnets() iter.Seq2[ipam.ID, *SubnetIndex] { return maps.All(ix.subnets) }

// Networks yields all networks, in no order. Some may have subnets but no record.
func (ix *Index) Networks() iter.Seq2[ipam.ID, *NetworkIndex] { return maps.All(ix.networks) }

// Attachments yields all attachments, in no order.
func (ix *Index) Attachments() iter.Seq2[ipam.ID, *ipam.Attachment] { return values(ix.attachments) }

// Hosts yields the name and the record of each host of the cluster, in no order.
func (ix *Index) Hosts() iter.Seq2[string, *ipam.Host] { return values(ix.hosts) }

// Names yields the name and the id of each network, in no order.
func (ix *Index) Names() iter.Seq2[string, ipam.ID] { return maps.All(ix.names) }

// inSpace is the index of a space for reading. If the space does not exist, it is empty and not kept.
func (ix *Index) inSpace(name string) *spaceIndex {
	if sp := ix.spaces[name]; sp != nil {
		return sp
	}
	return newSpaceIndex()
}

// Blocks is the subnets of a space as blocks, for reading only.
func (ix *Index) Blocks(space string) *alloc.Blocks { return ix.inSpace(space).Blocks }

// subnetAt returns the subnet of a space with exactly this CIDR, or the zero ID.
func (ix *Index) subnetAt(space string, cidr netip.Prefix) ipam.ID {
	return ix.inSpace(space).Ids[cidr]
}

// SubnetsIn yields the subnets of a space, in no order.
func (ix *Index) SubnetsIn(space string) iter.Seq[ipam.ID] { return maps.Values(ix.inSpace(space).Ids) }

// Turnover is the last release through an attachment. It is zero if an address was taken since.
func (ix *Index) Turnover(attachment ipam.ID) Turnover { return ix.turnover[attachment] }

// LeftBehind reports whether the IPv6 address of the same start as this lease was refused since the daemon's start.
func (ix *Index) LeftBehind(lease uint64) bool { return ix.leftBehind[lease] }

// MarkLeftBehind notes that refusal.
func (ix *Index) MarkLeftBehind(lease uint64) { ix.leftBehind[lease] = true }

// Answered reports whether a lease was given again, since the daemon's start, while the store could not be written.
func (ix *Index) Answered(lease uint64) bool { return ix.answered[lease] }

// MarkAnswered notes that a lease was given again while the store could not be written.
func (ix *Index) MarkAnswered(lease uint64) { ix.answered[lease] = true }

// Spaces lists the names of the spaces, in no order.
func (ix *Index) Spaces() []string { return slices.Collect(maps.Keys(ix.spaces)) }

// Overlapping returns a subnet of the space that overlaps p, or nil.
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

// Record is the subnet's record as last read or written.
func (sx *SubnetIndex) Record() *ipam.Subnet { return sx.record.Value }

// Cached is the record with its bytes.
func (sx *SubnetIndex) Cached() Cached[ipam.Subnet] { return sx.record }

// Records is the number of addresses with a record: held, remembered or reserved.
func (sx *SubnetIndex) Records() uint64 { return sx.recorded.Len() }

// RecordsIn is the number of addresses of r with a record.
func (sx *SubnetIndex) RecordsIn(r netipx.IPRange) uint64 { return sx.recorded.CountIn(r) }

// HasRecord reports whether an address is held, remembered or reserved.
func (sx *SubnetIndex) HasRecord(addr netip.Addr) bool { return sx.recorded.Contains(addr) }

// Remembered is the number of remembered addresses.
func (sx *SubnetIndex) Remembered() int { return sx.released.Len() }

// Reservations is the number of reserved addresses, held or not.
func (sx *SubnetIndex) Reservations() uint64 { return uint64(sx.reserved) }

// Idle is the number of addresses that are reserved and not held.
func (sx *SubnetIndex) Idle() uint64 { return sx.idle.Len() }

// IdleIn is the number of addresses of r that are reserved and not held.
func (sx *SubnetIndex) IdleIn(r netipx.IPRange) uint64 { return sx.idle.CountIn(r) }

// LAN yields the states of the leases from a DHCP server that are not returned to it.
func (sx *SubnetIndex) LAN() iter.Seq[ipam.LANState] { return maps.Values(sx.lan) }

// Live is the number of held leases of an attachment, including headroom.
func (sx *SubnetIndex) Live(attachment ipam.ID) int { return sx.live[attachment] }

// Headroom is the set of headroom addresses of an attachment.
func (sx *SubnetIndex) Headroom(attachment ipam.ID) map[netip.Addr]struct{} {
	return sx.headroom[attachment]
}

// AllHeadroom yields each attachment's headroom, in no order.
func (sx *SubnetIndex) AllHeadroom() iter.Seq2[ipam.ID, map[netip.Addr]struct{}] {
	return maps.All(sx.headroom)
}

// SawMAC returns the addresses where a MAC was seen.
func (sx *SubnetIndex) SawMAC(m ipam.MAC) []netip.Addr {
	return addresses(&sx.byMAC, macKey(m))
}

// SawName returns the addresses where a name was seen. The name has the form of ipam.RememberedName.
func (sx *SubnetIndex) SawName(name string) []netip.Addr {
	return addresses(&sx.byName, nameKey(name))
}

// SawContainer returns the addresses where a container was seen, by its short id.
func (sx *SubnetIndex) SawContainer(id string) []netip.Addr {
	return addresses(&sx.byID, nameKey(id))
}

// ByTaken has the addresses that people took for owners, by names in the form of ipam.RememberedName.
func (sx *SubnetIndex) ByTaken() *OwnerPlaces { return &sx.byTaken }

// ByOwner has the reserved addresses of each owner.
func (sx *SubnetIndex) ByOwner() *OwnerPlaces { return &sx.byOwner }

// Usable is the range of host addresses of the subnet.
func (sx *SubnetIndex) Usable() netipx.IPRange { return sx.usable }

// Reserved is the number of reserved addresses.
func (sx *SubnetIndex) Reserved() int { return sx.reserved }

// Record is the network's record as last read or written, or nil.
func (nx *NetworkIndex) Record() *ipam.Network { return nx.Cached().Value }

// Cached is the record with its bytes, or zero.
func (nx *NetworkIndex) Cached() Cached[ipam.Network] {
	if nx == nil {
		return Cached[ipam.Network]{}
	}
	return nx.record
}

// Subnets lists the network's subnets in search order. Copy the list before you keep it.
func (nx *NetworkIndex) Subnets() []ipam.ID {
	if nx == nil {
		return nil
	}
	return nx.subnets
}

// SubnetNamed returns the network's subnet of a name, or the zero ID.
func (nx *NetworkIndex) SubnetNamed(name string) ipam.ID {
	if nx == nil {
		return ipam.ID{}
	}
	return nx.names[name]
}

// SkipIDs makes all later ids greater than upTo, an id from another store.
func (c *Change) SkipIDs(upTo uint64) { c.index.lastEvent = max(c.index.lastEvent, upTo) }

// MarkAnswered notes that the endpoint of a lease got its address again without a new record.
func (c *Change) MarkAnswered(lease uint64) { c.mark(c.index.answered, lease) }

func (c *Change) mark(marks map[uint64]bool, lease uint64) {
	restore(c, marks, lease)
	marks[lease] = true
}

// Due lists the reservations and dynamic owners that have ended, at most a page.
func (c *Change) Due() []Ending { return c.index.ends.due(c.now, c.page) }

// ForgetEnding removes an ending from the index.
func (c *Change) ForgetEnding(what Ending) { c.index.ends.Remove(what) }

// setEnding notes when an owner of a dynamic network ends. The zero time means never.
func (c *Change) setEnding(network ipam.ID, owner string, until time.Time) {
	what := Ending{Network: network, Owner: owner}
	before := c.index.ends.At[what]
	c.index.ends.Remove(what)
	c.index.ends.add(what, until)
	c.undo = append(c.undo, func() {
		c.index.ends.Remove(what)
		c.index.ends.add(what, before)
	})
}

// FollowOwner notes the end of a dynamic owner whose record was restored as bytes.
func (c *Change) FollowOwner(key, record []byte) {
	c.index.followOwner(&store.Foreign{Key: key, After: record})
	c.undo = append(c.undo, func() { c.index.followOwner(&store.Foreign{Key: key}) })
}

// RemoveSpace removes the record of an empty space.
func (c *Change) RemoveSpace(name string) error {
	restore(c, c.index.spaces, name)
	delete(c.index.spaces, name)
	return c.tx.Delete(spaceKey(nil, name))
}

// MoveSubnet replaces a subnet's record after its CIDR changed. sx is its new index.
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
