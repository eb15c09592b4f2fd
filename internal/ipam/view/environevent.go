package view

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"berth/internal/ipam"
	"berth/internal/ipam/ledger"
	"berth/store"
)

// EventEnvironment lists the variables for a hook after a LeaseTaken or LeaseReleased event: the event, as BERTH_...,
// and the variables of Environment for the owner's current addresses in that network. They always include the event's
// own address, also after its release. If the network was removed since, only the event's variables are left.
func (s Views) EventEnvironment(ctx context.Context, e *ipam.Event) (env []string, err error) {
	l, err := s.withEvent(ctx, e)
	if err != nil {
		return nil, err
	}
	kind, slot, placed, err := takenAs(ctx, l, e)
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
	v.set("BERTH_OWNER", owner(e))
	v.set("BERTH_MAC", e.MAC.String())
	err = l.Look(ctx, func(c *ledger.Change) error {
		sub := subnetWith(c.Index(), e.Space, e.Address)
		if sub == nil {
			return nil
		}
		n := c.Index().Network(sub.Network)
		if n == nil {
			return nil
		}
		var all []ownAddress
		if owner := owner(e); owner != "" {
			var err error
			if all, err = addressesOf(c, n.ID, owner); err != nil {
				return err
			}
		}
		if !slices.ContainsFunc(all, func(own ownAddress) bool { return own.addr == e.Address }) {
			all = append(all, ownAddress{sub: sub, addr: e.Address, mac: e.MAC, host: e.Host, slot: slot,
				placed: placed})
		}
		v.set("BERTH_NETWORK", n.Name)
		v = append(v, environment(c, n, owner(e), arrange(all))...)
		return nil
	})
	return v, err
}

// owner returns whose address the event is about: a name, otherwise a MAC, otherwise nothing.
func owner(e *ipam.Event) string {
	if e.Name != "" {
		return e.Name
	}
	return e.MAC.String()
}

// takenAs returns how the event's address was taken, from the event of that lease. It returns nothing if that event is
// not kept any more. placed reports whether the address has a slot.
func takenAs(ctx context.Context, s *ledger.Ledger,
	e *ipam.Event) (kind string, slot ipam.Slot, placed bool, err error) {
	detail := e.Detail
	if e.Verb != ipam.LeaseTaken {
		detail = ""
		taken, err := findEvent(ctx, s, e.Lease)
		if err != nil {
			return "", slot, false, err
		}
		if taken != nil {
			detail = taken.Detail
		}
	}
	kind, where, _ := strings.Cut(detail, " ")
	if kind == ipam.External.String() {
		if n, _ := fmt.Sscanf(where, "%d:ip%d", &slot.Interface, &slot.Number); n == 2 {
			placed = true
		}
	}
	return kind, slot, placed, err
}

// subnetWith returns the subnet of a space that contains an address, or nil.
func subnetWith(ix *ledger.Index, space string, addr netip.Addr) *ipam.Subnet {
	if !addr.IsValid() {
		return nil
	}
	if sx := ix.Overlapping(space, netip.PrefixFrom(addr, addr.BitLen())); sx != nil {
		return sx.Record()
	}
	return nil
}

// withEvent returns the store that has an event: the host's own, unless only the cluster's can have it.
func (s Views) withEvent(ctx context.Context, e *ipam.Event) (*ledger.Ledger, error) {
	theirs, is := s.homes.Reached()
	if e.Space == ipam.LocalSpace || !is {
		return s.homes.Own, nil
	}
	found, err := findEvent(ctx, s.homes.Own, e.ID)
	if found != nil || err != nil {
		return s.homes.Own, err
	}
	return theirs, nil
}

// findEvent reads an event. It returns nil if there is none with the id.
func findEvent(ctx context.Context, s *ledger.Ledger, id uint64) (*ipam.Event, error) {
	return ledger.View(ctx, s, func(tx store.Tx) (*ipam.Event, error) { return ledger.FindEvent(tx, id) })
}
