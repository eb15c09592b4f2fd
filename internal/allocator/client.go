package allocator

import (
	"crypto/sha256"
	"strconv"
	"strings"

	"berth/internal/ipam"
)

// ClientOf returns the DHCP client of an owner. An owner is a name such as shop/web/1, a container's name, or a MAC.
// The client's hardware address is the endpoint's if known, or else a constant one made for the owner. A client known
// by its MAC has no identifier.
func ClientOf(owner string, mac ipam.MAC, by ipam.LANID) ipam.LANClient {
	c := ipam.LANClient{Hostname: hostname(owner), MAC: mac}
	if by == ipam.LANByMAC {
		return c
	}
	c.ID = ipam.LANClientPrefix + owner
	if mac == (ipam.MAC{}) {
		c.MAC = ownMAC(c.ID)
	}
	return c
}

// maxLabel bounds a host name (RFC 1123, 2.1: one label of RFC 1035).
const maxLabel = 63

// hostname returns the owner in the letters of a host name. It is empty for an owner that is a MAC or has no name.
func hostname(owner string) string {
	if _, err := ipam.ParseMAC(owner); err == nil || strings.HasPrefix(owner, ipam.LANNameless) {
		return ""
	}
	name := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9':
			return r
		}
		return '-'
	}, owner)
	if len(name) > maxLabel {
		name = name[:maxLabel]
	}
	return strings.Trim(name, "-")
}

// NamelessOwner makes an owner for a lease whose owner is unknown.
func NamelessOwner() string { return ipam.LANNameless + ipam.NewID().String() }

// NamelessOwnerOf does the same for an existing lease.
func NamelessOwnerOf(lease uint64) string { return ipam.LANNameless + strconv.FormatUint(lease, 10) }

// ownMAC derives a locally administered unicast hardware address from a text.
func ownMAC(text string) (mac ipam.MAC) {
	sum := sha256.Sum256([]byte(text))
	copy(mac[:], sum[:])
	mac[0] = mac[0]&^1 | 2
	return mac
}
