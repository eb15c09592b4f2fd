package allocator

import (
	"errors"
	"slices"

	"berth/internal/ipam"
	"berth/internal/ipam/ledger"
)

// A swarm manager that restarts requests all its pools and addresses again, and never releases the earlier ones. So the
// attachments from before the restart get a successor, the new attachment, and end with it. A replay differs from a
// second network on the same subnet in how it begins: it requests the gateway by address (recorded of Docker 20.10.24).
// A second network created with the same --gateway begins the same way. Therefore an attachment loses its successor
// when it makes another request. One that still holds something ends only if the successor has taken leases over.

// succeed makes this attachment the successor of the swarm's older ones, because it requests the subnet's existing
// gateway by address.
func (t *Target) succeed() error {
	if !t.At.Swarm {
		return nil
	}
	older := t.Sub.Attachments[:max(slices.Index(t.Sub.Attachments, t.At.ID), 0)]
	for _, id := range older {
		old, err := t.Attachment(id)
		if err != nil {
			return err
		}
		if !old.Swarm {
			continue
		}
		if err := setSuccession(t.Change, id, ipam.Succession{Successor: t.At.ID, TookOver: old.TookOver}); err != nil {
			return err
		}
	}
	return nil
}

// setSuccession sets the succession of an attachment. It does nothing if the attachment is gone.
func setSuccession(c *ledger.Change, id ipam.ID, s ipam.Succession) error {
	at, err := c.Attachment(id)
	if errors.Is(err, ipam.ErrNotFound) || err == nil && at.Succession == s {
		return nil
	}
	if err != nil {
		return err
	}
	marked := *at
	marked.Succession = s
	return c.SetAttachment(id, &marked)
}

// Revive removes the successor of an attachment that a request uses.
func (t *Target) Revive() error {
	if t.At.Successor == (ipam.ID{}) {
		return nil
	}
	return setSuccession(t.Change, t.At.ID, ipam.Succession{})
}

// replay moves a live lease to this attachment if req is a manager's replay. Otherwise it refuses.
func (t *Target) replay(req ipam.AddressRequest, held *ipam.Lease) error {
	if again, err := t.replays(req, held); err != nil {
		return err
	} else if !again {
		return HeldError(t.Change, t.Sub, held)
	}
	moved := *held
	moved.Attachment, moved.Host = t.At.ID, t.Host() // another manager may lead now
	e := moved.Event(ipam.LeaseMoved, t.Sub, "replay of pool "+held.Attachment.Short())
	if _, err := t.Event(e); err != nil {
		return err
	}
	if err := t.SetLease(t.Sub.ID, held.Address, held, &moved); err != nil {
		return err
	}
	return setSuccession(t.Change, held.Attachment, ipam.Succession{Successor: t.At.ID, TookOver: true})
}

// replays reports whether req is a swarm manager's replay after its restart. The request comes through the new
// attachment, the successor. It asks by address and without a MAC for what the old attachment holds.
func (t *Target) replays(req ipam.AddressRequest, held *ipam.Lease) (bool, error) {
	if !t.At.Swarm || req.MAC != (ipam.MAC{}) || held.MAC != (ipam.MAC{}) || held.Attachment == (ipam.ID{}) ||
		req.Gateway != (held.Kind == ipam.Gateway) {
		return false, nil
	}
	old, err := t.Attachment(held.Attachment)
	if errors.Is(err, ipam.ErrNotFound) {
		return false, nil
	}
	return err == nil && old.Successor == t.At.ID, err
}
