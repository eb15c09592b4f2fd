package ledger

import (
	"net/netip"
	"slices"
	"time"

	"berth/internal/ipam"
	"berth/store"
)

// MendMark is the record which says that a shared store, which was put back to an earlier state, is being mended: no
// host gives anything of it until all of them have done their part. It stays when that is over, so that a host which
// was named gone, and comes back, holds nobody up.
type MendMark struct {
	Began time.Time            `json:"began"`
	By    string               `json:"by"` // the host that was first
	Ended time.Time            `json:"ended,omitzero"`
	Hosts map[string]*MendHost `json:"hosts"` // all that any of them knows, by name
	Plan  MendPlan             `json:"plan"`
}

// MendHost is what became of a host's part.
type MendHost struct {
	ID    ipam.ID   `json:"id"`
	State mendState `json:"state,omitempty"`
	At    time.Time `json:"at,omitzero"`

	Runs []netip.Addr `json:"runs,omitempty"` // what runs there, by its engine's word; up to maxRuns
}

// mendState says how far a host is with its part.
type mendState string

const (
	MendWaited   mendState = ""
	MendDone     mendState = "mended"
	MendAccepted mendState = "accepted"
	MendGone     mendState = "gone" // a person has said so
)

// MendPlan says whose plan it is that was put back.
type MendPlan struct {
	Host     string `json:"host,omitempty"`
	Revision int64  `json:"revision,omitempty"` // that the host remembers
}

// MendKey is that of the mark.
func MendKey() []byte { return append([]byte{SettingKeys}, "mend"...) }

// Open tells whether hosts are waited for.
func (m *MendMark) Open() bool { return m != nil && m.Ended.IsZero() }

// Missing lists the hosts that are waited for.
func (m *MendMark) Missing() (names []string) {
	if m == nil {
		return nil
	}
	for name, h := range m.Hosts {
		if h.State == MendWaited {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

func (m *MendMark) refusal() *ipam.Mending {
	return &ipam.Mending{Since: m.Began, By: m.By, Missing: m.Missing()}
}

// beingMended refuses what is not part of the mending while that goes on.
func (c *Change) beingMended() error {
	if c.mends || !c.index.mending.Value.Open() {
		return nil
	}
	return c.index.mending.Value.refusal()
}

// BeingMended tells whether the store is being mended, as far as is known here; nil: it is not.
func (s *Ledger) BeingMended() *ipam.Mending {
	s.mu.Lock()
	defer s.mu.Unlock()
	if m := s.index.mending.Value; m.Open() && !s.mends {
		return m.refusal()
	}
	return nil
}

func loadMending(ix *Index, tx store.Tx) error {
	raw, err := tx.Get(MendKey())
	if err != nil {
		return err
	}
	if raw == nil {
		return nil
	}
	m := new(MendMark)
	if err := ipam.DecodeJSON("the mending", raw, m); err != nil {
		return err
	}
	ix.mending = Cached[MendMark]{slices.Clone(raw), m}
	return nil
}
