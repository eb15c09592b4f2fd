package allocator

import (
	"fmt"
	"net/netip"

	"berth/internal/ipam"
	"berth/internal/ipam/ledger"
)

func excludedError(c *ledger.Change, addr netip.Addr, x *ipam.Exclusion) error {
	return ipam.RefuseAs(ipam.IPReserved, ipam.ErrInUse, "%s is excluded with %s; ask for another address",
		addr, x).OrAdvise(ipam.DoEndExclusion)
}

// ReservedError is the refusal of an address that is reserved for another owner.
func ReservedError(c *ledger.Change, addr netip.Addr, r *ipam.Reservation) error {
	return ipam.RefuseAs(ipam.AlreadyInUse, ipam.ErrInUse,
		"%s is held by %s (reserved since %s); ask for another address",
		addr, r.Owner, r.Since().Format("2006-01-02 15:04:05 MST")).OrAdvise(ipam.DoEndReservation)
}

// HeldError is the refusal of a leased address. It also asks the witness to check that the holder still has it.
func HeldError(c *ledger.Change, sub *ipam.Subnet, held *ipam.Lease) error {
	doLook(c)
	todo, advice := "remove that container, or ask for another address", []ipam.Advice{ipam.Advise(ipam.DoReleaseDead)}
	switch held.Kind {
	case ipam.Gateway, ipam.Auxiliary:
		todo, advice = "ask for another address", nil
	case ipam.Headroom:
		todo, advice = "ask for another address", []ipam.Advice{ipam.OrAdvise(ipam.DoLowerHeadroom)}
	case ipam.External:
		todo, advice = "ask for another address", []ipam.Advice{ipam.OrAdvise(ipam.DoReleaseTaken)}
	}
	whose := ""
	if r := held.Reservation; r != nil {
		whose = fmt.Sprintf(" (reserved for %s)", r.Owner)
	}
	return ipam.Help(ipam.RefuseAs(ipam.AlreadyInUse, ipam.ErrInUse, "%s is held by %s%s since %s; %s",
		held.Address, holder(c, sub.Space, held), whose, held.Since.Format("2006-01-02 15:04:05 MST"), todo), advice...)
}

// holder names the holder of an address, for an error. It uses the current name of a renamed container if a witness
// knows it.
func holder(c *ledger.Change, space string, held *ipam.Lease) string {
	now := c.Known().Sighting(space, held).Container
	if now == "" || ipam.RememberedName(now) == ipam.RememberedName(held.Name) {
		return held.Holder()
	}
	seen := *held
	seen.Name = now
	if held.Name == "" {
		return seen.Holder()
	}
	return fmt.Sprintf("%s, which was called %s,", seen.Holder(), held.Name)
}
