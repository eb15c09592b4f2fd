package choose

import (
	"errors"
	"fmt"
	"net/netip"
	"time"

	"berth/internal/alloc"
	"berth/internal/ipam"
	"berth/internal/ipam/ledger"
)

// Target is where a request takes its address: the attachment and what it holds, as read in the transaction.
type Target struct {
	*ledger.Change
	At  *ipam.Attachment
	Sub *ipam.Subnet
	Sx  *ledger.SubnetIndex
	// the pool that the attachment names, or else the one that the network's rule gives its owner; empty: any
	Pool string
	Kept ipam.Wants  // of the subnet
	Made *ipam.Lease // by this request
}

// OpenTarget opens the attachment that the engine knows as a pool, with its subnet; ErrNotFound where it is not there.
func OpenTarget(c *ledger.Change, pool ipam.ID) (*Target, error) {
	at, err := c.Attachment(pool)
	if err != nil {
		return nil, err
	}
	if at.Ended {
		return nil, ipam.Refuse(ipam.ErrNotFound, "pool %s of subnet %s was released", at.ID, at.CIDR)
	}
	sub, sx, err := c.SubnetOf(at)
	if err != nil {
		return nil, err
	}
	return &Target{Change: c, At: at, Sub: sub, Sx: sx, Pool: at.Named, Kept: KeptOf(c, sub)}, nil
}

// TakePreferred takes the address that was asked for, wherever in the subnet it lies.
func (t *Target) TakePreferred(req ipam.AddressRequest) (netip.Addr, error) {
	addr := req.Preferred
	if err := t.CheckHost(addr); err != nil {
		return netip.Addr{}, err
	}
	held, err := t.Lease(t.Sub.ID, addr)
	if err != nil {
		return netip.Addr{}, err
	}
	if held.Held() {
		if t.Repeats(req, held) {
			return addr, t.takeOver(req, held)
		}
		return addr, t.replay(req, held)
	}
	r := held.Reserved()
	switch {
	case r == nil:
		if err := t.CheckWanted(addr); err != nil {
			return netip.Addr{}, err
		}
	case t.surelyAuxiliary(req) || !t.Index().Network(t.Sub.Network).CanBe(req, r.Owner):
		return netip.Addr{}, ReservedError(t.Change, addr, r)
	}
	if hint := t.hint(req); hint.Name != "" {
		req.Name, req.Guessed = hint.Name, true
	}
	// its owner may have it, though it may be excluded since
	return addr, t.Take(req, addr, held, KindOf(req, t.At, t.Now()))
}

// replay gives a live lease to this attachment where req is a manager's replay, and else refuses.
func (t *Target) replay(req ipam.AddressRequest, held *ipam.Lease) error {
	again, err := t.replays(req, held)
	if err != nil {
		return err
	}
	if !again {
		return HeldError(t.Change, t.Sub, held)
	}
	moved := *held
	moved.Attachment, moved.Host = t.At.ID, t.Host() // the manager that leads now may be another
	if _, err := t.Event(&ipam.Event{Verb: ipam.LeaseMoved, Space: t.Sub.Space, Subnet: t.Sub.CIDR,
		Address: held.Address,
		Lease:   held.ID, Attachment: t.At.ID, Name: held.Name,
		Detail: "replay of pool " + held.Attachment.Short()}); err != nil {
		return err
	}
	if err := t.SetLease(t.Sub.ID, held.Address, held, &moved); err != nil {
		return err
	}
	return SetHeir(t.Change, held.Attachment, t.At.ID, true)
}

// auxiliaryTime is how soon after its pool an auxiliary address is asked for: the engine does so at once.
const auxiliaryTime = time.Second

// KindOf is the kind that a lease is to have. It tells a wanted address from one that the network keeps for itself
// (`--aux-address`): an engine that sends neither MAC nor name asks for both with the same words, and what comes right
// after the pool is the network's. The witness puts right what is not so (nameLease). A swarm's manager sends neither
// for anything. at is the attachment; nil where it is not known, because the store is away: no pool is made then.
func KindOf(req ipam.AddressRequest, at *ipam.Attachment, now time.Time) ipam.Kind {
	switch {
	case !req.Preferred.IsValid():
		return ipam.Automatic
	case req.MAC != (ipam.MAC{}) || req.Name != "" || at != nil && at.Swarm:
		return ipam.Static
	case req.Telling, at != nil && now.Sub(at.Created) <= auxiliaryTime:
		return ipam.Auxiliary
	}
	return ipam.Static
}

// surelyAuxiliary tells whether an endpoint would have said more.
func (t *Target) surelyAuxiliary(req ipam.AddressRequest) bool {
	return req.MAC == (ipam.MAC{}) && req.Name == "" && !t.At.Swarm && req.Telling
}

// replays tells whether req is a swarm manager's replay after its restart: through its new attachment, the heir, it
// asks by address and without a MAC for what the old one holds.
func (t *Target) replays(req ipam.AddressRequest, held *ipam.Lease) (bool, error) {
	if !t.At.Swarm || req.MAC != (ipam.MAC{}) || held.MAC != (ipam.MAC{}) || held.Attachment == (ipam.ID{}) ||
		req.Gateway != (held.Kind == ipam.Gateway) {
		return false, nil
	}
	old, err := t.Attachment(held.Attachment)
	if errors.Is(err, ipam.ErrNotFound) {
		return false, nil
	}
	return err == nil && old.Heir == t.At.ID, err
}

// TakeAny chooses an address in the order that the design gives: what is the requester's already, what it had last,
// then per pool the lowest that nobody ever had, then the one released longest ago.
func (t *Target) TakeAny(req ipam.AddressRequest) (netip.Addr, error) {
	lost, err := t.Repeated(&req, func(*ipam.Lease) bool { return true })
	if err != nil {
		return netip.Addr{}, err
	}
	if lost != nil {
		return lost.Address, t.takeOver(req, lost)
	}
	g, err := t.guess(req)
	if err != nil {
		return netip.Addr{}, err
	}
	if g != nil {
		return g.addr, t.Take(g.req, g.addr, g.before, ipam.Automatic)
	}
	addr, before, err := t.choose(&req)
	if err != nil {
		return netip.Addr{}, err
	}
	return addr, t.Take(req, addr, before, ipam.Automatic)
}

// Take writes the lease and its event. before is the address's record as it was read in this transaction.
func (t *Target) Take(req ipam.AddressRequest, addr netip.Addr, before *ipam.Lease, kind ipam.Kind) error {
	t.TakenSince(t.At.ID)
	e := &ipam.Event{Verb: ipam.LeaseTaken, Space: t.Sub.Space, Subnet: t.Sub.CIDR, Address: addr, Attachment: t.At.ID,
		MAC: req.MAC, Name: req.Name, Detail: kind.String()}
	if req.Guessed {
		e.Detail += " by a guess"
	}
	id, err := t.Event(e)
	if err != nil {
		return err
	}
	t.Made = &ipam.Lease{ID: id, Address: addr, Kind: kind, Attachment: t.At.ID, MAC: req.MAC, Name: req.Name,
		Guessed: req.Guessed && req.Name != "", Host: t.Host(), Since: ipam.EventTime(id),
		Reservation: before.Reserved()}
	return t.SetLease(t.Sub.ID, addr, before, t.Made)
}

// CheckHost refuses what can be nobody's address in the subnet.
func (t *Target) CheckHost(addr netip.Addr) error {
	if why := NotHost(t.Sub.CIDR, addr); why != "" {
		return ipam.RefuseAs(ipam.OutsideSubnet, ipam.ErrInvalid, "%s is %s; ask for another", addr, why)
	}
	return nil
}

// NotHost says what an address is that can be nobody's in a subnet; empty where it can be somebody's.
func NotHost(cidr netip.Prefix, addr netip.Addr) string {
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

// CheckWanted refuses what nobody may ask for by address, whether it is free or not: no host address, or one that is
// excluded (GA-9).
func (t *Target) CheckWanted(addr netip.Addr) error {
	if err := t.CheckHost(addr); err != nil {
		return err
	}
	if x := t.Sub.Exclusion(addr); x != nil {
		return excludedError(t.Change, addr, x)
	}
	return nil
}

func excludedError(c *ledger.Change, addr netip.Addr, x *ipam.Exclusion) error {
	return ipam.Help(ipam.RefuseAs(ipam.IPReserved, ipam.ErrInUse, "%s is excluded with %s; ask for another address",
		addr, x),
		ipam.OrAdvise(ipam.DoEndExclusion))
}

// ReservedError refuses an address that is reserved for another.
func ReservedError(c *ledger.Change, addr netip.Addr, r *ipam.Reservation) error {
	return ipam.Help(ipam.RefuseAs(ipam.AlreadyInUse, ipam.ErrInUse,
		"%s is held by %s, for whom it is reserved since %s; ask for another "+
			"address",
		addr, r.Owner, ipam.EventTime(r.ID).Format("2006-01-02 15:04:05 MST")), ipam.OrAdvise(ipam.DoEndReservation))
}

// HeldError refuses what somebody has. That he still has it, the witness is asked to see.
func HeldError(c *ledger.Change, sub *ipam.Subnet, held *ipam.Lease) error {
	doLook(c)
	todo, advice := "remove that container, or ask for another address", []ipam.Advice{ipam.Advise(ipam.DoReleaseDead)}
	switch held.Kind {
	case ipam.Gateway, ipam.Auxiliary:
		todo, advice = "ask for another address", nil
	case ipam.Headroom:
		todo, advice = "ask for another address", []ipam.Advice{ipam.OrAdvise(ipam.DoLowerHeadroom)}
	case ipam.External:
		todo, advice = "ask for another address", []ipam.Advice{ipam.OrAdvise(ipam.DoReleaseTaken)}
	}
	whose := ""
	if r := held.Reservation; r != nil {
		whose = fmt.Sprintf(", as what is reserved for %s,", r.Owner)
	}
	return ipam.Help(ipam.RefuseAs(ipam.AlreadyInUse, ipam.ErrInUse, "%s is held by %s%s since %s; %s",
		held.Address, holder(c, sub.Space, held), whose, held.Since.Format("2006-01-02 15:04:05 MST"), todo), advice...)
}

// GiveFree ends the lease of an address that was taken through an attachment, and tells its id. With an id it ends only
// that lease.
func GiveFree(c *ledger.Change, pool ipam.ID, addr netip.Addr, id uint64) (ended uint64, err error) {
	t, err := OpenTarget(c, pool)
	if errors.Is(err, ipam.ErrNotFound) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	if err := t.Revive(); err != nil {
		return 0, err
	} else if !t.Sub.CIDR.Contains(addr) {
		return 0, nil
	}
	held, err := t.Lease(t.Sub.ID, addr)
	if err != nil {
		return 0, err
	}
	if !held.Held() || held.Attachment != pool || held.Kind == ipam.Headroom || id != 0 && held.ID != id {
		return 0, nil
	}
	return held.ID, Release(t.Change, t.Sub, held)
}

// Release turns a live lease into a memory, for which the oldest one is forgotten where there are enough. Headroom was
// nobody's, and leaves none.
func Release(c *ledger.Change, sub *ipam.Subnet, held *ipam.Lease) error {
	if held.Kind == ipam.Headroom {
		return unclaim(c, sub, held)
	}
	givenBack(c, held)
	e := ipam.EndOf(sub, held)
	if held.Kind == ipam.External {
		e.Network = c.NetworkName(sub.Network)
	}
	id, err := c.Event(e)
	if err != nil {
		return err
	}
	if held.Reservation != nil {
		return c.SetLease(sub.ID, held.Address, held, held.Unheld())
	}
	if c.Index().Subnet(sub.ID) == nil {
		return c.SetLease(sub.ID, held.Address, held, nil) // nobody comes back to a subnet that is gone
	}
	after := *held
	after.Released, after.Guessed, after.Note = ipam.EventTime(id), false, ""
	if n := c.Index().Network(sub.Network); n != nil && n.Policy.Quarantine > 0 {
		after.Until = c.Now().Add(n.Policy.Quarantine)
	}
	if err := c.SetLease(sub.ID, held.Address, held, &after); err != nil {
		return err
	}
	return forgetOldest(c, sub.ID)
}

// forgetOldest keeps the memories of a subnet within their number.
func forgetOldest(c *ledger.Change, subnet ipam.ID) error {
	addr, ok := c.Index().Subnet(subnet).Stale(c.Memories(), c.Now(), c.Known().StillExists)
	if !ok {
		return nil
	}
	m, err := c.Lease(subnet, addr)
	if err != nil {
		return err
	}
	if !m.Remembered() || m.Reservation != nil {
		return nil
	}
	return c.SetLease(subnet, addr, m, nil)
}
