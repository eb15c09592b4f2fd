package ledger

import (
	"time"

	"berth/internal/ipam"
	"berth/store"
)

// DynamicOwner is the record of an owner in a dynamic network, where another system chooses the addresses. It makes the
// owner known there under any address (BO-8).
type DynamicOwner struct {
	ID uint64 `json:"id"` // of the event that created it
	ipam.Terms
}

// KnownOwner is an owner of a dynamic network.
type KnownOwner struct {
	Owner string
	DynamicOwner
}

// ReadOwners reads the owners in a dynamic network, by name.
func ReadOwners(tx store.Tx, network ipam.ID) ([]KnownOwner, error) {
	prefix := OwnerKey(network, "")
	var all []KnownOwner
	for one, err := range EachJSON[DynamicOwner](tx, store.Prefix(prefix), "an owner") {
		if err != nil {
			return nil, err
		}
		all = append(all, KnownOwner{string(one.Key[len(prefix):]), *one.Value})
	}
	return all, nil
}

// loadOwners notes the ends of owners in dynamic networks.
func loadOwners(ix *Index, tx store.Tx) error {
	for id, nx := range ix.networks {
		if nx.record.Value == nil || nx.record.Value.Type != ipam.Dynamic {
			continue
		}
		known, err := ReadOwners(tx, id)
		if err != nil {
			return err
		}
		for _, one := range known {
			ix.ends.Add(Ending{Network: id, Owner: one.Owner}, one.Until)
		}
	}
	return nil
}

// SetOwner writes an owner of a dynamic network, or removes it if record is nil.
func (c *Change) SetOwner(network ipam.ID, owner string, record *DynamicOwner) error {
	if _, err := setJSON(c, OwnerKey(network, owner), record); err != nil {
		return err
	}
	var until time.Time
	if record != nil {
		until = record.Until
	}
	c.setEnding(network, owner, until)
	return nil
}
