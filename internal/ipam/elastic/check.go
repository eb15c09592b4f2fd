package elastic

import (
	"context"
	"fmt"
	"net/netip"
	"time"

	"berth/internal/ipam"
	"berth/internal/ipam/ledger"
)

// mapsWithin is how long an edge may take to map an address before that is a finding.
const mapsWithin = 5 * time.Second

// examination goes through the associations and finds what is wrong on this host.
type examination struct {
	ipam.ElasticCheck
	wanted *wanted
}

// CheckElastic finds what is wrong with elastic addresses on this host, according to the records and the witness.
func (s Addresses) CheckElastic(ctx context.Context) (ipam.ElasticCheck, error) {
	s, err := s.home()
	if err != nil {
		return ipam.ElasticCheck{}, err
	}
	e := examination{ElasticCheck: ipam.ElasticCheck{Host: s.ledger.Host(), Findings: []ipam.Finding{}}}
	if s.ledger.NoElastic() {
		return e.ElasticCheck, nil
	}
	if e.wanted, err = workOut(ctx, s.ledger); err != nil {
		return e.ElasticCheck, err
	}
	e.Ranges = e.wanted.ranges
	err = ledger.LookEach(ctx, s.ledger, ledger.Ask(s.ledger, associated), e.look)
	return e.ElasticCheck, err
}

func (e *examination) look(c *ledger.Change, before *ipam.Elastic) error {
	one := c.Index().Elastic(before.Address)
	if one == nil || one.Association == nil {
		return nil // it has ended meanwhile
	}
	l, there, err := leadOf(c, e.wanted.accounts, one.Address)
	switch {
	case err != nil:
		return err
	case !there:
		return e.leadsNowhere(c, one)
	case !l.here:
		return e.leadsAway(c, one)
	}
	e.Wanted++
	if first := e.wanted.first[l.Guest].Elastic; first.IsValid() && first != one.Address {
		e.add(c, one, ipam.UnmappedElastic, c.Began(one.Association.ID), "%s leads to %s, but "+
			"%s is already mapped to it: disassociate one of them (berth elastic "+
			"disassociate)", one.Address, l.Guest, first)
		return nil
	}
	return e.isMapped(c, one, &l)
}

// isMapped finds an address that this host's edge should map and does not.
func (e *examination) isMapped(c *ledger.Change, one *ipam.Elastic, l *lead) error {
	at := c.Index().Applied(ledger.AppliedAt{Host: c.Host(), Address: one.Address})
	said := at != nil && at.Association == one.Association.ID && at.Guest == l.Guest && !at.Unsaid
	if said && at.Error == "" {
		return nil
	}
	since, err := wantedSince(c, one, l)
	if err != nil {
		return err
	}
	e.Unmapped++
	switch others := elsewhere(c, one.Address); {
	case said:
		e.add(c, one, ipam.UnmappedElastic, at.Since, "the edge of host %s cannot map %s to %s (%s): %s",
			c.Host(), one.Address, one.Association.Instance, l.Guest, at.Error)
	case c.Now().Sub(since) < mapsWithin:
	case len(others) > 0:
		e.add(c, one, ipam.UnmappedElastic, since, "%s should be mapped to %s (%s) on host %s, which waits for host "+
			"%s, whose kernel may still have the mapping; see `berth elastic show %s`", one.Address,
			one.Association.Instance, l.Guest, c.Host(), others[0].Host, one.Address)
	default:
		e.add(c, one, ipam.UnmappedElastic, since, "%s should be mapped to %s (%s) on host %s, but the edge there "+
			"has not confirmed the mapping; see the log of berth edge", one.Address, one.Association.Instance, l.Guest,
			c.Host())
	}
	return nil
}

// wantedSince returns when a mapping became wanted: at its association, or at its guest's start.
func wantedSince(c *ledger.Change, one *ipam.Elastic, l *lead) (time.Time, error) {
	since := c.Began(one.Association.ID)
	sub := subnetAt(c.Index(), one.Association.Network, l.Guest)
	if l.Staged || sub == nil {
		return since, nil
	}
	held, err := c.Lease(sub.ID, l.Guest)
	if err == nil && held != nil && held.Since.After(since) {
		since = held.Since
	}
	return since, err
}

// leadsAway finds an address of another host's range whose guest runs here.
func (e *examination) leadsAway(c *ledger.Change, one *ipam.Elastic) error {
	g, there, err := mapped(c, one.Association)
	r := rangeOf(c.Index(), one.Address)
	if err != nil || !there || g.host != c.Host() {
		return err
	}
	if account := whoseNow(e.wanted.accounts, one, &g); account != one.Account {
		e.add(c, one, ipam.UnmappedElastic, c.Began(one.Association.ID), "%s belongs to account %s, but the "+
			"container %s now belongs to account %s, so it is not mapped: disassociate it (berth elastic "+
			"disassociate)", one.Address, one.Account, g.named(one.Association), account)
		return nil
	}
	if r == nil || r.Host == "" || r.Host == c.Host() {
		return nil
	}
	e.add(c, one, ipam.UnmappedElastic, c.Began(one.Association.ID), "%s belongs to the elastic range %s of host "+
		"%s, but %s runs on host %s: associate an address of the cluster, or run the container on the host of the "+
		"range", one.Address, r.Range,
		r.Host, one.Association.Instance, c.Host())
	return nil
}

// leadsNowhere finds an address that is associated with a container that no longer exists. A stopped one may start
// again.
func (e *examination) leadsNowhere(c *ledger.Change, one *ipam.Elastic) error {
	if n := c.Index().Network(one.Association.Network); n == nil || !isGoneFrom(c, n, one.Association.Instance) {
		return nil
	}
	last, err := lastHost(c, one.Association)
	if err != nil || last != c.Host() {
		return err
	}
	e.add(c, one, ipam.GuestGone, c.Began(one.Association.ID), "%s of account %s is associated with "+
		"%s, which no longer exists and has no reservation: end the association with `berth elastic "+
		"disassociate %s`, or start the container again", one.Address, one.Account, one.Association.Instance,
		one.Address)
	return nil
}

// isGoneFrom reports whether this host's engine has no container of an owner, not even a stopped one.
func isGoneFrom(c *ledger.Change, n *ipam.Network, owner string) bool {
	known := c.Known().Container
	if _, err := ipam.ParseMAC(owner); err == nil || known == nil {
		return false // a MAC belongs to nobody known before its container runs
	}
	for _, name := range append(n.NamesOf(owner), owner) {
		if id, live := known(name); id != "" || !live {
			return false
		}
	}
	return true
}

// lastHost returns the host on which the guest of an association ran last, according to the memory of its address, or
// an empty name.
func lastHost(c *ledger.Change, a *ipam.Association) (string, error) {
	if c.Member() == nil {
		return c.Host(), nil
	}
	sub := subnetAt(c.Index(), a.Network, a.Guest)
	if sub == nil {
		return "", nil
	}
	l, err := c.Lease(sub.ID, a.Guest)
	if err != nil || l == nil || l.Name != a.Instance && !c.Index().Network(a.Network).Means(l.Name, a.Instance) {
		return "", err
	}
	return l.Host, nil
}

func (e *examination) add(c *ledger.Change, one *ipam.Elastic, kind ipam.FindingKind, since time.Time, detail string,
	args ...any) {
	f := ipam.Finding{Kind: kind, Address: one.Address, Host: c.Host(), Network: c.NetworkName(one.Association.Network),
		Owner: one.Association.Instance, Seen: since, Detail: fmt.Sprintf(detail, args...)}
	if n := c.Index().Network(one.Association.Network); n != nil {
		f.Space = n.Space
	}
	e.Findings = append(e.Findings, f)
}

// SystemGaps lists this host's running containers on networks in the mode auto that have neither a system address nor
// another one, in the order of their addresses.
func (s Addresses) SystemGaps(ctx context.Context) (gaps []ipam.SystemGap, err error) {
	s, away := s.home()
	if away != nil || s.ledger.NoElastic() {
		return nil, nil // the caller knows that the cluster's records are missing (Partial)
	}
	g, err := s.guests(ctx)
	if err != nil {
		return nil, err
	}
	err = s.stands(ctx, g, time.Time{}, func(c *ledger.Change, at guestPlace, one *standing) error {
		if one.has != nil || !one.noneFree && len(one.published) == 0 {
			return nil
		}
		sub := c.Index().Subnet(at.subnet).Record()
		gaps = append(gaps, ipam.SystemGap{Space: sub.Space, Network: c.NetworkName(sub.Network), Guest: at.addr,
			Subnet: sub.CIDR, Lease: one.lease.ID, Instance: one.lease.Name, Published: one.published})
		return nil
	})
	return gaps, err
}

// ElasticGuests lists the elastic addresses that are mapped to some guest addresses, on any network, without system
// addresses.
func (s Addresses) ElasticGuests(ctx context.Context, guests []netip.Addr) (all []ipam.ElasticGuest, err error) {
	s, away := s.home()
	if away != nil || s.ledger.NoElastic() {
		return nil, nil // the caller knows that the cluster's records are missing (Partial)
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
