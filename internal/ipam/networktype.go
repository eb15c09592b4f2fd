package ipam

import (
	"net/netip"
)

// NetworkType is who chooses the addresses of a network.
type NetworkType string

// The types of networks.
const (
	Manual  NetworkType = ""        // static addresses, and automatic ones chosen by Berth; written "manual"
	Dynamic NetworkType = "dynamic" // another system chooses; Berth records
	VIP     NetworkType = "vip"     // static addresses only
)

func (t NetworkType) String() string {
	if t == Manual {
		return "manual"
	}
	return string(t)
}

// ParseNetworkType reads manual, dynamic or vip. Empty means manual.
func ParseNetworkType(s string) (NetworkType, error) {
	switch t := NetworkType(s); t {
	case Manual, Dynamic, VIP:
		return t, nil
	case "manual":
		return Manual, nil
	}
	return Manual, Refuse(ErrInvalid, "%q is not a network type: write manual, dynamic or vip", s)
}

// CheckAutomatic refuses an automatic address if Berth chooses none in the network. A nil network allows it.
func (n *Network) CheckAutomatic() error {
	switch {
	case n == nil || n.Type == Manual:
		return nil
	case n.Type == VIP:
		return RefuseAs(WrongType, ErrInvalid, "network %s has the type vip, where people choose every address; "+
			"request one by address", n.Name)
	default:
		return RefuseAs(IPMissing, ErrInvalid, "network %s has the type dynamic: another system chooses its "+
			"addresses; request the chosen one by address", n.Name)
	}
}

// CheckAutomaticAt refuses an automatic reservation of a given address if the network's type or a static band allows
// only static ones.
func (n *Network) CheckAutomaticAt(owner string, sub *Subnet, addr netip.Addr) error {
	switch band := sub.StaticBand(addr); {
	case n.Type == VIP:
		return RefuseAs(WrongType, ErrInvalid, "network %s has the type vip, which allows only static reservations; "+
			"make the reservation of %s static", n.Name, addr)
	case !band.IsZero():
		return RefuseAs(WrongType, ErrInvalid, "%s cannot be an automatic address of %s: it lies in the static band "+
			"%s of network %s; reserve it as a static address, or leave it out", addr, owner, band, n.Name)
	}
	return nil
}

// CheckStatic refuses to reserve a given address if another system chooses the network's addresses.
func (n *Network) CheckStatic() error {
	if n.Type != Dynamic {
		return nil
	}
	return RefuseAs(WrongType, ErrInvalid, "network %s has the type dynamic: another system chooses its addresses; "+
		"reserve without an address", n.Name).Advise(DoRecordAddress)
}
