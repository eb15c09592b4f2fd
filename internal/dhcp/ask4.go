package dhcp

import (
	"context"
	"errors"
	"fmt"
	"net/netip"

	"berth/internal/ipam"

	"github.com/insomniacslk/dhcp/dhcpv4"
)

// ask4 is a DHCP question.
type ask4 struct {
	ipam.LANAsk
	*exchange
}

// do answers the question.
func (a *ask4) do(ctx context.Context) (*ipam.LANLease, error) {
	switch a.Verb {
	case ipam.LANOffer:
		return a.discover(ctx)
	case ipam.LANTake:
		return a.take(ctx)
	case ipam.LANConfirm:
		return a.confirm(ctx)
	case ipam.LANRelease:
		m := a.message(dhcpv4.MessageTypeRelease)
		m.ClientIPAddr = a.Address.AsSlice()
		return nil, a.tell(m)
	case ipam.LANDecline:
		return nil, a.tell(a.message(dhcpv4.MessageTypeDecline, wished(a.Address)))
	default:
		return nil, &failure{kind: ipam.LANRefused, text: fmt.Sprintf("%q is not a kind of LAN request", a.Verb)}
	}
}

// tell sends a message without an answer to the server of the lease. It is broadcast like all messages, because a
// unicast would use the host's own route, which may lead elsewhere.
func (a *ask4) tell(m *dhcpv4.DHCPv4) error {
	if a.Server.IsValid() {
		m.UpdateOption(toServer(a.Server))
	}
	m.NumSeconds, m.Flags = 0, 0 // RFC 2131, table 5
	return a.station.say(m.ToBytes())
}

// discover returns the first acceptable offer.
func (a *ask4) discover(ctx context.Context) (lease *ipam.LANLease, err error) {
	var beside *ipam.LANLease // an offer outside the subnet
	said, err := a.talk(ctx, a.sayDiscover, func(d datagram) verdict {
		h, ok := a.read(d)
		switch {
		case !ok || h.kind != dhcpv4.MessageTypeOffer:
			return passedOver
		case !fits(&a.LANAsk, &h.lease):
			beside = &h.lease
			return unlessBetter
		}
		lease = &h.lease
		return settled
	})
	switch {
	case lease != nil:
		return lease, nil
	case beside != nil:
		return nil, outside(&a.LANAsk, beside)
	case errors.Is(err, errSilent):
		return nil, a.silent(&a.LANAsk, "no DHCP server answered %s: DISCOVER was sent %d times", who(&a.Client), said)
	}
	return nil, err
}

func (a *ask4) sayDiscover(int) error {
	m := a.wanting(dhcpv4.MessageTypeDiscover)
	if a.Address.IsValid() {
		m.UpdateOption(wished(a.Address))
	}
	return a.station.say(m.ToBytes())
}

// take leases an address of the server's choice. If the server refuses its own offer, take asks for another one,
// because a server may offer one address to several clients.
func (a *ask4) take(ctx context.Context) (lease *ipam.LANLease, err error) {
	for range tries {
		var offer *ipam.LANLease
		offer, err = a.discover(ctx)
		if err != nil {
			return nil, err
		}
		lease, err = a.request(ctx, offer)
		if f := (*failure)(nil); !errors.As(err, &f) || f.kind != ipam.LANRefused && f.kind != ipam.LANWrong {
			return lease, err
		}
	}
	return nil, err
}

// ofHost declines a lease of an address that the host itself has (RFC 2131, 4.4.1), and returns why. nil: it has not.
func (a *ask4) ofHost(lease *ipam.LANLease) error {
	device := a.hostHas(lease.Address)
	if device == "" {
		return nil
	}
	err := a.tell(a.message(dhcpv4.MessageTypeDecline, wished(lease.Address), toServer(lease.Server)))
	return errors.Join(takenByHost(&a.LANAsk, lease, device), err)
}

// request leases an offered address (RFC 2131, 4.3.2, SELECTING). Other servers that made offers see from it that the
// client did not choose them.
func (a *ask4) request(ctx context.Context, offer *ipam.LANLease) (lease *ipam.LANLease, err error) {
	var no *heard4
	said, err := a.talk(ctx, func(int) error {
		m := a.wanting(dhcpv4.MessageTypeRequest, wished(offer.Address), toServer(offer.Server))
		return a.station.say(m.ToBytes())
	}, func(d datagram) verdict {
		h, ok := a.read(d)
		switch {
		case !ok || h.server.IsValid() && h.server != offer.Server:
			return passedOver
		case h.kind == dhcpv4.MessageTypeNak:
			no = &h
			return settled
		case h.kind == dhcpv4.MessageTypeAck && h.lease.Address == offer.Address:
			lease = &h.lease
			return settled
		}
		return passedOver
	})
	switch {
	case no != nil:
		return nil, refused(&a.LANAsk, offer.Server, offer.Address.String()+", which it had offered", no.text)
	case errors.Is(err, errSilent):
		return nil, a.silent(&a.LANAsk, "the DHCP server %s offered %s %s, but did not answer the REQUEST for it, "+
			"which was sent %d times", offer.Server, who(&a.Client), offer.Address, said)
	case err != nil:
		return nil, err
	}
	if err := a.ofHost(lease); err != nil {
		return nil, err
	}
	return lease, nil
}

// confirm requests an address that the client had or has (RFC 2131, 3.2, INIT-REBOOT). A server that does not know the
// lease stays silent (4.3.2), for example after it lost its leases. It would then lease the address to another client.
// So from the third message on, confirm also asks as a new client that wishes for this address. It does the same after
// a NAK, because the NAK may come from a server that lost its leases. It takes the address only if that succeeds.
func (a *ask4) confirm(ctx context.Context) (*ipam.LANLease, error) {
	c := confirming4{ask4: a}
	said, err := a.talk(ctx, c.say, c.hear)
	switch {
	case c.lease != nil:
		if err := a.ofHost(c.lease); err != nil {
			return nil, err
		}
		return c.lease, nil
	case c.offer != nil:
		return a.request(ctx, c.offer)
	case c.no != nil:
		return nil, refused(&a.LANAsk, c.no.server, a.Address.String(), c.no.text)
	case errors.Is(err, errSilent) && c.other.IsValid():
		return nil, a.silent(&a.LANAsk, "no DHCP server confirmed %s for %s: REQUEST was sent %d times; a server "+
			"offers %s instead", a.Address, who(&a.Client), said, c.other)
	case errors.Is(err, errSilent):
		return nil, a.silent(&a.LANAsk, "no DHCP server answered %s about %s: REQUEST was sent %d times",
			who(&a.Client), a.Address, said)
	}
	return nil, err
}

// confirming4 is the state of a confirmation.
type confirming4 struct {
	*ask4
	lease *ipam.LANLease // the ACK
	offer *ipam.LANLease // of the address, for a new client
	no    *heard4        // a NAK
	other netip.Addr     // the address that a new client would get
}

func (c *confirming4) say(try int) error {
	m := c.wanting(dhcpv4.MessageTypeRequest, wished(c.Address))
	if err := c.station.say(m.ToBytes()); err != nil || try < tries/2 {
		return err
	}
	return c.sayDiscover(try)
}

func (c *confirming4) hear(d datagram) verdict {
	h, ok := c.read(d)
	switch {
	case !ok:
		return passedOver
	case h.kind == dhcpv4.MessageTypeNak:
		if c.no == nil {
			c.no = &h
			_ = c.sayDiscover(0) // an answer may come or not
		}
		return unlessBetter
	case h.lease.Address != c.Address:
		c.other = h.lease.Address
		return passedOver
	case h.kind == dhcpv4.MessageTypeAck:
		c.lease = &h.lease
	default:
		c.offer = &h.lease
	}
	return settled
}
