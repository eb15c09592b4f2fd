package ledger

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"berth/internal/ipam"
	"berth/store"
)

// Change is one run of a request inside a store transaction. It reads and writes records and updates the index. If the
// transaction does not commit, the index is reverted.
type Change struct {
	tx      store.Tx
	index   *Index
	now     time.Time
	actor   string
	account string // the request sees and changes only what is this account's; empty: everything
	host    string
	begun   uint64 // id of the last event before the daemon's start

	known     ipam.Known
	memories  int  // memories that a subnet keeps
	forgets   bool // the state is rebuilt from the running containers
	noElastic bool
	page      int // leases that one transaction ends at most
	membership

	collects bool
	events   []ipam.Event // the written events, once collects is set
	orphans  []*ipam.Subnet
	strays   []Stray

	moves []leaseMove // steps of leases in the index; an abort reverts them in reverse order
	undo  []func()    // the other steps in the index, which do not depend on leases
	added EventSum
	verbs []ipam.Verb // of the written events

	guesses uint64 // leases under a guessed name

	key   []byte // reused buffers
	value []byte
	abort func()
}

// leaseMove is one step of an address's lease in the index.
type leaseMove struct {
	sx            *SubnetIndex
	addr          netip.Addr
	before, after *ipam.Lease
}

// Update runs fn as one durable change and may run it again after a conflict. If fn fails, nothing is written. The
// error is fn's, the store's, or the refusal of a host that may not take part.
func (s *Ledger) Update(ctx context.Context, fn func(*Change) error) error {
	s.asked.Add(1)
	c := s.changes.Get().(*Change)
	defer s.changes.Put(c)
	c.actor, c.account, c.begun = ipam.ActorOf(ctx), ipam.AccountOf(ctx), s.opened
	var events EventSum
	err := s.store.Update(ctx, func(tx store.Tx) error {
		s.mu.Lock()
		defer s.mu.Unlock()
		c.tx, c.index, c.now = tx, s.index, s.now()
		clear(c.moves)
		clear(c.undo)
		c.moves, c.undo, c.added, c.verbs = c.moves[:0], c.undo[:0], EventSum{}, c.verbs[:0]
		c.collects, c.events, c.orphans, c.strays, c.guesses = false, nil, nil, nil, 0
		tx.OnAbort(c.abort)
		if err := c.enter(s.joined); err != nil {
			return err
		}
		err := fn(c)
		events = c.index.events
		if err != nil {
			return err
		}
		return c.leave()
	})
	if err != nil {
		return err
	}
	for _, verb := range c.verbs {
		s.told[verb].Add(1)
	}
	s.guesses.Add(c.guesses)
	s.addLeftovers(c.orphans, c.strays)
	s.wakeTrim(events)
	return nil
}

// newChange makes a change for the pool of changes. The store calls its abort after a run that did not commit, while
// the ledger is not locked.
func (s *Ledger) newChange() any {
	c := &Change{host: s.host, known: s.known, memories: s.memories, forgets: s.forgets, page: s.page,
		noElastic:  s.noElastic,
		membership: membership{member: s.member, mends: s.mends}, key: make([]byte, 0, 64), value: make([]byte, 0, 256)}
	if s.member != nil {
		c.present = s.Shared().Present
	}
	c.abort = func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		for _, m := range slices.Backward(c.moves) {
			m.sx.Move(m.addr, m.after, m.before)
		}
		for _, undo := range slices.Backward(c.undo) {
			undo()
		}
		c.index.events.add(c.added.negative())
		if len(c.moves)+len(c.undo) > 0 {
			s.reverts.Add(1)
		}
		c.moves, c.undo, c.added = c.moves[:0], c.undo[:0], EventSum{}
	}
	return c
}

// Attachment reads the attachment that the engine knows as pool id. An unknown id is ipam.ErrNotFound.
func (c *Change) Attachment(id ipam.ID) (*ipam.Attachment, error) {
	c.key = AttachmentKey(c.key[:0], id)
	a, err := ReadKnown(c.tx, c.key, c.index.attachments[id], "pool", id)
	if err == nil && a == nil {
		err = ipam.Refuse(ipam.ErrNotFound,
			"there is no pool %s: it was released, or belongs to another Berth or "+
				"another state of this Berth; remove the Docker network and create it again", id).
			Advise(ipam.DoListSubnets)
	}
	return a, err
}

// SubnetOf reads the subnet of an attachment. If the subnet is missing or was replaced, the error is ipam.ErrDamaged.
func (c *Change) SubnetOf(a *ipam.Attachment) (*ipam.Subnet, error) {
	c.key = SubnetKey(c.key[:0], a.Space, a.CIDR)
	sx := c.index.subnets[a.Subnet]
	var known Cached[ipam.Subnet]
	if sx != nil {
		known = sx.record
	}
	sub, err := ReadKnown(c.tx, c.key, known, "subnet", a.CIDR)
	switch {
	case err != nil:
		return nil, err
	case sub == nil || sx == nil:
		return nil, ipam.Help(fmt.Errorf("%w: pool %s belongs to subnet %s in space %s, but that subnet does not exist",
			ipam.ErrDamaged, a.ID, a.CIDR, a.Space), ipam.Advise(ipam.DoRunFsck))
	case sub.ID != a.Subnet:
		return nil, ipam.Refuse(ipam.ErrDamaged, "pool %s belongs to a replaced subnet %s", a.ID,
			a.CIDR).Advise(ipam.DoRunFsck)
	}
	return sub, nil
}

// Lease reads the record of an address. It returns nil if there is none.
func (c *Change) Lease(subnet ipam.ID, addr netip.Addr) (*ipam.Lease, error) {
	c.key = LeaseKey(c.key[:0], subnet, addr)
	raw, err := c.tx.Get(c.key)
	if err != nil || raw == nil {
		return nil, err
	}
	return ipam.DecodeLease(addr, raw)
}

// SetLease replaces the record of an address. before is the record that was read; after is nil to delete it.
func (c *Change) SetLease(subnet ipam.ID, addr netip.Addr, before, after *ipam.Lease) error {
	var err error
	if before.Held() && (!after.Held() || after.ID != before.ID) {
		c.settled(before.ID)
	}
	c.key = LeaseKey(c.key[:0], subnet, addr)
	if after == nil {
		err = c.tx.Delete(c.key)
	} else {
		c.value = ipam.EncodeLease(c.value[:0], after)
		err = c.tx.Put(c.key, c.value)
	}
	if err != nil {
		return err
	}
	sx := c.index.subnets[subnet]
	if sx == nil {
		return nil // the subnet was removed together with its index
	}
	sx.Move(addr, before, after)
	c.moves = append(c.moves, leaseMove{sx, addr, before, after})
	return nil
}

// Account is the account that the request is limited to (ipam.WithAccount), or empty.
func (c *Change) Account() string { return c.account }

// tellNetwork adds the network of the event's subnet to an event that names no network.
func (c *Change) tellNetwork(e *ipam.Event) {
	id := e.NetworkID
	if id == (ipam.ID{}) && e.Subnet.IsValid() && e.Subnet.Bits() > 0 {
		if sx := c.index.Overlapping(e.Space, e.Subnet); sx != nil {
			id = sx.record.Value.Network
		}
	}
	if id == (ipam.ID{}) && e.Network != "" {
		id = c.index.names[e.Network]
	}
	if n := c.index.Network(id); n != nil {
		e.NetworkID = id
		if e.Network == "" {
			e.Network = c.ShownName(n)
		}
	}
}

// SetAttachment writes an attachment, or removes it if a is nil.
func (c *Change) SetAttachment(id ipam.ID, a *ipam.Attachment) error {
	if a == nil {
		c.TakenSince(id)
	}
	return writeCached(c, c.index.attachments, id, AttachmentKey(nil, id), a)
}

// writeCached writes a record and its entry in a map of the index. If v is nil, it removes both.
func writeCached[K comparable, T any](c *Change, in map[K]Cached[T], key K, record []byte, v *T) error {
	raw, err := setJSON(c, record, v)
	if err != nil {
		return err
	}
	restore(c, in, key)
	if v == nil {
		delete(in, key)
	} else {
		in[key] = Cached[T]{raw, v}
	}
	return nil
}

// restore makes an entry of a map what it is now again if the change fails.
func restore[K comparable, V any](c *Change, in map[K]V, key K) {
	before, was := in[key]
	c.undo = append(c.undo, func() {
		if was {
			in[key] = before
		} else {
			delete(in, key)
		}
	})
}

// SetSubnet writes a new or changed subnet. The CIDR cannot change. More than ipam.MaxRanges pools, exclusions or
// static bands are ipam.ErrInvalid.
func (c *Change) SetSubnet(sub *ipam.Subnet) error {
	if len(sub.Pools) > ipam.MaxRanges || len(sub.Exclusions) > ipam.MaxRanges || len(sub.Static) > ipam.MaxRanges {
		return ipam.Refuse(ipam.ErrInvalid,
			"the subnet %s would have %d pools, %d exclusions and %d static bands; the maximum is %d of each, so "+
				"join adjacent ranges",
			sub.CIDR, len(sub.Pools), len(sub.Exclusions), len(sub.Static), ipam.MaxRanges)
	}
	raw, err := c.PutJSON(SubnetKey(nil, sub.Space, sub.CIDR), sub)
	if err != nil {
		return err
	}
	if sx := c.index.subnets[sub.ID]; sx != nil {
		before := sx.record
		c.index.replaceSubnet(sx, Cached[ipam.Subnet]{raw, sub})
		c.undo = append(c.undo, func() { c.index.replaceSubnet(sx, before) })
		return nil
	}
	c.index.addSubnet(sub, raw)
	c.undo = append(c.undo, func() { c.index.dropSubnet(sub) })
	return nil
}

// RemoveSubnet deletes a subnet's record. Its lease records are swept later.
func (c *Change) RemoveSubnet(sub *ipam.Subnet) error {
	if err := c.tx.Delete(SubnetKey(nil, sub.Space, sub.CIDR)); err != nil {
		return err
	}
	sx := c.index.dropSubnet(sub)
	c.undo = append(c.undo, func() { c.index.putSubnet(sub, sx) })
	return nil
}

// SetNetwork writes n and the record of its name, or removes both if n is nil. The caller checks first that the name is
// free.
func (c *Change) SetNetwork(id ipam.ID, n *ipam.Network) error {
	before := c.index.networks[id].Cached()
	if was := before.Value; was != nil && was.Stage != ipam.Leaving &&
		(n == nil || n.Name != was.Name || n.Stage == ipam.Leaving) {
		if err := c.tx.Delete(NameKey(nil, was.Name)); err != nil {
			return err
		}
	}
	raw, err := setJSON(c, NetworkKey(nil, id), n)
	if err != nil {
		return err
	}
	if n != nil && n.Stage != ipam.Leaving {
		if err := c.tx.Put(NameKey(nil, n.Name), id[:]); err != nil {
			return err
		}
	}
	c.undo = append(c.undo, func() { c.index.setNetwork(id, before) })
	c.index.setNetwork(id, Cached[ipam.Network]{raw, n})
	return nil
}

// setJSON writes v as the record of a key and returns its bytes. If v is nil, it removes the record.
func setJSON[T any](c *Change, key []byte, v *T) ([]byte, error) {
	if v == nil {
		return nil, c.tx.Delete(key)
	}
	return c.PutJSON(key, v)
}

// PutJSON writes v as the record of a key and returns its bytes.
func (c *Change) PutJSON(key []byte, v any) ([]byte, error) {
	raw, err := ipam.EncodeJSON(v)
	if err != nil {
		return nil, err
	}
	return raw, c.tx.Put(key, raw)
}

// CollectEvents makes the change keep the events that it writes from now on.
func (c *Change) CollectEvents() { c.collects = true }

// Collected returns the events written since CollectEvents.
func (c *Change) Collected() []ipam.Event { return c.events }

// CountGuess counts a lease under a guessed name.
func (c *Change) CountGuess() { c.guesses++ }

// AddOrphan notes a subnet that this change removes. Its leases are swept after the commit.
func (c *Change) AddOrphan(gone *ipam.Subnet) { c.orphans = append(c.orphans, gone) }

// AddStrays notes memories that this change leaves outside of their subnet. They are swept after the commit.
func (c *Change) AddStrays(subnet ipam.ID, at []netip.Addr) {
	for _, addr := range at {
		c.strays = append(c.strays, Stray{Subnet: subnet, Addr: addr})
	}
}
