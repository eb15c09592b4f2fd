package allocator

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"

	"berth/internal/ipam"
	"berth/internal/ipam/ledger"
)

// offDocker refuses a subnet that overlaps one of Docker's own.
func offDocker(c *ledger.Change, docker []ipam.DockerSubnet, cidr netip.Prefix) error {
	for _, d := range docker {
		if !d.CIDR.Overlaps(cidr) {
			continue
		}
		if d.Unsure {
			held, err := holdsHere(c, d.CIDR)
			if err != nil {
				return err
			}
			if held { // the overlap check of Berth's own subnets decides
				continue
			}
		}
		return overlapError(&d, cidr)
	}
	return nil
}

func overlapError(d *ipam.DockerSubnet, cidr netip.Prefix) error {
	whose, todo := "Docker's network "+d.Network, "choose another subnet; `docker network ls` lists Docker's networks"
	switch {
	case d.Network == "":
		whose = "Docker's bridge " + d.Link
		todo = fmt.Sprintf("choose another subnet or, if `docker network ls` shows no network of that id, "+
			"remove what a crash left with `ip link delete %s`", d.Link)
	case d.Link != "":
		whose += fmt.Sprintf(" (bridge %s)", d.Link)
	}
	return ipam.Refuse(ipam.ErrOverlap, "the subnet %s overlaps %s, which %s has; %s", cidr, d.CIDR, whose, todo)
}

// holdsHere reports whether a Docker network of this host is on a subnet of exactly this CIDR, in any space.
func holdsHere(c *ledger.Change, cidr netip.Prefix) (bool, error) {
	for id, at := range c.Index().Attachments() {
		if at.CIDR != cidr || at.Host != c.Host() {
			continue
		}
		at, err := c.Attachment(id)
		if errors.Is(err, ipam.ErrNotFound) {
			continue
		}
		if err != nil || !at.Ended {
			return err == nil, err
		}
	}
	return false, nil
}

// LessHeld omits the uncertain subnets that lie on a subnet of this store.
func LessHeld(s *ledger.Ledger, docker []ipam.DockerSubnet) []ipam.DockerSubnet {
	return ledger.Ask(s, func(ix *ledger.Index) []ipam.DockerSubnet {
		return slices.DeleteFunc(slices.Clone(docker), func(d ipam.DockerSubnet) bool {
			if !d.Unsure {
				return false
			}
			for _, at := range ix.Attachments() {
				if at.CIDR == d.CIDR && at.Host == s.Host() && !at.Ended {
					return true
				}
			}
			return false
		})
	})
}
