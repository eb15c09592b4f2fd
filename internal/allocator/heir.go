package allocator

import (
	"errors"
	"slices"

	"berth/internal/ipam"
	"berth/internal/ipam/ledger"
)

// A swarm manager that restarts requests all its pools and addresses again, and never releases the earlier ones. So the
// attachments from before the restart get an heir, the new attachment, and end with it. A replay differs from a second
// network on the same subnet in how it begins: it requests the gateway by address (recorded of Docker 20.10.24). A
// second network created with the same --gateway begins the same way. Therefore an attachment loses its heir when it
// makes another request. One that still holds something ends only if the heir has taken leases over from it.

// inheritAll makes this attachment the heir of the swarm's older ones, because it requests the subnet's existing
// gateway by address.
func (t *Target) inheritAll() error {
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
		if err := SetHeir(t.Change, id, t.At.ID, old.Bereft); err != nil {
			return err
		}
	}
	return nil
}

// SetHeir sets the heir of an attachment; the zero heir removes it. It does nothing if the attachment is gone.
func SetHeir(c *ledger.Change, id, heir ipam.ID, bereft bool) error {
	at, err := c.Attachment(id)
	if errors.Is(err, ipam.ErrNotFound) || err == nil && at.Heir == heir && at.Bereft == bereft {
		return nil
	}
	if err != nil {
		return err
	}
	marked := *at
	marked.Heir, marked.Bereft = heir, bereft
	return c.SetAttachment(id, &marked)
}

// Revive removes the heir of an attachment that a request uses.
func (t *Target) Revive() error {
	if t.At.Heir == (ipam.ID{}) {
		return nil
	}
	return SetHeir(t.Change, t.At.ID, ipam.ID{}, false)
}

// InheritedBy lists the attachments whose heir is the given one.
func InheritedBy(ix *ledger.Index, heir ipam.ID) (all []ipam.ID) {
	for id, a := range ix.Attachments() {
		if a.Heir == heir {
			all = append(all, id)
		}
	}
	return all
}

// Idle reports whether at has no live lease.
func Idle(c *ledger.Change, at *ipam.Attachment) bool {
	sx := c.Index().Subnet(at.Subnet)
	return sx == nil || sx.Live(at.ID) == 0
}
