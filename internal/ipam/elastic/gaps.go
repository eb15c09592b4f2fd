package elastic

import (
	"context"
	"net/netip"
	"time"

	"berth/internal/ipam"
	"berth/internal/ipam/ledger"
)

// SystemGaps are the containers of this host on networks with the mode auto that have neither a system address nor
// another, though they run, in order of their addresses.
func (s Room) SystemGaps(ctx context.Context) (gaps []ipam.SystemGap, err error) {
	s, away := s.home()
	if away != nil || s.ledger.NoElastic() {
		return nil, nil // whoever compares knows that the cluster's records are missing (Partial)
	}
	_, err = s.eachGuest(ctx, time.Time{}, func(c *ledger.Change, at guestPlace, one *standing) error {
		if one.has != nil || !one.noneFree && len(one.published) == 0 {
			return nil
		}
		gap, err := gapAt(c, at, one)
		gaps = append(gaps, gap)
		return err
	})
	return gaps, err
}

func gapAt(c *ledger.Change, at guestPlace, s *standing) (ipam.SystemGap, error) {
	sub := c.Index().Subnet(at.subnet).Record()
	l, err := c.Lease(at.subnet, at.addr)
	if err != nil {
		return ipam.SystemGap{}, err
	}
	return ipam.SystemGap{Space: sub.Space, Network: c.NetworkName(sub.Network), Guest: at.addr, Subnet: sub.CIDR,
		Lease: l.ID, Instance: l.Name, Published: s.published}, nil
}

// ElasticGuests are the elastic addresses, system addresses not among them, that lead to some guest addresses, on
// whichever network.
func (s Room) ElasticGuests(ctx context.Context, guests []netip.Addr) (all []ipam.ElasticGuest, err error) {
	s, away := s.home()
	if away != nil || s.ledger.NoElastic() {
		return nil, nil // whoever compares knows that the cluster's records are missing (Partial)
	}
	err = s.ledger.Look(ctx, func(c *ledger.Change) error {
		all = nil
		for _, addr := range guests {
			one, err := mappedTo(c, &guest{addr: addr}, netip.Addr{})
			if err != nil {
				return err
			}
			if one == nil || one.System {
				continue
			}
			if n := c.Index().Network(one.Association.Network); n != nil {
				all = append(all, ipam.ElasticGuest{Space: n.Space, Network: n.Name, Guest: addr, Elastic: one.Address})
			}
		}
		return nil
	})
	return all, err
}
