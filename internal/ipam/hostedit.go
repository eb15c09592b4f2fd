package ipam

import (
	"context"
	"errors"
	"fmt"
	"slices"
)

// DrainHost has a host take no new address, or, with Undo, take them again.
type DrainHost struct {
	Name string `json:"name"`
	Undo bool   `json:"undo,omitempty"`
}

// RemoveHost takes a host out of the cluster with all it holds. One whose daemon is there is asked to go, and gives everything
// back by itself; of one that is not, a person must say that it is Off, because what it holds may be in use.
type RemoveHost struct {
	Name string `json:"name"`
	Off  bool   `json:"off,omitempty"`
}

// AdmitHost lets a host take part again that was removed.
type AdmitHost struct {
	Name string `json:"name"`
}

// hostOf is the record of a host of the cluster.
func (c *change) hostOf(name string) (*Host, error) {
	if c.member == nil {
		return nil, errAlone
	}
	known, ok := c.ix.hosts[name]
	if !ok {
		return nil, &refusal{ErrNotFound, fmt.Sprintf("there is no host %q in the cluster; `berth host ls` lists them", name)}
	}
	return known.value, nil
}

func (e *DrainHost) apply(c *change) (Result, error) {
	h, err := c.hostOf(e.Name)
	if err != nil {
		return Result{}, err
	}
	want := HostDraining
	if e.Undo {
		want = ""
	}
	switch {
	case h.State == want:
		return Result{}, nil
	case h.State == HostLeaving || h.State == HostRemoved:
		return Result{}, &refusal{ErrInUse, fmt.Sprintf("host %s is %s; a host that was removed is let in again with `berth host admit %s`", h.Name, h.State, h.Name)}
	}
	detail := ""
	if e.Undo {
		detail = "undone"
	}
	return Result{}, c.setHostState(h, want, HostDrained, detail)
}

// setHostState writes a host's record with another state, and the event of that.
func (c *change) setHostState(h *Host, state HostState, verb Verb, detail string) error {
	if _, err := c.event(&Event{Verb: verb, Name: h.Name, Detail: detail}); err != nil {
		return err
	}
	changed := *h
	changed.State = state
	return c.setHost(&changed)
}

func (e *RemoveHost) apply(c *change) (Result, error) {
	h, err := c.hostOf(e.Name)
	if err != nil {
		return Result{}, err
	}
	switch {
	case h.State == HostRemoved:
		return Result{}, &refusal{ErrInUse, fmt.Sprintf("host %s was removed already; `berth host admit %s` lets it in again", h.Name, h.Name)}
	case e.Off && c.isPresent(h.Name) && h.ID != c.member.Host:
		return Result{}, &refusal{ErrInUse, fmt.Sprintf("the daemon of host %s answers, or did some seconds ago, so that it is not off: ask it to go with `berth host rm %s`, without --off", h.Name, h.Name)}
	case e.Off:
		return Result{}, c.removeHost(h)
	case h.State == HostLeaving:
		return Result{}, nil
	case !c.ix.otherHost(h.Name):
		return Result{}, &refusal{ErrInUse, fmt.Sprintf("host %s is the only one in the cluster, and nobody could let it in again; remove its networks there instead, or move them to its own store with `berth store copy`", h.Name)}
	case !c.isPresent(h.Name):
		return Result{}, &refusal{ErrInUse, fmt.Sprintf("the daemon of host %s does not answer, so that it cannot give back what it holds: its containers may run on, and its headroom be in use; "+
			"start it, or, if that machine is off and stays so, say that with `berth host rm --off %s`", h.Name, h.Name)}
	}
	return Result{}, c.setHostState(h, HostLeaving, HostLeft, "")
}

// removeHost ends all holds of a host. Their leases are released in pages afterwards.
func (c *change) removeHost(h *Host) error {
	for _, id := range c.ix.heldBy(h.Name) {
		at, err := c.attachment(id)
		if errors.Is(err, ErrNotFound) {
			continue
		}
		if err != nil {
			return err
		}
		sub, _, err := c.subnetOf(at)
		if err != nil {
			return err
		}
		last, err := c.detach(at, sub)
		if err != nil {
			return err
		}
		if last {
			c.edit.swept = append(c.edit.swept, &Subnet{ID: sub.ID, Space: sub.Space, CIDR: sub.CIDR})
		}
	}
	c.edit.ended = true
	return c.setHostState(h, HostRemoved, HostGone, "")
}

// releasePools ends all holds of this host with all leases taken through them.
func (s *Service) releasePools(ctx context.Context) error {
	s.mu.Lock()
	held := s.ix.heldBy(s.host)
	s.mu.Unlock()
	for _, id := range held {
		if err := s.ReleasePool(ctx, id); err != nil {
			return err
		}
	}
	return s.finish(ctx)
}

// otherHost tells whether a host but this one takes part in the cluster, and goes on doing so.
func (ix *index) otherHost(name string) bool {
	for _, known := range ix.hosts {
		if h := known.value; h.Name != name && h.State != HostRemoved && h.State != HostLeaving {
			return true
		}
	}
	return false
}

// heldBy lists the holds of a host that have not ended, the oldest first.
func (ix *index) heldBy(host string) (all []ID) {
	for id, at := range ix.attachments {
		if at.value.Host == host && !at.value.Ended {
			all = append(all, id)
		}
	}
	slices.SortFunc(all, func(a, b ID) int { return ix.attachments[a].value.Created.Compare(ix.attachments[b].value.Created) })
	return all
}

func (e *AdmitHost) apply(c *change) (Result, error) {
	h, err := c.hostOf(e.Name)
	if err != nil {
		return Result{}, err
	}
	if h.State != HostRemoved {
		return Result{}, &refusal{ErrInUse, fmt.Sprintf("host %s is in the cluster already", h.Name)}
	}
	slot, err := c.freeSlot()
	if err != nil {
		return Result{}, err
	}
	again := *h
	again.Slot = slot
	return Result{}, c.setHostState(&again, "", HostAdmitted, "")
}

// isPresent tells whether the daemon of a host is there at this moment.
func (c *change) isPresent(host string) bool {
	_, ok := c.present()[host]
	return ok
}
