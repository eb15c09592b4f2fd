package lan

import (
	"context"
	"errors"
	"net/netip"
	"time"

	"berth/internal/allocator"
	"berth/internal/ipam"
	"berth/internal/ipam/ledger"
)

// do asks about one lease and writes the result. It reports whether anybody answered.
func (k *Schedule) do(ctx context.Context, j *job) (answered bool, err error) {
	if d := j.lease.DHCP; d != nil && d.Returned && !j.held {
		return true, k.giveBack(ctx, j)
	}
	other, answered, err := k.renew(ctx, j)
	if other == nil {
		return answered, err
	}
	_, back := k.returns(ctx, other)
	return answered, errors.Join(err, back)
}

// renew asks about one lease and writes the result, unless the lease has been replaced. It reports whether anybody
// answered. other is what the server gave instead, which nobody needs.
func (k *Schedule) renew(ctx context.Context, j *job) (other *allocator.Returning, answered bool, err error) {
	end, err := k.ledger.ShareClient(ctx, j.client)
	if err != nil {
		return nil, false, err
	}
	defer end()
	if same, err := k.stands(ctx, j); err != nil || !same {
		return nil, err == nil, err // no question was sent, so nobody is silent
	}
	asked := k.ledger.Now()
	k.asks(j)
	got, err := k.ask(ctx, j, ipam.LANConfirm)
	if err == nil && j.rebinds(asked, got.Failure) {
		got, err = k.ask(ctx, j, ipam.LANTake)
		other = j.other(&got)
	}
	if err != nil {
		return nil, false, err
	}
	answered = got.Failure == "" || got.Failure == ipam.LANRefused || got.Failure == ipam.LANOutside
	switch {
	case got.Failure == "" && got.Lease.Address == j.lease.Address:
		k.tried(j, false, every) // the server gave it, whether or not that can be written
		told := ipam.NewDHCPLease(j.client, got.Lease, asked)
		k.heard(j, told)
		err = k.bound(ctx, j, told)
	case answered:
		k.heard(j, nil)
		err = k.lost(ctx, j, refusedText(&got))
		k.tried(j, true, lostAgain)
	case got.Failure == ipam.LANWrong && got.Lease.Address == j.lease.Address:
		answered = true // the server gave it, and this host has it
		k.heard(j, nil)
		err = k.lost(ctx, j, got.Error)
		k.tried(j, true, lostAgain)
	default:
		answered = got.Failure == ipam.LANWrong // others may get better answers
		k.tried(j, true, j.wait(k.ledger.Now()))
	}
	return other, answered, err
}

// other returns the address that the server gave for a new request instead of the job's, or nil.
func (j *job) other(got *ipam.LANAnswer) *allocator.Returning {
	if got.Failure != "" || got.Lease.Address == j.lease.Address {
		return nil
	}
	return &allocator.Returning{Parent: j.parent, Subnet: j.sub.CIDR, Address: got.Lease.Address, Client: j.client,
		Server: got.Lease.Server, ServerID: got.Lease.ServerID}
}

// wait returns when to ask again after silence.
func (j *job) wait(now time.Time) time.Duration {
	switch d := j.dhcp(); {
	case d == nil, d.State == ipam.LANUnconfirmed:
		return every
	case d.State == ipam.LANBound:
		return min(max(d.Expires.Sub(now)/8, again), seldom)
	}
	return lostAgain
}

func refusedText(got *ipam.LANAnswer) string {
	if got.Failure == "" {
		return "its DHCP server gives " + got.Lease.Address.String() + " instead"
	}
	if got.Error != "" {
		return "its DHCP server refused it: " + got.Error
	}
	return "its DHCP server refused it"
}

// rebinds reports whether to ask for the address as a new one, too. If a LAN has several servers, one that has
// forgotten its leases does not answer a client that only confirms (RFC 2131, 4.3.2).
func (j *job) rebinds(now time.Time, failure ipam.LANFailure) bool {
	d := j.dhcp()
	switch failure {
	case ipam.LANSilent, ipam.LANWrong:
		return d == nil || d.State != ipam.LANBound || !d.Rebinds.After(now)
	case ipam.LANRefused:
		return d != nil && (d.State == ipam.LANLost || d.State == ipam.LANConflict)
	}
	return false
}

// ask sends one question about a lease.
func (k *Schedule) ask(ctx context.Context, j *job, verb ipam.LANVerb) (ipam.LANAnswer, error) {
	ask := ipam.LANAsk{Verb: verb, Parent: j.parent, IPv6: j.sub.CIDR.Addr().Is6(), Client: j.client,
		Subnet: j.sub.CIDR, Address: j.lease.Address, Within: ipam.Duration(patience)}
	if d := j.dhcp(); d != nil && verb == ipam.LANRelease {
		ask.Server, ask.ServerID = d.Server, d.ServerID
	} else if d != nil && verb == ipam.LANConfirm {
		ask.ServerID = d.ServerID
	}
	return k.ledger.AskLAN(ctx, ask)
}

// change runs fn over the lease of a job, if it was not replaced.
func (k *Schedule) change(ctx context.Context, j *job, fn func(*ledger.Change, *ipam.Lease) error) error {
	return k.ledger.Update(ctx, func(c *ledger.Change) error {
		now, err := j.now(c)
		if err != nil || now == nil {
			return err
		}
		return fn(c, now)
	})
}

// stands reports whether the lease of a job was not replaced, and is held as before.
func (k *Schedule) stands(ctx context.Context, j *job) (bool, error) {
	return ledger.Look(ctx, k.ledger, func(c *ledger.Change) (bool, error) {
		now, err := j.now(c)
		return now != nil && now.Held() == j.held, err
	})
}

// now reads the lease of a job. It returns nil if there is none or another one.
func (j *job) now(c *ledger.Change) (*ipam.Lease, error) {
	sx := c.Index().Subnet(j.sub.ID)
	if sx == nil || sx.Record().LANTerms != j.sub.LANTerms {
		return nil, nil
	}
	now, err := c.Lease(j.sub.ID, j.lease.Address)
	if err != nil || now == nil || now.ID != j.lease.ID || now.Host != j.lease.Host {
		return nil, err
	}
	was, is := j.lease.DHCP, now.DHCP
	if (was == nil) != (is == nil) || was != nil && !was.Client.SameClient(is.Client) {
		return nil, nil
	}
	return now, nil
}

// write writes what needs no server.
func (k *Schedule) write(ctx context.Context, j *job) error {
	if j.why == "" {
		return k.bound(ctx, j, j.told)
	}
	return k.end(ctx, j)
}

// bound writes that a server gave the lease again, if it has not said anything else since. A renewal is no event,
// because nothing changes.
func (k *Schedule) bound(ctx context.Context, j *job, told *ipam.DHCPLease) error {
	err := k.change(ctx, j, func(c *ledger.Change, now *ipam.Lease) error {
		if k.triesOf(j.key()).told != told {
			return nil
		}
		after, d := *now, *told
		after.DHCP = &d
		if now.DHCP != nil {
			d.Returned = now.DHCP.Returned
		}
		if now.DHCP != nil && now.DHCP.State != ipam.LANBound {
			if _, err := c.Event(after.Event(ipam.LeaseConfirmed, j.sub, after.DHCP.Why)); err != nil {
				return err
			}
		}
		return c.SetLease(j.sub.ID, now.Address, now, &after)
	})
	if err == nil {
		k.wrote(j, told)
	}
	return err
}

// lost writes that the lease is lost. The holder keeps the address, because the engine cannot be given another one.
func (k *Schedule) lost(ctx context.Context, j *job, why string) error {
	return k.change(ctx, j, func(c *ledger.Change, now *ipam.Lease) error { return j.lose(c, now, why) })
}

// lose is lost within a change.
func (j *job) lose(c *ledger.Change, now *ipam.Lease, why string) error {
	if now.DHCP != nil && now.DHCP.State == ipam.LANLost {
		return nil
	}
	after := *now
	if now.DHCP == nil {
		after.DHCP = &ipam.DHCPLease{Client: j.client}
	}
	after.DHCP = after.DHCP.As(ipam.LANLost, why)
	if _, err := c.Event(after.Event(ipam.LeaseLost, j.sub, after.DHCP.Why)); err != nil {
		return err
	}
	if !now.Held() {
		return c.SetLease(j.sub.ID, now.Address, now, now.Unheld())
	}
	return c.SetLease(j.sub.ID, now.Address, now, &after)
}

// end writes that the time of a lease is over, unless the server has given it again. If somebody has or keeps the
// address, the lease is lost, else it is forgotten.
func (k *Schedule) end(ctx context.Context, j *job) error {
	return k.change(ctx, j, func(c *ledger.Change, now *ipam.Lease) error {
		d := now.DHCP
		if told := k.triesOf(j.key()).told; told != nil {
			d = told
		}
		switch {
		case d != nil && d.Expires.After(c.Now()):
			return nil
		case j.held || !j.last.IsZero():
			return j.lose(c, now, j.why)
		case now.Held():
			return nil
		}
		return c.SetLease(j.sub.ID, now.Address, now, now.Unheld())
	})
}

// giveBack tells a server that the lease of an ended owner is not needed any more, and forgets it. Meanwhile no request
// uses the same client, so it never returns what somebody has just got.
func (k *Schedule) giveBack(ctx context.Context, j *job) error {
	j.client = j.lease.DHCP.Client
	end, err := k.ledger.OwnClient(ctx, j.client)
	if err != nil {
		return err
	}
	defer end()
	still := false
	err = k.change(ctx, j, func(_ *ledger.Change, now *ipam.Lease) error {
		still = !now.Held() && now.DHCP.Returned
		return nil
	})
	if err != nil || !still {
		return err
	}
	lasts := j.lease.DHCP.Expires.After(k.ledger.Now())
	if lasts && j.parent != "" && j.lease.DHCP.Server != (netip.Addr{}) {
		got, err := k.ask(ctx, j, ipam.LANRelease)
		if err != nil {
			return err
		}
		if got.Failure != "" { // it cannot be sent now; after the lease's time it is not needed
			k.tried(j, true, again)
			return nil
		}
	}
	return k.change(ctx, j, func(c *ledger.Change, now *ipam.Lease) error {
		if now.Held() || !now.DHCP.Returned {
			return nil
		}
		return c.SetLease(j.sub.ID, now.Address, now, now.Unheld())
	})
}
