package allocator

import (
	"net/netip"
	"time"

	"berth/internal/ipam"
	"berth/internal/ipam/ledger"
	"berth/store"
)

// Returning is a DHCP lease of a removed subnet that has yet to be released to its server (LN-15).
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
		all = append(all, Returning{Host: l.Host, Parent: parent, Subnet: sub.CIDR, Address: l.Address, Client: d.Client,
			Server: d.Server, ServerID: d.ServerID, Expires: d.Expires,
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
	for one, err := range ledger.EachJSON[Returning](tx, returning(), "a lease that is to be given back") {
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
