package dhcp

import (
	"context"
	"errors"
	"fmt"
	"net/netip"

	"berth/internal/ipam"

	"github.com/insomniacslk/dhcp/dhcpv6"
	"github.com/insomniacslk/dhcp/iana"
)

// ask6 is a DHCPv6 question about one address of an IA_NA. An address from a router's prefix (SLAAC) is the kernel's
// matter and needs no question.
type ask6 struct {
	ipam.LANAsk
	*exchange
}

// do answers the question.
func (a *ask6) do(ctx context.Context) (*ipam.LANLease, error) {
	switch a.Verb {
	case ipam.LANOffer:
		lease, _, err := a.solicit(ctx)
		return lease, err
	case ipam.LANTake:
		return a.take(ctx)
	case ipam.LANConfirm:
		return a.confirm(ctx)
	case ipam.LANRelease:
		return nil, a.tell(dhcpv6.MessageTypeRelease)
	case ipam.LANDecline:
		return nil, a.tell(dhcpv6.MessageTypeDecline)
	default:
		return nil, &failure{kind: ipam.LANRefused, text: fmt.Sprintf("%q is not a kind of LAN request", a.Verb)}
	}
}

// tell sends a message whose answer is not needed to the server of the lease. It goes to all servers and names the
// server.
func (a *ask6) tell(kind dhcpv6.MessageType) error {
	server, err := serverOf(a.ServerID)
	if err != nil {
		return &failure{kind: ipam.LANRefused, text: fmt.Sprintf("%q is not the DUID of a server: the lease of %s "+
			"cannot be released", a.ServerID, a.Address)}
	}
	return a.station.say(a.message(kind, a.Address, dhcpv6.OptServerID(server)).ToBytes())
}

// solicit returns the first acceptable offer and its server.
func (a *ask6) solicit(ctx context.Context) (lease *ipam.LANLease, server dhcpv6.DUID, err error) {
	var beside *ipam.LANLease // an offer outside the subnet
	var no *heard6
	said, err := a.talk(ctx, a.saySolicit, func(d datagram) verdict {
		h, ok := a.read(d)
		if !ok || h.kind != dhcpv6.MessageTypeAdvertise {
			return passedOver
		}
		for i := range h.leases {
			if fits(&a.LANAsk, &h.leases[i]) {
				lease, server = &h.leases[i], h.server
				return settled
			}
			beside = &h.leases[i]
		}
		no = &h
		return unlessBetter
	})
	switch {
	case lease != nil:
		return lease, server, nil
	case beside != nil:
		return nil, nil, outside(&a.LANAsk, beside)
	case no != nil && len(a.faults) > 0:
		return nil, nil, a.wrong(&a.LANAsk)
	case no != nil:
		return nil, nil, refused(&a.LANAsk, no.from, "an address", no.why())
	case errors.Is(err, errSilent):
		return nil, nil, a.silent(&a.LANAsk, "no DHCPv6 server answered %s: SOLICIT was sent %d times",
			who(&a.Client), said)
	}
	return nil, nil, err
}

func (a *ask6) saySolicit(int) error {
	return a.station.say(a.wanting(dhcpv6.MessageTypeSolicit, a.Address).ToBytes())
}

// take leases an address of the server's choice. If the server refuses its own offer, take asks for another one, as in
// DHCP.
func (a *ask6) take(ctx context.Context) (lease *ipam.LANLease, err error) {
	for range tries {
		var offer *ipam.LANLease
		var server dhcpv6.DUID
		offer, server, err = a.solicit(ctx)
		if err != nil {
			return nil, err
		}
		lease, err = a.request(ctx, offer, server)
		if f := (*failure)(nil); !errors.As(err, &f) || f.kind != ipam.LANRefused && f.kind != ipam.LANWrong {
			return lease, err
		}
	}
	return nil, err
}

// ofHost declines a lease of an address that the host itself has (RFC 8415, 18.2.8), and returns why. nil: it has not.
func (a *ask6) ofHost(lease *ipam.LANLease) error {
	device := a.hostHas(lease.Address)
	if device == "" {
		return nil
	}
	server, err := serverOf(lease.ServerID)
	if err == nil {
		err = a.station.say(a.message(dhcpv6.MessageTypeDecline, lease.Address, dhcpv6.OptServerID(server)).ToBytes())
	}
	return errors.Join(takenByHost(&a.LANAsk, lease, device), err)
}

// request leases an offered address (RFC 8415, 18.2.2).
func (a *ask6) request(ctx context.Context, offer *ipam.LANLease, server dhcpv6.DUID) (lease *ipam.LANLease,
	err error) {
	var no *heard6
	said, err := a.talk(ctx, func(int) error {
		m := a.wanting(dhcpv6.MessageTypeRequest, offer.Address, dhcpv6.OptServerID(server))
		return a.station.say(m.ToBytes())
	}, func(d datagram) verdict {
		h, ok := a.read(d)
		if !ok || h.kind != dhcpv6.MessageTypeReply || string(h.server.ToBytes()) != string(server.ToBytes()) {
			return passedOver
		}
		if lease = h.lease(offer.Address); lease == nil {
			no = &h
		}
		return settled
	})
	switch {
	case no != nil:
		return nil, refused(&a.LANAsk, no.from, offer.Address.String()+", which it had offered", no.why())
	case errors.Is(err, errSilent):
		return nil, a.silent(&a.LANAsk, "the DHCPv6 server %s offered %s %s, but did not answer the REQUEST for it, "+
			"which was sent %d times", offer.Server, who(&a.Client), offer.Address, said)
	case err != nil:
		return nil, err
	}
	if err := a.ofHost(lease); err != nil {
		return nil, err
	}
	return lease, nil
}

// confirm requests an address that the client had or has. It sends a RENEW to the server of the lease, if known (RFC
// 8415, 18.2.4). From the third message on, or without a known server, it asks any server as a new client that wishes
// for this address. It never uses REBIND (18.2.5), the protocol's own way. A dnsmasq that lost its leases answers a
// REBIND by leasing the address, even if another client has it by now.
func (a *ask6) confirm(ctx context.Context) (*ipam.LANLease, error) {
	c := confirming6{ask6: a}
	said, err := a.talk(ctx, c.say, c.hear)
	switch {
	case c.lease != nil:
		if err := a.ofHost(c.lease); err != nil {
			return nil, err
		}
		return c.lease, nil
	case c.offer != nil:
		return a.request(ctx, c.offer, c.server)
	case c.no != nil:
		return nil, refused(&a.LANAsk, c.no.from, a.Address.String(), c.no.why())
	case errors.Is(err, errSilent) && c.other.IsValid():
		return nil, a.silent(&a.LANAsk, "no DHCPv6 server confirmed %s for %s: Berth asked %d times; a server "+
			"offers %s instead", a.Address, who(&a.Client), said, c.other)
	case errors.Is(err, errSilent):
		return nil, a.silent(&a.LANAsk, "no DHCPv6 server answered %s about %s: Berth asked %d times",
			who(&a.Client), a.Address, said)
	}
	return nil, err
}

// confirming6 is the state of a confirmation.
type confirming6 struct {
	*ask6
	lease  *ipam.LANLease // the REPLY's
	offer  *ipam.LANLease // of the address, for a new client
	server dhcpv6.DUID    // of that offer
	no     *heard6        // a REPLY without it
	other  netip.Addr     // the address that a new client would get
}

func (c *confirming6) say(try int) error {
	server, err := serverOf(c.ServerID)
	if err != nil {
		return c.saySolicit(try)
	}
	m := c.wanting(dhcpv6.MessageTypeRenew, c.Address, dhcpv6.OptServerID(server))
	if err := c.station.say(m.ToBytes()); err != nil || try < tries/2 {
		return err
	}
	return c.saySolicit(try)
}

func (c *confirming6) hear(d datagram) verdict {
	h, ok := c.read(d)
	switch {
	case !ok:
		return passedOver
	case h.kind == dhcpv6.MessageTypeReply && h.lease(c.Address) != nil:
		c.lease = h.lease(c.Address)
		return settled
	case h.kind == dhcpv6.MessageTypeAdvertise && h.lease(c.Address) != nil:
		c.offer, c.server = h.lease(c.Address), h.server
		return settled
	case h.kind == dhcpv6.MessageTypeAdvertise:
		if len(h.leases) > 0 {
			c.other = h.leases[0].Address
		}
		return passedOver
	case h.status == iana.StatusSuccess && len(h.over) == 0:
		return passedOver // it does not mention the address
	case c.no == nil:
		c.no = &h
		_ = c.saySolicit(0) // an answer may come or not
	}
	return unlessBetter
}
