package ledger

import (
	"encoding/json"
	"slices"

	"berth/internal/ipam"
	"berth/store"
)

// mending is the record of a shared store that went back to an earlier state. While it is open, no host leases anything
// from the store. The record remains after the repair.
type mending struct {
	Open *ipam.Mending   `json:"open,omitempty"` // the refusal that hosts get; nil: the repair is complete
	Mark json.RawMessage `json:"mark"`           // written and read by the repair (cluster/mendmark.go)
}

// MendKey is the key of the record of a repair.
func MendKey() []byte { return append([]byte{SettingKeys}, "mend"...) }

// open is the refusal that hosts get during a repair of the store, or nil.
func (ix *Index) open() *ipam.Mending {
	if m := ix.mending.Value; m != nil {
		return m.Open
	}
	return nil
}

// Mending is the mark of the last repair as it was written, or nil if there was none.
func (ix *Index) Mending() []byte {
	if m := ix.mending.Value; m != nil {
		return m.Mark
	}
	return nil
}

// SetMending writes the mark of a repair and the refusal for hosts. A nil open ends the repair.
func (c *Change) SetMending(open *ipam.Mending, mark any) error {
	text, err := json.Marshal(mark)
	if err != nil {
		return err
	}
	m := &mending{open, text}
	raw, err := c.PutJSON(MendKey(), m)
	if err != nil {
		return err
	}
	before := c.index.mending
	c.index.mending = Cached[mending]{raw, m}
	c.undo = append(c.undo, func() { c.index.mending = before })
	return nil
}

// beingMended refuses a change that is not part of the repair, while the store is being repaired.
func (c *Change) beingMended() error {
	if open := c.index.open(); open != nil && !c.mends {
		return open
	}
	return nil
}

// BeingMended is the refusal while the store is being repaired, as far as this host knows, or nil. It is always nil for
// the repair itself.
func (s *Ledger) BeingMended() *ipam.Mending {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mends {
		return nil
	}
	return s.index.open()
}

func loadMending(ix *Index, tx store.Tx) error {
	raw, err := tx.Get(MendKey())
	if err != nil || raw == nil {
		return err
	}
	m := new(mending)
	if err := ipam.DecodeJSON("the mending", raw, m); err != nil {
		return err
	}
	ix.mending = Cached[mending]{slices.Clone(raw), m}
	return nil
}
