package allocator

import (
	"crypto/sha256"
	"strconv"
	"strings"

	"berth/internal/ipam"
)

// ClientOf is as whom a DHCP server is asked for an owner: shop/web/1, the name of a container, or a MAC. The hardware
// address is that of the endpoint where it is known, and else one that is the owner's alone and always the same. By
// its MAC a client has no identifier.
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

// hostname is the owner in the letters of a host name; empty for one who has no name but a MAC or an id.
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

// NamelessOwner stands for the owner of one lease, of which nobody is known.
func NamelessOwner() string { return ipam.LANNameless + ipam.NewID().String() }

// NamelessOwnerOf is the same for a lease that is there already.
func NamelessOwnerOf(lease uint64) string { return ipam.LANNameless + strconv.FormatUint(lease, 10) }

// ownMAC is a unicast hardware address of the locally administered ones, worked out of a text.
func ownMAC(text string) (mac ipam.MAC) {
	sum := sha256.Sum256([]byte(text))
	copy(mac[:], sum[:])
	mac[0] = mac[0]&^1 | 2
	return mac
}
