package ipam

import (
	"context"
	"errors"
	"slices"
)

// A swarm manager that restarts asks for all its pools and addresses again, and never releases what it had before. So the
// attachments of its life before get an heir, the new one, and end with it. What tells a replay from a second network of the
// same subnet is how it begins: with the gateway, by address (recorded of Docker 20.10.24). A second network that was
// made with the same --gateway begins likewise; therefore an attachment that speaks again loses its heir, and one through
// which something is held ends only if the heir has taken leases over from it.

// inheritAll makes this attachment the heir of the older ones of the swarm, as it asks by address for the gateway that the
// subnet has already.
func (t *target) inheritAll() error {
	if !t.at.Swarm {
		return nil
	}
	older := t.sub.Attachments[:max(slices.Index(t.sub.Attachments, t.at.ID), 0)]
	for _, id := range older {
		old, err := t.attachment(id)
		if err != nil {
			return err
		}
		if !old.Swarm {
			continue
		}
		if err := t.setHeir(id, t.at.ID, old.Bereft); err != nil {
			return err
		}
	}
	return nil
}

// setHeir marks an attachment, or with the zero heir takes the mark off. One that is gone needs none.
func (c *change) setHeir(id, heir ID, bereft bool) error {
	at, err := c.attachment(id)
	if errors.Is(err, ErrNotFound) || err == nil && at.Heir == heir && at.Bereft == bereft {
		return nil
	}
	if err != nil {
		return err
	}
	marked := *at
	marked.Heir, marked.Bereft = heir, bereft
	return c.setAttachment(id, &marked)
}

// revive takes the mark off an attachment that somebody asks through: it is in use.
func (t *target) revive() error {
	if t.at.Heir == (ID{}) {
		return nil
	}
	return t.setHeir(t.at.ID, ID{}, false)
}

// releaseInherited ends those of the attachments whose heir has ended, and takes the mark off those that are in use.
func (s *Service) releaseInherited(ctx context.Context, heir ID, attachments []ID) error {
	for _, id := range attachments {
		err := s.end(ctx, id, func(c *change, at *Attachment) (bool, error) {
			if at.Heir != heir {
				return false, nil
			}
			if at.Bereft || c.idle(at) {
				return true, nil
			}
			return false, c.setHeir(id, ID{}, false)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// inheritedBy lists the attachments whose heir is the given one.
func (ix *index) inheritedBy(heir ID) (all []ID) {
	for id, a := range ix.attachments {
		if a.value.Heir == heir {
			all = append(all, id)
		}
	}
	return all
}

// idle tells whether no live lease was taken through at.
func (c *change) idle(at *Attachment) bool {
	sx := c.ix.subnets[at.Subnet]
	return sx == nil || sx.live[at.ID] == 0
}
