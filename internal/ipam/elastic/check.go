package elastic

import (
	"context"
	"fmt"
	"net/netip"
	"time"

	"berth/internal/ipam"
	"berth/internal/ipam/ledger"
)

// mapsWithin is how long an edge has to map an address before that is found.
const mapsWithin = 5 * time.Second

// examination goes through the associations and finds what is wrong on this host.
type examination struct {
	ipam.ElasticCheck
	wanted *wanted
}

// CheckElastic finds what of elastic addresses is wrong on this host, as far as the records and the witness know.
func (s Room) CheckElastic(ctx context.Context) (ipam.ElasticCheck, error) {
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
	all := ledger.Ask(s.ledger, func(ix *ledger.Index) []*ipam.Elastic {
		return associatedWith(ix, func(*ipam.Association) bool { return true })
	})
	return e.ElasticCheck, ledger.LookEach(ctx, s.ledger, all, e.look)
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
		e.add(c, one, ipam.UnmappedElastic, c.Began(one.Association.ID), fmt.Sprintf("%s leads to %s, to which "+
			"%s is mapped already: disassociate one of them (berth elastic disassociate)", one.Address, l.Guest, first))
		return nil
	}
	return e.isMapped(c, one, &l)
}

// isMapped finds an address that this host's edge is to have, and has not.
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
	switch {
	case said:
		e.add(c, one, ipam.UnmappedElastic, at.Since, fmt.Sprintf("the edge of host %s cannot map %s to %s (%s): %s",
			c.Host(), one.Address, one.Association.Instance, l.Guest, at.Error))
	case c.Now().Sub(since) >= mapsWithin && waitsFor(c, one.Address) != "":
		e.add(c, one, ipam.UnmappedElastic, since, fmt.Sprintf("%s is to be mapped to %s (%s) on host %s, which waits "+
			"for host %s: that may have it in its kernel still; see `berth elastic show %s`", one.Address,
			one.Association.Instance, l.Guest, c.Host(), waitsFor(c, one.Address), one.Address))
	case c.Now().Sub(since) >= mapsWithin:
		e.add(c, one, ipam.UnmappedElastic, since, fmt.Sprintf("%s is to be mapped to %s (%s) on host %s, and its "+
			"edge has not said that it is; see the log of berth edge", one.Address, one.Association.Instance, l.Guest,
			c.Host()))
	}
	return nil
}

// waitsFor is another host that may have an address in its kernel; empty where none may.
func waitsFor(c *ledger.Change, addr netip.Addr) string {
	for _, host := range hostsOf(c.Index(), c.Host())[1:] {
		if at := c.Index().Applied(ledger.AppliedAt{Host: host, Address: addr}); at != nil && at.InForce {
			return host
		}
	}
	return ""
}

// wantedSince is when a mapping came to be wanted: by its association, or by its guest's start.
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

// leadsAway finds an address whose guest runs here, and that is of another host's range.
func (e *examination) leadsAway(c *ledger.Change, one *ipam.Elastic) error {
	g, there, err := mapped(c, one.Association)
	r := rangeOf(c.Index(), one.Address)
	if err != nil || !there || g.host != c.Host() {
		return err
	}
	if account := whoseNow(e.wanted.accounts, one, &g); account != one.Account {
		e.add(c, one, ipam.UnmappedElastic, c.Began(one.Association.ID), fmt.Sprintf("%s is account %s's, and "+
			"the container %s is account %s's by now, so that it is not mapped: disassociate it (berth elastic "+
			"disassociate)", one.Address, one.Account, g.named(one.Association), account))
		return nil
	}
	if r == nil || r.Host == "" || r.Host == c.Host() {
		return nil
	}
	e.add(c, one, ipam.UnmappedElastic, c.Began(one.Association.ID), fmt.Sprintf("%s is of the elastic range %s "+
		"of host %s, and %s runs on host %s: associate an address of the cluster, or run it there", one.Address, r.Range,
		r.Host, one.Association.Instance, c.Host()))
	return nil
}

// leadsNowhere finds an address that is associated with a container that is not there any more. One that is stopped
// comes back to it (CS-8).
func (e *examination) leadsNowhere(c *ledger.Change, one *ipam.Elastic) error {
	if n := c.Index().Network(one.Association.Network); n == nil || !isGoneFrom(c, n, one.Association.Instance) {
		return nil
	}
	last, err := lastHost(c, one.Association)
	if err != nil || last != c.Host() {
		return err
	}
	e.add(c, one, ipam.GuestGone, c.Began(one.Association.ID), fmt.Sprintf("%s of account %s is associated with "+
		"%s, which is not there any more, and for which nothing is reserved: end that with `berth elastic disassociate "+
		"%s`, or start it again", one.Address, one.Account, one.Association.Instance, one.Address))
	return nil
}

// isGoneFrom tells whether the engine of this host has no container of an owner, not even one that is stopped.
func isGoneFrom(c *ledger.Change, n *ipam.Network, owner string) bool {
	known := c.Known().Container
	if _, err := ipam.ParseMAC(owner); err == nil || known == nil {
		return false // who has a MAC is not known before he runs
	}
	for _, name := range append(n.NamesOf(owner), owner) {
		if id, live := known(name); id != "" || !live {
			return false
		}
	}
	return true
}

// lastHost is where the guest of an association ran last, by what is remembered of its address; empty: not known.
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

func (e *examination) add(c *ledger.Change, one *ipam.Elastic, kind ipam.FindingKind, since time.Time, detail string) {
	f := ipam.Finding{Kind: kind, Address: one.Address, Host: c.Host(), Network: c.NetworkName(one.Association.Network),
		Owner: one.Association.Instance, Seen: since, Detail: detail}
	if n := c.Index().Network(one.Association.Network); n != nil {
		f.Space = n.Space
	}
	e.Findings = append(e.Findings, f)
}
