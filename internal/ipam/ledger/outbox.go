package ledger

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"time"

	"berth/internal/ipam"
	"berth/store"
)

// Parting is a release that the shared store has not been told of: of an address, or of a pool with all that was taken
// through it.
type Parting struct {
	Pool    ipam.ID    `json:"pool"`
	Address netip.Addr `json:"address,omitzero"` // zero: the pool
	// only this one; 0: the daemon had not reached the store yet, and knew no id
	Lease uint64    `json:"lease,omitempty"`
	Since time.Time `json:"since"`
}

// Waiting is a parting in its place.
type Waiting struct {
	Seq uint64
	Parting
}

// DecodeWaiting reads a release that waits; a record that is none is an error wrapping ErrDamaged.
func DecodeWaiting(rec store.Record) (w Waiting, err error) {
	if len(rec.Key) != 9 {
		return w, fmt.Errorf("%w: the key %x numbers no release", ipam.ErrDamaged, rec.Key)
	}
	w.Seq = binary.BigEndian.Uint64(rec.Key[1:])
	return w, ipam.DecodeJSON("a release that waits", rec.Value, &w.Parting)
}

// IsOf tells whether the release is that of a lease of its attachment.
func (p *Parting) IsOf(l *ipam.Lease) bool {
	return !p.Address.IsValid() || p.Address == l.Address && (p.Lease == 0 || p.Lease == l.ID)
}
