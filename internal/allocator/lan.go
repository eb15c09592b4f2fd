package allocator

import (
	"crypto/sha256"
	"net/netip"
	"strings"
	"time"

	"berth/internal/ipam"
	"berth/internal/ipam/ledger"
	"berth/store"
)

// asker is the client for whom a DHCP server is asked, with its current lease.
type asker struct {
	Req    ipam.AddressRequest // with the name that it is taken for
	Client ipam.LANClient
	Had    *ipam.Lease // the lease that it has, lost or had last; nil: unknown
	Soon   bool        // nobody knows the requester yet, but the witness may in a moment
}

// askerOf finds the client of a request by the usual rules, without asking anybody. The order is: a repetition, the
// sent name, the witness's guess, the container that just left, the MAC. An unknown client gets a new id, by which the
// server recognizes its lease later.
func (t *Target) askerOf(req ipam.AddressRequest) (a asker, err error) {
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
func (a *asker) had() *ipam.DHCPLease {
	if a.Had == nil || a.Had.DHCP == nil || a.Had.DHCP.Returned {
		return nil
	}
	return a.Had.DHCP
}

// lasting returns the lease that the asker may keep. It is nil if the lease has expired or another client has it.
func (a *asker) lasting(c *ledger.Change) *ipam.DHCPLease {
	if had := a.had(); had.Lasts(c.Now()) && had.Client.SameClient(a.Client) {
		return had
	}
	return nil
}

// hadFromDHCP finds the remembered lease of the requester. If the request has no name, it also sets the guessed one.
func (t *Target) hadFromDHCP(a *asker) (err error) {
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
	if t.Index().Policy(t.Sub).Forget {
		return nil, nil
	}
	// a server knows a client by its name, so a renamed container is another client
	return LastHad(t.Sx, "", req.Name, req.MAC, t.Record, IsMemory,
		func(m *ipam.Lease) bool { return m.DHCP == nil || !m.DHCP.Returned })
}

// lanOwner returns the owner for the server. It is the network's known owner, else the owner by its rules, the name or
// the MAC. Without name and MAC it is a new nameless owner.
func (t *Target) lanOwner(req *ipam.AddressRequest) (string, error) {
	n := t.Index().Network(t.Sub.Network)
	if req.Name == "" && req.MAC == (ipam.MAC{}) {
		return ipam.LANNameless + ipam.NewID().String(), nil
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
		if n != nil {
			known, err := t.Tx().Get(ledger.OwnerKey(n.ID, owner))
			if err != nil || known != nil {
				return owner, err
			}
		}
	}
	if likeliest == who.Final {
		likeliest = ipam.RememberedName(req.Name)
	}
	return likeliest, nil
}

// takeGiven writes the lease that a DHCP server gave. It does not take an address that the records give to another: a
// gateway, a recorded device, or another client. Then it returns the holder.
func (t *Target) takeGiven(a *asker, given ipam.Asked) (other *ipam.Lease, err error) {
	before, err := t.Record(given.Address)
	if err != nil {
		return nil, err
	}
	t.DHCP = given.DHCP
	if before.Held() {
		switch {
		case t.repeats(a.Req, before):
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
	return nil, t.take(a.Req, given.Address, before, ipam.Automatic)
}

// tellConflict records on a lease that the server gave its address to another client, too.
func (t *Target) tellConflict(held *ipam.Lease, a *asker, given ipam.Asked) error {
	if held.DHCP == nil || held.DHCP.State == ipam.LANConflict {
		return nil
	}
	after := *held
	after.DHCP = held.DHCP.As(ipam.LANConflict, "the DHCP server "+given.DHCP.Server.String()+" gave it to "+
		a.Client.String()+", too")
	if _, err := t.Event(after.Event(ipam.LeaseConflict, t.Sub, after.DHCP.Why)); err != nil {
		return err
	}
	return t.SetLease(t.Sub.ID, held.Address, held, &after)
}

// forgetDHCP removes the DHCP lease from the memory of one address, because the server has given the client another
// address.
func (t *Target) forgetDHCP(had *ipam.Lease) error {
	now, err := t.Record(had.Address)
	if err != nil || !now.Remembered() || now.ID != had.ID {
		return err
	}
	return t.SetLease(t.Sub.ID, had.Address, now, now.Unheld())
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

// returnLeases marks the unused DHCP leases of an owner that has ended for release to their servers. A lease in use
// stays and expires after its container is gone.
func returnLeases(c *ledger.Change, n *ipam.Network, owner string) error {
	for _, id := range c.Index().NetworkIndex(n.ID).Subnets() {
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

// ClientOf returns the DHCP client of an owner. An owner is a name such as shop/web/1, a container's name, or a MAC.
// The client's hardware address is the endpoint's if known, or else a constant one made for the owner. A client known
// by its MAC has no identifier.
func ClientOf(owner string, mac ipam.MAC, by ipam.LANID) ipam.LANClient {
	c := ipam.LANClient{Hostname: hostname(owner), MAC: mac}
	if by == ipam.LANByMAC {
		return c
	}
	c.ID = ipam.LANClientPrefix + owner
	if mac == (ipam.MAC{}) {
		c.MAC = ownMAC(c.ID)
	}
	return c
}

// maxLabel bounds a host name (RFC 1123, 2.1: one label of RFC 1035).
const maxLabel = 63

// hostname returns the owner in the letters of a host name. It is empty for an owner that is a MAC or has no name.
func hostname(owner string) string {
	if _, err := ipam.ParseMAC(owner); err == nil || strings.HasPrefix(owner, ipam.LANNameless) {
		return ""
	}
	name := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9':
			return r
		}
		return '-'
	}, owner)
	if len(name) > maxLabel {
		name = name[:maxLabel]
	}
	return strings.Trim(name, "-")
}

// ownMAC derives a locally administered unicast hardware address from a text.
func ownMAC(text string) (mac ipam.MAC) {
	sum := sha256.Sum256([]byte(text))
	copy(mac[:], sum[:])
	mac[0] = mac[0]&^1 | 2
	return mac
}

// Returning is a DHCP lease of a removed subnet that has yet to be released to its server.
type Returning struct {
	Host     string         `json:"host"`   // the host that had it and releases it
	Parent   string         `json:"parent"` // the interface for the release
	Subnet   netip.Prefix   `json:"subnet"`
	Address  netip.Addr     `json:"address"`
	Client   ipam.LANClient `json:"client"`
	Server   netip.Addr     `json:"server"`
	ServerID string         `json:"server_id,omitempty"`
	Expires  time.Time      `json:"expires"`

	Key []byte `json:"-"` // the key of its record
}

// returning returns the range of the keys of all Returning records.
func returning() store.Range {
	return store.Prefix(append([]byte{ledger.SettingKeys}, "returning "...))
}

// ReturnGone records the DHCP leases of a subnet that is being removed, so that they are released to their servers.
func ReturnGone(c *ledger.Change, sub *ipam.Subnet) error {
	if !sub.FromDHCP() {
		return nil
	}
	var all []Returning
	err := ledger.EachLease(c.Tx(), sub.ID, func(l *ipam.Lease) error {
		parent, d := sub.ParentOn(l.Host), l.DHCP
		if d == nil || d.State == ipam.LANLost || d.State == ipam.LANConflict || !d.Expires.After(c.Now()) ||
			!d.Server.IsValid() || parent == "" {
			return nil
		}
		all = append(all, Returning{Host: l.Host, Parent: parent, Subnet: sub.CIDR, Address: l.Address,
			Client: d.Client, Server: d.Server, ServerID: d.ServerID, Expires: d.Expires,
			Key: ledger.LeaseKey(returning().From, sub.ID, l.Address)})
		return nil
	})
	for i := range all {
		if err == nil {
			_, err = c.PutJSON(all[i].Key, &all[i])
		}
	}
	return err
}

// ReadReturning reads all leases that have yet to be released to their servers.
func ReadReturning(tx store.Tx) (all []Returning, err error) {
	for one, err := range ledger.EachJSON[Returning](tx, returning(), "a lease to return") {
		if err != nil {
			return nil, err
		}
		one.Value.Key = one.Key
		all = append(all, *one.Value)
	}
	return all, nil
}

// InUse reports whether the same client has the address again, in a newer subnet.
func (r *Returning) InUse(c *ledger.Change) (bool, error) {
	for _, sx := range c.Index().Subnets() {
		sub := sx.Record()
		if !sub.FromDHCP() || !sub.CIDR.Contains(r.Address) {
			continue
		}
		l, err := c.Lease(sub.ID, r.Address)
		if err != nil {
			return false, err
		}
		if l != nil && !l.DHCP.IsReturned() && l.DHCP.Client.SameClient(r.Client) {
			return true, nil
		}
	}
	return false, nil
}

// Forget deletes the record, because the lease was released, is in use again, or has expired.
func (r *Returning) Forget(c *ledger.Change) error {
	return c.Tx().Delete(r.Key)
}
