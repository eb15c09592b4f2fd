package ipam

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"berth/store"
)

// EventEnvironment lists the variables for a hook that follows a LeaseTaken or LeaseReleased event: what happened, as
// BERTH_..., and what Environment says of the owner's addresses in that network as they are now. The event's own address is
// always among these, after its release too. A network that is gone since leaves only what happened.
func (s *Service) EventEnvironment(ctx context.Context, e *Event) (env []string, err error) {
	kind, slot, placed, err := s.takenAs(ctx, e)
	if err != nil {
		return nil, err
	}
	v := variables{}
	v.set("BERTH_EVENT", e.Verb.String())
	v.set("BERTH_EVENT_ID", strconv.FormatUint(e.ID, 10))
	v.set("BERTH_TIME", e.Time.Format(time.RFC3339Nano))
	v.set("BERTH_ACTOR", e.Actor)
	v.set("BERTH_HOST", e.Host)
	v.set("BERTH_SPACE", e.Space)
	v.set("BERTH_SUBNET", e.Subnet.String())
	v.set("BERTH_ADDRESS", e.Address.String())
	v.set("BERTH_KIND", kind)
	v.set("BERTH_OWNER", e.owner())
	v.set("BERTH_MAC", e.MAC.String())
	err = s.look(ctx, func(c *change) error {
		sub := c.ix.subnetWith(e.Space, e.Address)
		if sub == nil {
			return nil
		}
		n := c.ix.network(sub.Network)
		if n == nil {
			return nil
		}
		var all []ownAddress
		if owner := e.owner(); owner != "" {
			var err error
			if all, err = c.addressesOf(n.ID, owner); err != nil {
				return err
			}
		}
		if !slices.ContainsFunc(all, func(own ownAddress) bool { return own.addr == e.Address }) {
			all = append(all, ownAddress{sub: sub, addr: e.Address, mac: e.MAC, host: e.Host, slot: slot, placed: placed})
		}
		v.set("BERTH_NETWORK", n.Name)
		v = append(v, c.environment(n, e.owner(), arrange(all))...)
		return nil
	})
	return v, err
}

// owner is who the event's address is or was of: a name, else a MAC, else nobody who is known.
func (e *Event) owner() string {
	if e.Name != "" {
		return e.Name
	}
	return e.MAC.String()
}

// takenAs tells how the event's address was taken, which the event of the taking says; nothing where that one is not kept any
// more. placed tells whether it has a slot.
func (s *Service) takenAs(ctx context.Context, e *Event) (kind string, slot Slot, placed bool, err error) {
	detail := e.Detail
	if e.Verb != LeaseTaken {
		detail = ""
		err = s.store.View(ctx, func(tx store.Tx) error {
			raw, err := tx.Get(eventKey(nil, e.Lease))
			if err != nil || raw == nil {
				return err
			}
			taken, err := decodeEvent(e.Lease, raw)
			if err == nil {
				detail = taken.Detail
			}
			return err
		})
	}
	kind, where, _ := strings.Cut(detail, " ")
	if kind == External.String() {
		if n, _ := fmt.Sscanf(where, "%d:ip%d", &slot.Interface, &slot.Number); n == 2 {
			placed = true
		}
	}
	return kind, slot, placed, err
}

// subnetWith is the subnet of a space that holds an address; nil where there is none.
func (ix *index) subnetWith(space string, addr netip.Addr) *Subnet {
	sp := ix.spaces[space]
	if sp == nil || !addr.IsValid() {
		return nil
	}
	cidr, ok := sp.blocks.Overlap(netip.PrefixFrom(addr, addr.BitLen()))
	if !ok {
		return nil
	}
	if sx := ix.subnets[sp.ids[cidr]]; sx != nil {
		return sx.record.value
	}
	return nil
}
