package lan

import (
	"context"
	"slices"
	"strconv"
	"time"

	"berth/internal/allocator"
	"berth/internal/ipam"
	"berth/internal/ipam/ledger"
)

// job is a lease for which something must be done.
type job struct {
	sub    *ipam.Subnet
	parent string
	lease  *ipam.Lease // as it was read
	client ipam.LANClient
	held   bool
	last   time.Time // the last question; zero: none since the daemon's start
	why    string    // the reason why it is over

	told *ipam.DHCPLease // the server's last answer, if it is not written yet; nil: see lease
}

func (j *job) key() leaseKey { return leaseKey{j.sub.ID, j.lease.ID} }

// over reports whether the lease's time is over.
func (j *job) over(now time.Time) bool {
	return j.dhcp() != nil && !j.dhcp().Expires.After(now)
}

// dhcp returns what the server gave last.
func (j *job) dhcp() *ipam.DHCPLease {
	if j.told != nil {
		return j.told
	}
	return j.lease.DHCP
}

// dues are all jobs: those to write, and those to ask about, by interface.
type dues struct {
	writes []job
	asks   map[link][]job
}

const (
	timeOver   = "it expired, and its DHCP server did not renew it"
	unanswered = "its DHCP server has not answered since the lease began"
)

// due reads the records and returns what is due now. It notes when something is due next.
func (k *Schedule) due(ctx context.Context) (all dues, err error) {
	all.asks = map[link][]job{}
	seen := map[leaseKey]bool{}
	next := time.Time{}
	err = k.ledger.Look(ctx, func(c *ledger.Change) error {
		for _, sx := range c.Index().Subnets() {
			sub := sx.Record()
			if !sub.FromDHCP() {
				continue
			}
			n := c.Index().Network(sub.Network)
			if n == nil || n.Stage != "" {
				continue
			}
			known, err := ledger.ReadOwners(c.Tx(), n.ID)
			if err != nil {
				return err
			}
			err = ledger.EachLease(c.Tx(), sub.ID, func(l *ipam.Lease) error {
				j := job{sub: sub, parent: sub.ParentOn(c.Host()), lease: l, held: l.Held()}
				seen[j.key()] = true
				at := k.judge(c, judging{c.Now(), n, known}, &j, &all)
				if !at.IsZero() && (next.IsZero() || at.Before(next)) {
					next = at
				}
				return nil
			})
			if err != nil {
				return err
			}
		}
		return nil
	})
	for at := range all.asks {
		slices.SortStableFunc(all.asks[at], func(a, b job) int { return a.last.Compare(b.last) })
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	for key := range k.tries {
		if !seen[key] {
			delete(k.tries, key)
		}
	}
	if next.IsZero() {
		next = k.ledger.Now().Add(seldom)
	}
	k.next = next
	return all, err
}

// judging is what a lease is judged by.
type judging struct {
	now   time.Time
	n     *ipam.Network
	known []ledger.KnownOwner
}

// judge adds a lease to what is due, and returns when to look at it again; zero: when it changes.
func (k *Schedule) judge(c *ledger.Change, by judging, j *job, all *dues) (next time.Time) {
	l, d := j.lease, j.lease.DHCP
	if l.Host != c.Host() || l.Kind != ipam.Automatic && l.Kind != ipam.Static {
		return time.Time{} // another host has it, or it never was a server's
	}
	at := link{j.parent, j.sub.CIDR.Addr().Is6()}
	switch {
	case d != nil && d.Returned && !j.held:
		all.asks[at] = append(all.asks[at], *j)
		return by.now
	case j.held || d != nil && by.wants(l):
		return k.needed(by, j, at, all)
	case d != nil && !d.Expires.After(by.now):
		j.why = timeOver
		all.writes = append(all.writes, *j)
		return by.now
	case d != nil:
		return d.Expires
	}
	return time.Time{}
}

// wants reports whether an existing owner keeps a remembered lease.
func (by judging) wants(l *ipam.Lease) bool {
	return slices.ContainsFunc(by.known, func(one ledger.KnownOwner) bool {
		if !one.Until.IsZero() && !one.Until.After(by.now) {
			return false
		}
		return allocator.LeaseOf(by.n, l, one.Owner)
	})
}

// needed is judge for a lease that must be renewed.
func (k *Schedule) needed(by judging, j *job, at link, all *dues) (next time.Time) {
	tried := k.triesOf(j.key())
	j.client, j.last, j.told = k.clientOf(j), tried.last, tried.told
	if j.told != nil {
		all.writes = append(all.writes, *j)
	}
	d, from := j.dhcp(), tried.next
	switch {
	case d == nil:
	case (d.State == ipam.LANBound || d.State == ipam.LANUnconfirmed) && !d.Expires.After(by.now) &&
		tried.inVain(by.now):
		j.why = timeOver
		if d.State == ipam.LANUnconfirmed {
			j.why = unanswered
		}
		all.writes = append(all.writes, *j)
		return by.now
	case d.State == ipam.LANBound && d.Renews.After(from):
		from = d.Renews
	}
	if j.parent == "" {
		return time.Time{}
	}
	if from.After(by.now) {
		if j.told != nil {
			return by.now
		}
		if d != nil && d.Lasts(by.now) && d.Expires.Before(from) {
			return d.Expires
		}
		return from
	}
	all.asks[at] = append(all.asks[at], *j)
	return by.now
}

// inVain reports whether the server was asked for a lease that is over, and does not renew it. A question that waits for
// longer than a round counts, so that a short lease ends in time.
func (t *try) inVain(now time.Time) bool {
	return t.failed || !t.asked.IsZero() && now.Sub(t.asked) >= every
}

// clientOf returns the client for which a lease is requested: the one that got it, or one made from its holder's name
// and MAC.
func (k *Schedule) clientOf(j *job) ipam.LANClient {
	l := j.lease
	if l.DHCP != nil {
		return l.DHCP.Client
	}
	owner := ipam.RememberedName(l.Name)
	switch {
	case owner != "":
	case l.MAC != (ipam.MAC{}):
		owner = l.MAC.String()
	default:
		owner = ipam.LANNameless + strconv.FormatUint(l.ID, 10)
	}
	return allocator.ClientOf(owner, l.MAC, j.sub.DHCPID)
}
