package ledger

import (
	"encoding/json"
	"slices"

	"berth/internal/ipam"
	"berth/store"
)

// mending is the record of a shared store which was put back to an earlier state: as long as it is open no host gives
// anything of it. It stays when that is over.
type mending struct {
	Open *ipam.Mending   `json:"open,omitempty"` // how hosts are refused; nil: it is over
	Mark json.RawMessage `json:"mark"`           // what those who mend it know (cluster/mendmark.go)
}

// MendKey is that of the record.
func MendKey() []byte { return append([]byte{SettingKeys}, "mend"...) }

// open is how hosts are refused while the store is being mended; nil: it is not.
func (ix *Index) open() *ipam.Mending {
	if m := ix.mending.Value; m != nil {
		return m.Open
	}
	return nil
}

// Mending is what those who mend the store know, as they wrote it; nil where it was never mended.
func (ix *Index) Mending() []byte {
	if m := ix.mending.Value; m != nil {
		return m.Mark
	}
	return nil
}

// SetMending writes what those who mend the store know, and how hosts are refused until that is over; open nil: it is.
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

// beingMended refuses what is not part of the mending while that goes on.
func (c *Change) beingMended() error {
	if open := c.index.open(); open != nil && !c.mends {
		return open
	}
	return nil
}

// BeingMended tells whether the store is being mended, as far as is known here; nil: it is not.
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
	if err != nil {
		return err
	}
	if raw == nil {
		return nil
	}
	m := new(mending)
	if err := ipam.DecodeJSON("the mending", raw, m); err != nil {
		return err
	}
	ix.mending = Cached[mending]{slices.Clone(raw), m}
	return nil
}
