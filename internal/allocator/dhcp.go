package allocator

import (
	"context"
	"net/netip"
	"time"

	"berth/internal/ipam"
	"berth/internal/ipam/ledger"
)

// How long Berth waits for a DHCP server. Meanwhile the engine blocks the network's other containers.
const (
	// dhcpPatience bounds all questions of one request together. Each question may take one second longer.
	dhcpPatience = 9 * time.Second
	// confirmPatience bounds the question for a remembered address, which may be used even without an answer. On a LAN
	// an answer takes some milliseconds.
	confirmPatience = time.Second
	// namePatience bounds the wait for the witness if the requester is unknown and the engine's event may still arrive.
	// A requester that stays unknown would not get its own address.
	namePatience = 2200 * time.Millisecond
)

// fromDHCP reports whether a LAN's server chooses the address for a request.
func fromDHCP(s *ledger.Ledger, req *ipam.AddressRequest) bool {
	if req.Gateway || req.Seen {
		return false
	}
	return ledger.Ask(s, func(ix *ledger.Index) bool {
		at := ix.Attachment(req.Pool)
		if at == nil {
			return false
		}
		sx := ix.Subnet(at.Subnet)
		return sx != nil && sx.Record().FromDHCP()
	})
}

// dhcpRequest is a request whose address a LAN's DHCP server chooses. It has three steps. Only the first and
// the last use the store, so nobody else waits for the server.
type dhcpRequest struct {
	s       *ledger.Ledger
	asker   asker
	lasting *ipam.DHCPLease // what the requester may keep if the server does not answer; nil: nothing
	sub     *ipam.Subnet
	parent  string
	until   time.Time // the deadline of the request
}

// requestDHCP is RequestAddress where a LAN's server chooses.
func requestDHCP(ctx context.Context, s *ledger.Ledger, req ipam.AddressRequest) (given netip.Prefix,
	made *ipam.Lease, err error) {
	r := &dhcpRequest{s: s, until: time.Now().Add(dhcpPatience)}
	if err := r.who(ctx, req); err != nil {
		return netip.Prefix{}, nil, err
	}
	end, err := s.ShareClient(ctx, r.asker.Client)
	if err != nil {
		return netip.Prefix{}, nil, err
	}
	defer end()
	got, err := r.ask(ctx)
	if err != nil {
		return netip.Prefix{}, nil, err
	}
	return r.write(ctx, got)
}

// who finds the client for the server, or refuses the request without asking the server.
func (r *dhcpRequest) who(ctx context.Context, req ipam.AddressRequest) error {
	if err := r.look(ctx, req); err != nil || !r.asker.Soon || r.s.Known().Watch == nil {
		return err
	}
	changed, end := r.s.Known().Watch()
	defer end()
	over := time.NewTimer(namePatience)
	defer over.Stop()
	for waits := true; ; {
		if err := r.look(ctx, req); err != nil || !waits || !r.asker.Soon {
			return err
		}
		select {
		case <-changed:
		case <-over.C:
			waits = false
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// look finds the client, as far as it is known now.
func (r *dhcpRequest) look(ctx context.Context, req ipam.AddressRequest) error {
	ask(ctx, r.s, &req)
	return r.s.Look(ctx, func(c *ledger.Change) error {
		t, err := OpenTarget(c, req.Pool)
		if err != nil {
			return err
		}
		r.sub, r.parent = t.Sub, t.Sub.ParentOn(c.Host())
		if r.asker, err = t.askerOf(req); err != nil {
			return err
		}
		r.lasting = r.asker.lasting(c)
		return r.refusal(req)
	})
}

// refusal refuses a request that no server can answer.
func (r *dhcpRequest) refusal(req ipam.AddressRequest) error {
	switch sub := r.sub; {
	case req.Preferred.IsValid():
		return ipam.RefuseAs(ipam.WrongType, ipam.ErrInvalid, "%s cannot be requested: the DHCP server of the LAN "+
			"chooses the addresses of the subnet %s; leave the address out, and reserve it on that server for %s",
			req.Preferred, sub.CIDR, r.atServer())
	case r.parent == "":
		return noParent(sub.LANTerms, sub.CIDR, r.s.Host())
	case sub.DHCPID == ipam.LANByMAC && req.MAC == (ipam.MAC{}):
		return byMACOnly(sub.CIDR)
	}
	return nil
}

// atServer returns what identifies the requester to the server.
func (r *dhcpRequest) atServer() string {
	c := r.asker.Client
	switch {
	case c.ID == "":
		return "its MAC, " + c.MAC.String()
	case r.asker.Req.Name == "":
		return "the container's client identifier or host name"
	}
	return "the client identifier " + c.ID + ", or the host name " + c.Hostname
}

// byMACOnly is the refusal if a subnet's server identifies clients by MAC and the engine sends none.
func byMACOnly(cidr netip.Prefix) error {
	return ipam.Refuse(ipam.ErrInvalid, "the DHCP server of the subnet %s knows containers by MAC (dhcp_id=mac), but "+
		"the engine sends MACs only to drivers that ask; create the network with the driver of `berth serve "+
		"--mac-socket`, or leave out dhcp_id=mac", cidr)
}

// ask asks the server without any lock, for the requester's last address or for any.
func (r *dhcpRequest) ask(ctx context.Context) (ipam.Asked, error) {
	wish := netip.Addr{}
	if had := r.asker.Had; had != nil && r.lasting != nil {
		got, again, err := r.confirm(ctx, had.Address)
		if err != nil || !again {
			return got, err
		}
	} else if had != nil {
		wish = had.Address
	}
	return r.take(ctx, wish)
}

// confirm asks for a remembered lease that has not expired. Without an answer the address is given anyway. again
// reports that the server refused it, so that another address is necessary.
func (r *dhcpRequest) confirm(ctx context.Context, addr netip.Addr) (given ipam.Asked, again bool, err error) {
	ask := r.question(ipam.LANConfirm, confirmPatience)
	ask.Address, ask.ServerID = addr, r.lasting.ServerID
	asked := r.s.Now()
	got, err := r.s.AskLAN(ctx, ask)
	switch {
	case err != nil:
		return given, false, err
	case got.Failure == "" && got.Lease.Address == addr:
		return ipam.Asked{Address: addr, DHCP: ipam.NewDHCPLease(r.asker.Client, got.Lease, asked)}, false, nil
	case got.Failure == ipam.LANRefused || got.Failure == "" || got.Failure == ipam.LANOutside,
		got.Failure == ipam.LANWrong && got.Lease.Address == addr, // it gave the address, and this host has it
		!r.lasting.Lasts(r.s.Now()):                               // its time ended while the server was asked
		return given, true, nil
	}
	lasting := r.lasting.As(ipam.LANUnconfirmed, lanRefused(&ask, &got).Error())
	lasting.Client = r.asker.Client // which may have another MAC by now
	return ipam.Asked{Address: addr, DHCP: lasting}, false, nil
}

// take asks for an address that the server chooses. wish is a preference.
func (r *dhcpRequest) take(ctx context.Context, wish netip.Addr) (ipam.Asked, error) {
	ask := r.question(ipam.LANTake, time.Until(r.until))
	ask.Address = wish
	asked := r.s.Now()
	got, err := r.s.AskLAN(ctx, ask)
	if err != nil {
		return ipam.Asked{}, err
	}
	if got.Failure != "" {
		return ipam.Asked{}, lanRefused(&ask, &got)
	}
	given := ipam.Asked{Address: got.Lease.Address, DHCP: ipam.NewDHCPLease(r.asker.Client, got.Lease, asked)}
	if NotHost(r.sub.CIDR, given.Address) != "" {
		return given, r.decline(ctx, given, lanOutside(&ask, given.Address, got.Lease.Server))
	}
	if given.Address == got.Lease.Server {
		return given, r.decline(ctx, given, ipam.Refuse(ipam.ErrLAN, "the DHCP server %s gave its own address to %s "+
			"on %s; Berth declined it: remove that address from the server's range", got.Lease.Server, r.asker.Client,
			r.parent))
	}
	if x := r.sub.Exclusion(given.Address); x != nil {
		return given, r.decline(ctx, given, ipam.RefuseAs(ipam.IPReserved, ipam.ErrInUse, "the DHCP server %s gave %s "+
			"to %s, but that address is excluded by %s; Berth declined it: end the exclusion, or remove the address "+
			"from the server's range", got.Lease.Server, given.Address, r.asker.Client, x))
	}
	return given, nil
}

func (r *dhcpRequest) question(verb ipam.LANVerb, within time.Duration) ipam.LANAsk {
	within = min(within, time.Until(r.until))
	return ipam.LANAsk{Verb: verb, Parent: r.parent, IPv6: r.sub.CIDR.Addr().Is6(), Client: r.asker.Client,
		Subnet: r.sub.CIDR, Within: ipam.Duration(max(within, time.Millisecond))}
}

// decline declines an address at the server and returns why.
func (r *dhcpRequest) decline(ctx context.Context, given ipam.Asked, why error) error {
	ask := r.question(ipam.LANDecline, confirmPatience)
	ask.Address, ask.Server, ask.ServerID = given.Address, given.DHCP.Server, given.DHCP.ServerID
	_, _ = r.s.AskLAN(ctx, ask) // declines have no answer
	return why
}

// write writes the lease, unless the records have changed meanwhile.
func (r *dhcpRequest) write(ctx context.Context, got ipam.Asked) (given netip.Prefix, made *ipam.Lease, err error) {
	var other *ipam.Lease
	err = Update(ctx, r.s, func(c *ledger.Change) error {
		made, other = nil, nil
		if err := c.MayTake(); err != nil {
			return err
		}
		t, err := OpenTarget(c, r.asker.Req.Pool)
		if err != nil {
			return err
		}
		if t.Sub.ID != r.sub.ID || t.Sub.LANTerms != r.sub.LANTerms || t.Sub.CIDR != r.sub.CIDR {
			return ipam.Refuse(ipam.ErrChanged, "the subnet %s changed during the DHCP request for %s; start the "+
				"container again", r.sub.CIDR, r.asker.Client)
		}
		if err := t.Revive(); err != nil {
			return err
		}
		if other, err = t.takeGiven(&r.asker, got); err != nil || other != nil {
			return err
		}
		given, made = netip.PrefixFrom(got.Address, t.Sub.CIDR.Bits()), t.Made
		if got.DHCP.State == ipam.LANUnconfirmed {
			_, err = t.Event(made.Event(ipam.LeaseUnconfirmed, t.Sub, made.DHCP.Why))
		}
		return err
	})
	switch {
	case err != nil:
		return netip.Prefix{}, made, err
	case other != nil:
		return netip.Prefix{}, nil, r.decline(ctx, got, ipam.RefuseAs(ipam.AlreadyInUse, ipam.ErrInUse, "the DHCP "+
			"server %s gave %s to %s on %s, but %s has held it since %s; Berth declined it: start the container "+
			"again, or remove the holder", got.DHCP.Server, got.Address, r.asker.Client, r.parent, other.Holder(),
			other.Since.Format("2006-01-02 15:04:05 MST")))
	}
	return given, made, nil
}
