package ipam

import (
	"context"
	"errors"
	"fmt"
	"net/netip"

	"berth/internal/alloc"
)

// AddressRequest asks for one address through an attachment.
type AddressRequest struct {
	Pool      ID         // the attachment
	Preferred netip.Addr // zero: choose one
	MAC       MAC        // zero: none was sent
	Name      string     // the endpoint's name; empty: none was sent
	Gateway   bool       // it is to be the gateway
}

// RequestAddress takes an address and returns it with the length of its subnet's prefix (LN-3). It is on disk
// then. A repetition, which is the same attachment, MAC and, where one is sent, name with a live lease, gets the same
// answer and takes nothing twice. A preferred address is given or refused with the reason (LN-9).
func (s *Service) RequestAddress(ctx context.Context, req AddressRequest) (netip.Prefix, error) {
	given, _, err := s.requestAddress(ctx, req)
	return given, err
}

// requestAddress is RequestAddress that tells, also with store.ErrUnknown, which lease was made; nil where none was.
func (s *Service) requestAddress(ctx context.Context, req AddressRequest) (given netip.Prefix, made *Lease, err error) {
	err = s.update(ctx, func(c *change) error {
		made = nil
		if err := c.mayTake(); err != nil {
			return err
		}
		t, err := c.target(req.Pool)
		if err != nil {
			return err
		}
		if err := t.revive(); err != nil {
			return err
		}
		var addr netip.Addr
		switch {
		case req.Gateway:
			addr, err = t.takeGateway(req)
		case req.Preferred.IsValid():
			addr, err = t.takePreferred(req)
		default:
			addr, err = t.takeAny(req)
		}
		given, made = netip.PrefixFrom(addr, t.sub.CIDR.Bits()), t.made
		return err
	})
	if err != nil {
		given = netip.Prefix{}
	}
	return given, made, err
}

// target is where a request takes its address: the attachment and what it holds, as read in the transaction.
type target struct {
	*change
	at   *Attachment
	sub  *Subnet
	sx   *subnetIndex
	pool string // the pool that the attachment names, or else the one that the network's rule gives its owner; empty: any
	made *Lease // by this request
}

func (c *change) target(pool ID) (*target, error) {
	at, err := c.attachment(pool)
	if err != nil {
		return nil, err
	}
	if at.Ended {
		return nil, &refusal{ErrNotFound, fmt.Sprintf("pool %s of subnet %s was released", at.ID, at.CIDR)}
	}
	sub, sx, err := c.subnetOf(at)
	if err != nil {
		return nil, err
	}
	return &target{change: c, at: at, sub: sub, sx: sx, pool: at.Named}, nil
}

// takePreferred takes the address that was asked for, wherever in the subnet it lies.
func (t *target) takePreferred(req AddressRequest) (netip.Addr, error) {
	addr := req.Preferred
	if err := t.checkHost(addr); err != nil {
		return netip.Addr{}, err
	}
	held, err := t.lease(t.sub.ID, addr)
	if err != nil {
		return netip.Addr{}, err
	}
	if held.Held() {
		if t.repeats(req, held) {
			return addr, nil
		}
		return addr, t.replay(req, held)
	}
	kind, r := t.kindOf(req), held.reserved()
	switch {
	case r == nil:
		if err := t.checkWanted(addr); err != nil {
			return netip.Addr{}, err
		}
	case kind == Auxiliary || !t.ix.network(t.sub.Network).canBe(req, r.Owner):
		return netip.Addr{}, t.reservedError(addr, r)
	}
	return addr, t.take(req, addr, held, kind) // its owner may have it, though it may be excluded since
}

// replay gives a live lease to this attachment where req is a manager's replay, and else refuses.
func (t *target) replay(req AddressRequest, held *Lease) error {
	again, err := t.replays(req, held)
	if err != nil {
		return err
	}
	if !again {
		return t.heldError(held)
	}
	moved := *held
	moved.Attachment, moved.Host = t.at.ID, t.host // the manager that leads now may be another
	if _, err := t.event(&Event{Verb: LeaseMoved, Space: t.sub.Space, Subnet: t.sub.CIDR, Address: held.Address,
		Lease: held.ID, Attachment: t.at.ID, Name: held.Name, Detail: "replay of pool " + held.Attachment.Short()}); err != nil {
		return err
	}
	if err := t.setLease(t.sub.ID, held.Address, held, &moved); err != nil {
		return err
	}
	return t.setHeir(held.Attachment, t.at.ID, true)
}

// kindOf tells a wanted address from one that the network keeps for itself: endpoints have a MAC, because Berth asks the
// engine for it, and auxiliary addresses have none. A swarm manager sends none at all.
func (t *target) kindOf(req AddressRequest) Kind {
	if req.MAC == (MAC{}) && req.Name == "" && !t.at.Swarm {
		return Auxiliary
	}
	return Static
}

// repeats tells whether req is the request again that made held. An address alone identifies nobody.
func (t *target) repeats(req AddressRequest, held *Lease) bool {
	return held.Held() && req.MAC != (MAC{}) && held.MAC == req.MAC && held.Attachment == t.at.ID &&
		(req.Name == "" || held.Name == req.Name)
}

// replays tells whether req is a swarm manager's replay after its restart: through its new attachment, the heir, it asks by
// address and without a MAC for what the old one holds.
func (t *target) replays(req AddressRequest, held *Lease) (bool, error) {
	if !t.at.Swarm || req.MAC != (MAC{}) || held.MAC != (MAC{}) || held.Attachment == (ID{}) || req.Gateway != (held.Kind == Gateway) {
		return false, nil
	}
	old, err := t.attachment(held.Attachment)
	if errors.Is(err, ErrNotFound) {
		return false, nil
	}
	return err == nil && old.Heir == t.at.ID, err
}

// takeAny chooses an address in the order that the design gives: what is the requester's already, what it had last, then
// per pool the lowest that nobody ever had, then the one released longest ago.
func (t *target) takeAny(req AddressRequest) (netip.Addr, error) {
	if held, err := t.repeated(req); err != nil || held != nil {
		return addressOf(held), err
	}
	addr, before, err := t.choose(req)
	if err != nil {
		return netip.Addr{}, err
	}
	return addr, t.take(req, addr, before, Automatic)
}

// repeated is the live lease that req made before; nil where it is no repetition.
func (t *target) repeated(req AddressRequest) (*Lease, error) {
	for addr := range t.sx.byMAC.of(req.MAC) {
		held, err := t.lease(t.sub.ID, addr)
		if err != nil || held != nil && t.repeats(req, held) {
			return held, err
		}
	}
	return nil, nil
}

// take writes the lease and its event. before is the address's record as it was read in this transaction.
func (t *target) take(req AddressRequest, addr netip.Addr, before *Lease, kind Kind) error {
	e := &Event{Verb: LeaseTaken, Space: t.sub.Space, Subnet: t.sub.CIDR, Address: addr, Attachment: t.at.ID,
		MAC: req.MAC, Name: req.Name, Detail: kind.String()}
	id, err := t.event(e)
	if err != nil {
		return err
	}
	t.made = &Lease{ID: id, Address: addr, Kind: kind, Attachment: t.at.ID, MAC: req.MAC, Name: req.Name,
		Host: t.host, Since: eventTime(id), Reservation: before.reserved()}
	return t.setLease(t.sub.ID, addr, before, t.made)
}

// checkHost refuses what can be nobody's address in the subnet.
func (t *target) checkHost(addr netip.Addr) error {
	if why := notHost(t.sub.CIDR, addr); why != "" {
		return refuse(OutsideSubnet, ErrInvalid, "%s is %s; ask for another", addr, why)
	}
	return nil
}

// notHost says what an address is that can be nobody's in a subnet; empty where it can be somebody's.
func notHost(cidr netip.Prefix, addr netip.Addr) string {
	switch {
	case !cidr.Contains(addr):
		return fmt.Sprintf("outside the subnet %s", cidr)
	case alloc.Usable(cidr).Contains(addr):
		return ""
	case addr == cidr.Addr() && addr.Is6():
		return fmt.Sprintf("the subnet-router anycast address of %s (RFC 4291)", cidr)
	case addr == cidr.Addr():
		return fmt.Sprintf("the network address of %s", cidr)
	default:
		return fmt.Sprintf("the broadcast address of %s", cidr)
	}
}

// checkWanted refuses what nobody may ask for by address, whether it is free or not: no host address, or one that is
// excluded (GA-9).
func (t *target) checkWanted(addr netip.Addr) error {
	if err := t.checkHost(addr); err != nil {
		return err
	}
	if x := t.sub.exclusion(addr); x != nil {
		return t.excludedError(addr, x)
	}
	return nil
}

func (c *change) excludedError(addr netip.Addr, x *Exclusion) error {
	return refuse(IPReserved, ErrInUse, "%s is excluded with %s; ask for another address, or take it out with `berth exclusion rm`", addr, x)
}

func (c *change) reservedError(addr netip.Addr, r *Reservation) error {
	return refuse(AlreadyInUse, ErrInUse, "%s is held by %s, for whom it is reserved since %s; ask for another address, or end that with `berth reservation rm`",
		addr, r.Owner, eventTime(r.ID).Format("2006-01-02 15:04:05 MST"))
}

func (c *change) heldError(held *Lease) error {
	todo := "remove that container, or ask for another address; if there is no such container, `berth check --repair` gives it free"
	switch held.Kind {
	case Gateway, Auxiliary:
		todo = "ask for another address"
	case Headroom:
		todo = "ask for another address, or lower the headroom with `berth network modify --headroom`"
	case External:
		todo = "release it with `berth address release`, or ask for another address"
	}
	whose := ""
	if r := held.Reservation; r != nil {
		whose = fmt.Sprintf(", as what is reserved for %s,", r.Owner)
	}
	return refuse(AlreadyInUse, ErrInUse, "%s is held by %s%s since %s; %s",
		held.Address, held.Holder(), whose, held.Since.Format("2006-01-02 15:04:05 MST"), todo)
}

// ReleaseAddress gives an address back (LN-4). It acts only on a lease taken through this attachment; what is free, somebody
// else's, the subnet's gateway, or of a pool that is gone, is left as it is, and that is no error, because the engine could do
// nothing about one. The address is remembered for its last holder.
func (s *Service) ReleaseAddress(ctx context.Context, pool ID, addr netip.Addr) error {
	_, err := s.releaseAddress(ctx, pool, addr)
	return err
}

// releaseAddress is ReleaseAddress that tells, also with store.ErrUnknown, which lease it ended; 0 where none was to be ended.
func (s *Service) releaseAddress(ctx context.Context, pool ID, addr netip.Addr) (ended uint64, err error) {
	err = s.update(ctx, func(c *change) (err error) {
		ended, err = c.giveFree(pool, addr, 0)
		return err
	})
	return ended, err
}

// giveFree ends the lease of an address that was taken through an attachment, and tells its id. With an id it ends only that lease.
func (c *change) giveFree(pool ID, addr netip.Addr, id uint64) (ended uint64, err error) {
	t, err := c.target(pool)
	if errors.Is(err, ErrNotFound) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	if err := t.revive(); err != nil || !t.sub.CIDR.Contains(addr) {
		return 0, err
	}
	held, err := t.lease(t.sub.ID, addr)
	if err != nil || !held.Held() || held.Attachment != pool || held.Kind == Headroom || id != 0 && held.ID != id {
		return 0, err
	}
	return held.ID, t.release(t.sub, held)
}

// release turns a live lease into a memory, for which the oldest one is forgotten where there are enough. Headroom was nobody's,
// and leaves none.
func (c *change) release(sub *Subnet, held *Lease) error {
	if held.Kind == Headroom {
		return c.unclaim(sub, held)
	}
	e := &Event{Verb: LeaseReleased, Space: sub.Space, Subnet: sub.CIDR, Address: held.Address,
		Lease: held.ID, Attachment: held.Attachment, MAC: held.MAC, Name: held.Name}
	if held.Kind == External {
		e.Network = c.networkName(sub.Network)
	}
	id, err := c.event(e)
	if err != nil {
		return err
	}
	if held.Reservation != nil {
		return c.setLease(sub.ID, held.Address, held, held.unheld())
	}
	if c.ix.subnets[sub.ID] == nil {
		return c.setLease(sub.ID, held.Address, held, nil) // nobody comes back to a subnet that is gone
	}
	after := *held
	after.Released = eventTime(id)
	if n := c.ix.network(sub.Network); n != nil && n.Policy.Quarantine > 0 {
		after.Until = c.now.Add(n.Policy.Quarantine)
	}
	if err := c.setLease(sub.ID, held.Address, held, &after); err != nil {
		return err
	}
	return c.forgetOldest(sub.ID)
}

// forgetOldest keeps the memories of a subnet within their number.
func (c *change) forgetOldest(subnet ID) error {
	addr, ok := c.ix.subnets[subnet].stale(c.memories, c.now)
	if !ok {
		return nil
	}
	m, err := c.lease(subnet, addr)
	if err != nil || !m.Remembered() || m.Reservation != nil {
		return err
	}
	return c.setLease(subnet, addr, m, nil)
}
