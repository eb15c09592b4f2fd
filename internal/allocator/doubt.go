package allocator

import (
	"context"
	"net/netip"
	"time"

	"berth/internal/ipam"
	"berth/internal/ipam/ledger"
)

// doubt is whether a live lease may have no endpoint.
type doubt uint8

const (
	noDoubt   doubt = iota
	mayBeLost       // nobody has seen its endpoint, which may have ended, or never existed
	isLost          // it has no endpoint: the witness has looked twice
)

// doubtOf returns the doubt about a lease. Without a witness, a lease from before the daemon's start stays in doubt.
func doubtOf(c *ledger.Change, space string, l *ipam.Lease) doubt {
	if c.Index().Answered(l.ID) {
		return noDoubt
	}
	switch c.Known().Sighting(space, l).Sight {
	case ipam.Seen:
		return noDoubt
	case ipam.Gone:
		return isLost
	case ipam.CutOff:
		return mayBeLost
	}
	if c.Index().LeftBehind(l.ID) || !c.SinceStart(l) {
		return mayBeLost
	}
	return noDoubt
}

// comesBack reports whether req is the next start of the container that held was taken for, or of its successor. The
// engine must have named the container, by its name or by its lock, and its word must prove that the lease has no
// endpoint. So a container whose release was lost gets its own address at once.
func (t *Target) comesBack(req *ipam.AddressRequest, held *ipam.Lease) bool {
	named := req.Name != "" && (!req.Guessed || req.Hint.Sure)
	return named && held.Held() && held.Attachment == t.At.ID && held.Host == t.Host() && !t.At.Swarm &&
		(held.Kind == ipam.Automatic || held.Kind == ipam.Static) && !t.Index().Answered(held.ID) &&
		t.Known().ReturnsTo(t.Sub.Space, t.Sub.CIDR, held, req.Name)
}

// endLost ends the other leases of a container that comes back. It has one endpoint on a Docker network.
func (t *Target) endLost(req *ipam.AddressRequest, given netip.Addr) error {
	for _, addr := range t.Sx.SawContainer(t.Known().ContainerOf(req.Name)) {
		l, err := t.Record(addr)
		if err != nil {
			return err
		}
		if addr != given && t.comesBack(req, l) {
			if err := Release(t.Change, t.Sub, l); err != nil {
				return err
			}
		}
	}
	return nil
}

// repeats reports whether req is the next start of the endpoint that held was taken for. The lease must be in doubt.
// The attachment and MAC must match, and so must the name, if sent, or the container. Without a MAC the name suffices
// if the lease surely has no endpoint, so a renamed container keeps its address. An address alone identifies nobody.
func (t *Target) repeats(req ipam.AddressRequest, held *ipam.Lease) bool {
	if t.comesBack(&req, held) {
		return true
	}
	if !held.Held() || held.Attachment != t.At.ID || !t.sameEndpoint(&req, held) {
		return false
	}
	is := doubtOf(t.Change, t.Sub.Space, held)
	if is == noDoubt {
		doLook(t.Change)
	}
	return is == isLost || is == mayBeLost && req.MAC != (ipam.MAC{})
}

// sameEndpoint reports whether req is from the endpoint of a lease. A renamed container is still the same one, and the
// next one of its name is another.
func (t *Target) sameEndpoint(req *ipam.AddressRequest, held *ipam.Lease) bool {
	switch {
	case held.Container == "":
	case held.Container == t.Known().ContainerOf(req.Name):
		return held.MAC == req.MAC
	case req.Name != "" && t.Known().StillExists("", held.Container):
		return false
	}
	return SameEndpoint(req, held.MAC, held.Name)
}

// Repeated returns the lease that the endpoint of req has lost, if it may be given again; nil if there is none.
func (t *Target) Repeated(req *ipam.AddressRequest, may func(*ipam.Lease) bool) (*ipam.Lease, error) {
	return Repeated(t.Sx, req, t.Known().ContainerOf(req.Name), t.Record,
		func(l *ipam.Lease) bool { return may(l) && t.repeats(*req, l) })
}

// doLook makes the witness look soon, because its next view decides whether a lease is in doubt. It does not wait.
func doLook(c *ledger.Change) {
	if c.Known().Look != nil {
		c.Known().Look()
	}
}

// The maximum delay between two requests of one start: an endpoint's IPv4 and IPv6 address, and a Docker network's IPv4
// and IPv6 pool. The engine makes both at once, but the machine may be busy.
const (
	OtherFamilyTime = 10 * time.Second
	otherPoolTime   = 10 * time.Second
)

// LeaveBehind marks as doubtful the IPv4 lease of a start whose IPv6 address was refused. The engine ends that start,
// and engines before 28 never release the IPv4 address.
func LeaveBehind(ctx context.Context, s *ledger.Ledger, req ipam.AddressRequest) {
	if req.MAC == (ipam.MAC{}) || req.Gateway || !IsIPv6(s, req.Pool) {
		return
	}
	_ = s.Look(context.WithoutCancel(ctx), func(c *ledger.Change) error { // if it fails, the witness finds the lease
		at := c.Index().Attachment(req.Pool)
		if at == nil {
			return nil
		}
		space, l, err := startedWith(c, req, at)
		if l != nil && c.Known().Sighting(space, l).Sight != ipam.Seen {
			c.Index().MarkLeftBehind(l.ID)
		}
		return err
	})
}

// startedWith returns the latest IPv4 lease of the same endpoint that was taken just before, or nil. Its attachment can
// belong to the same Docker network.
func startedWith(c *ledger.Change, req ipam.AddressRequest,
	at *ipam.Attachment) (space string, last *ipam.Lease, err error) {
	for id, sx := range c.Index().Subnets() {
		for _, addr := range sx.SawMAC(req.MAC) {
			if addr.Is6() {
				continue
			}
			l, err := c.Lease(id, addr)
			if err != nil {
				return "", nil, err
			}
			if isStartOf(c, l, req, at) && (last == nil || last.ID < l.ID) {
				space, last = sx.Record().Space, l
			}
		}
	}
	return space, last, nil
}

// isStartOf reports whether a lease can be the other half of req, which was made through at.
func isStartOf(c *ledger.Change, l *ipam.Lease, req ipam.AddressRequest, at *ipam.Attachment) bool {
	if !l.Held() || !SameEndpoint(&req, l.MAC, l.Name) || l.Host != c.Host() {
		return false
	}
	other := c.Index().Attachment(l.Attachment)
	if other == nil || other.Space != at.Space || c.Now().Sub(l.Since) > OtherFamilyTime {
		return false
	}
	return at.Created.Sub(other.Created).Abs() <= otherPoolTime
}

// Repeated returns the held lease that req repeats and whose endpoint has lost it, according to is. If req asks for an
// address, only that address can match.
func Repeated(sx *ledger.SubnetIndex, req *ipam.AddressRequest, container string, read Reading,
	is func(*ipam.Lease) bool) (*ipam.Lease, error) {
	places := sx.SawMAC(req.MAC)
	switch {
	case req.Preferred.IsValid():
		places = []netip.Addr{req.Preferred}
	case req.MAC == (ipam.MAC{}):
		places = sx.SawName(ipam.RememberedName(req.Name))
	}
	lost := func(l *ipam.Lease) bool { return l.Held() && is(l) }
	if !req.Preferred.IsValid() && req.MAC == (ipam.MAC{}) {
		own, err := latest(sx.SawContainer(container), read, func(l *ipam.Lease) bool {
			return l.Container == container && lost(l)
		})
		if own != nil || err != nil {
			return own, err
		}
	}
	return latest(places, read, lost)
}

// SameEndpoint reports whether req has the MAC of a lease's endpoint and, if one is sent, its name. An address alone
// identifies nobody.
func SameEndpoint(req *ipam.AddressRequest, mac ipam.MAC, name string) bool {
	if req.MAC == (ipam.MAC{}) && req.Name == "" {
		return false
	}
	return mac == req.MAC && (req.Name == "" || name == req.Name)
}
