package allocator

import (
	"berth/internal/ipam"
	"berth/internal/ipam/ledger"
)

// Asker is the client for whom a DHCP server is asked, with its current lease (LN-15).
type Asker struct {
	Req    ipam.AddressRequest // with the name that it is taken for
	Client ipam.LANClient
	Had    *ipam.Lease // the lease that it has, lost or had last; nil: unknown
	Soon   bool        // nobody knows the requester yet, but the witness may in a moment
}

// AskerOf finds the client of a request by the usual rules, without asking anybody. The order is: a repetition, the
// sent name, the witness's guess, the container that just left, the MAC. An unknown client gets a new id, by which the
// server recognizes its lease later.
func (t *Target) AskerOf(req ipam.AddressRequest) (a Asker, err error) {
	a.Req = req
	if a.Had, err = t.Repeated(&req, func(*ipam.Lease) bool { return true }); err != nil {
		return a, err
	}
	if a.Had == nil {
		if err = t.hadFromDHCP(&a); err != nil {
			return a, err
		}
	}
	owner, err := t.lanOwner(&a.Req)
	if err != nil {
		return a, err
	}
	a.Client = ClientOf(owner, a.Req.MAC, t.Sub.DHCPID)
	if had := a.had(); had != nil && had.Client.ID != "" && t.Sub.DHCPID == ipam.LANByOwner {
		a.Client = had.Client // also if the name was corrected later
		if req.MAC != (ipam.MAC{}) {
			a.Client.MAC = req.MAC
		}
	}
	return a, nil
}

// had returns the DHCP lease of the requester, unless it was released to the server.
func (a *Asker) had() *ipam.DHCPLease {
	if a.Had == nil || a.Had.DHCP == nil || a.Had.DHCP.Returned {
		return nil
	}
	return a.Had.DHCP
}

// Lasting returns the lease that the asker may keep. It is nil if the lease has expired or another client has it.
func (a *Asker) Lasting(c *ledger.Change) *ipam.DHCPLease {
	if had := a.had(); had.Lasts(c.Now()) && had.Client.SameClient(a.Client) {
		return had
	}
	return nil
}

// hadFromDHCP finds the remembered lease of the requester. If the request has no name, it also sets the guessed one.
func (t *Target) hadFromDHCP(a *Asker) (err error) {
	req := &a.Req
	if guessable(req, t.At) {
		a.Had, err = t.lastFromDHCP(&ipam.AddressRequest{MAC: req.MAC})
		if err != nil || a.Had != nil {
			return err
		}
		switch hint := &req.Hint; {
		case req.TakeHint():
		case !hint.Live && req.MAC == (ipam.MAC{}):
			a.Had, err = t.restarted()
			if a.Had != nil {
				req.Name, req.Guessed = a.Had.Name, a.Had.Name != ""
			}
			return err
		default:
			// a witness's name does not help if the server identifies clients by MAC
			a.Soon = hint.Soon && t.Sub.DHCPID != ipam.LANByMAC
		}
	}
	a.Had, err = t.lastFromDHCP(req)
	return err
}

// lastFromDHCP is Remembered for a subnet that has no pools.
func (t *Target) lastFromDHCP(req *ipam.AddressRequest) (*ipam.Lease, error) {
	if n := t.Index().Network(t.Sub.Network); n != nil && n.Policy.Forget {
		return nil, nil
	}
	// a server knows a client by its name, so a renamed container is another client
	return LastHad(t.Sx, "", req.Name, req.MAC, t.read,
		func(m *ipam.Lease) bool { return m.DHCP == nil || !m.DHCP.Returned })
}

// lanOwner returns the owner for the server. It is the network's known owner, else the owner by its rules, the name or
// the MAC. Without name and MAC it is a new nameless owner.
func (t *Target) lanOwner(req *ipam.AddressRequest) (string, error) {
	n := t.Index().Network(t.Sub.Network)
	if req.Name == "" && req.MAC == (ipam.MAC{}) {
		return NamelessOwner(), nil
	}
	likeliest := req.MAC.String()
	if req.Name != "" {
		likeliest = ""
	}
	who := n.Meaning(req.Name)
	for owner := range who.Owners {
		if likeliest == "" {
			likeliest = owner
		}
		if known, err := t.knowsOwner(n, owner); err != nil || known {
			return owner, err
		}
	}
	if likeliest == who.Final {
		likeliest = ipam.RememberedName(req.Name)
	}
	return likeliest, nil
}

// knowsOwner reports whether the network has a record of an owner.
func (t *Target) knowsOwner(n *ipam.Network, owner string) (bool, error) {
	if n == nil {
		return false, nil
	}
	raw, err := t.Tx().Get(ledger.OwnerKey(n.ID, owner))
	return raw != nil, err
}

// TakeGiven writes the lease that a DHCP server gave. It does not take an address that the records give to another: a
// gateway, a recorded device, or another client. Then it returns the holder.
func (t *Target) TakeGiven(a *Asker, given ipam.Asked) (other *ipam.Lease, err error) {
	before, err := t.Lease(t.Sub.ID, given.Address)
	if err != nil {
		return nil, err
	}
	t.DHCP = given.DHCP
	if before.Held() {
		switch {
		case t.Repeats(a.Req, before):
			return nil, t.takeOver(a.Req, before)
		case before.DHCP != nil && before.DHCP.Client.SameClient(a.Client):
			return nil, HeldError(t.Change, t.Sub, before)
		}
		return before, t.tellConflict(before, a, given)
	}
	if had := a.Had; had != nil && had.Address != given.Address && had.DHCP != nil {
		if err := t.forgetDHCP(had); err != nil {
			return nil, err
		}
	}
	return nil, t.Take(a.Req, given.Address, before, ipam.Automatic)
}

// tellConflict records on a lease that the server gave its address to another client, too.
func (t *Target) tellConflict(held *ipam.Lease, a *Asker, given ipam.Asked) error {
	if held.DHCP == nil || held.DHCP.State == ipam.LANConflict {
		return nil
	}
	after := *held
	after.DHCP = held.DHCP.As(ipam.LANConflict, "the DHCP server "+given.DHCP.Server.String()+" gave it to "+
		a.Client.String()+", too")
	if _, err := t.Event(LANEvent(ipam.LeaseConflict, t.Sub, &after)); err != nil {
		return err
	}
	return t.SetLease(t.Sub.ID, held.Address, held, &after)
}

// forgetDHCP removes the DHCP lease from the memory of one address, because the server has given the client another
// address.
func (t *Target) forgetDHCP(had *ipam.Lease) error {
	now, err := t.Lease(t.Sub.ID, had.Address)
	if err != nil || !now.Remembered() || now.ID != had.ID {
		return err
	}
	return t.SetLease(t.Sub.ID, had.Address, now, now.Unheld())
}

// LANEvent is the event of a change to a DHCP lease.
func LANEvent(verb ipam.Verb, sub *ipam.Subnet, l *ipam.Lease) *ipam.Event {
	return &ipam.Event{Verb: verb, Space: sub.Space, Subnet: sub.CIDR, Address: l.Address, Lease: l.ID,
		Attachment: l.Attachment, MAC: l.MAC, Name: l.Name, Detail: l.DHCP.Why}
}

// LeaseOf reports whether a DHCP lease, held or remembered, is an owner's. It is if it was requested for the owner, or
// if the owner's name or MAC had it.
func LeaseOf(n *ipam.Network, l *ipam.Lease, owner string) bool {
	switch {
	case l.DHCP == nil:
		return false
	case l.DHCP.Client.ID != "" && l.DHCP.Client.Owner() == owner:
		return true
	case l.Name == "":
		return l.MAC != (ipam.MAC{}) && l.MAC.String() == owner
	}
	return n.CanBe(ipam.AddressRequest{Name: l.Name, MAC: l.MAC}, owner)
}

// ReturnLeases marks the unused DHCP leases of an owner that has ended for release to their servers. A lease in use
// stays and expires after its container is gone.
func ReturnLeases(c *ledger.Change, n *ipam.Network, owner string) error {
	nx := c.Index().NetworkIndex(n.ID)
	if nx == nil {
		return nil
	}
	for _, id := range nx.Subnets() {
		if !c.Index().Subnet(id).Record().FromDHCP() {
			continue
		}
		var kept []*ipam.Lease
		err := ledger.EachLease(c.Tx(), id, func(l *ipam.Lease) error {
			if l.Remembered() && !l.DHCP.IsReturned() && LeaseOf(n, l, owner) {
				kept = append(kept, l)
			}
			return nil
		})
		if err != nil {
			return err
		}
		for _, l := range kept {
			after := *l
			given := *l.DHCP
			given.Returned, after.DHCP = true, &given
			if err := c.SetLease(id, l.Address, l, &after); err != nil {
				return err
			}
		}
	}
	return nil
}
