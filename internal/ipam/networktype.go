package ipam

import (
	"net/netip"
)

// NetworkType says who chooses the addresses of a network (BO-8).
type NetworkType string

// The types of networks.
const (
	Manual  NetworkType = ""        // static and automatic addresses, chosen here; written "manual"
	Dynamic NetworkType = "dynamic" // somebody else chooses; here they are recorded
	VIP     NetworkType = "vip"     // static addresses only
)

func (t NetworkType) String() string {
	if t == Manual {
		return "manual"
	}
	return string(t)
}

// ParseNetworkType reads manual, dynamic or vip; empty is manual.
func ParseNetworkType(s string) (NetworkType, error) {
	switch t := NetworkType(s); t {
	case Manual, Dynamic, VIP:
		return t, nil
	case "manual":
		return Manual, nil
	}
	return Manual, Refuse(ErrInvalid, "%q is no type of network: write manual, dynamic or vip", s)
}

// CheckAutomatic refuses to choose an address in a network of which Berth chooses none.
func (n *Network) CheckAutomatic() error {
	switch {
	case n == nil || n.Type == Manual:
		return nil
	case n.Type == VIP:
		return RefuseAs(WrongType, ErrInvalid, "network %s is of the type vip, of which every address is given by a "+
			"person; ask for one by address", n.Name)
	default:
		return RefuseAs(IPMissing, ErrInvalid, "network %s is of the type dynamic: somebody else chooses its "+
			"addresses; ask for the one that was chosen, by address", n.Name)
	}
}

// CheckAutomaticAt refuses an automatic reservation of a given address where the network's type, or a static band, has
// static ones only (BO-10).
func (n *Network) CheckAutomaticAt(owner string, sub *Subnet, addr netip.Addr) error {
	switch band := sub.StaticBand(addr); {
	case n.Type == VIP:
		return RefuseAs(WrongType, ErrInvalid, "network %s is of the type vip, which has static reservations only; "+
			"reserve %s as one", n.Name, addr)
	case !band.IsZero():
		return RefuseAs(WrongType, ErrInvalid, "%s cannot be an automatic address of %s: it lies in the static band "+
			"%s of network %s; reserve it as a static one, or wish for none",
			addr, owner, band, n.Name)
	}
	return nil
}

// CheckStatic refuses to reserve a given address in a network of which somebody else chooses the addresses.
func (n *Network) CheckStatic() error {
	if n.Type != Dynamic {
		return nil
	}
	return Help(RefuseAs(WrongType, ErrInvalid, "network %s is of the type dynamic: somebody else chooses its "+
		"addresses, so that none can be reserved by address; reserve without one", n.Name), Advise(DoRecordAddress))
}
