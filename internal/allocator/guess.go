package allocator

import (
	"context"
	"errors"
	"net/netip"
	"time"

	"berth/internal/ipam"
	"berth/internal/ipam/ledger"
)

// restartTime is the maximum time between a release and the next request of the same container, if there is no witness.
// It must be the attachment's only release in that time.
const restartTime = time.Second

// ask asks the witness which container sent req, if req has no name. Call it before the transaction, because the answer
// may take a quarter of a second, and the witness's first view after the daemon's start a little longer.
func ask(ctx context.Context, s *ledger.Ledger, req *ipam.AddressRequest) {
	if req.Gateway || req.Seen {
		return
	}
	if first := s.Known().FirstView; first != nil {
		first(ctx)
	}
	if s.Known().Ask == nil {
		return
	}
	at := s.Attachment(req.Pool)
	if at == nil || !guessable(req, at) {
		return
	}
	req.Hint = s.Known().Ask(ctx, ipam.Question{Space: at.Space, CIDR: at.CIDR, Address: req.Preferred,
		Held: ledger.Ask(s, func(ix *ledger.Index) bool { return held(ix, at, req.Preferred) })})
	if len(req.Hint.Name) > ipam.MaxText { // no lease could keep it
		req.Hint.Name = ""
	}
}

// held reports whether the index knows a lease of an address in an attachment's subnet.
func held(ix *ledger.Index, at *ipam.Attachment, addr netip.Addr) bool {
	sx := ix.Subnet(at.Subnet)
	return addr.IsValid() && sx != nil && sx.Claim(addr).Held
}

// guessable reports whether req can be from a container that sends no name. A swarm's manager asks for all of its
// nodes.
func guessable(req *ipam.AddressRequest, at *ipam.Attachment) bool {
	return req.Name == "" && !at.Swarm && !surelyAuxiliary(req, at)
}

// guess guesses which container sent a request without a name. It sets the name, and returns the container's address
// with its record. It uses the witness's hint or, without a witness, assumes a restart. It returns the zero address if
// it knows no container, or if the container's address is not free: a guess never causes a refusal.
func (t *Target) guess(req *ipam.AddressRequest) (addr netip.Addr, before *ipam.Lease, err error) {
	known := !guessable(req, t.At)
	if !known {
		known, err = t.knownByMAC(req.MAC)
	}
	named, pool := *req, t.Pool
	switch hint := &req.Hint; {
	case known || err != nil:
	case named.TakeHint():
		addr, before, err = t.choose(&named)
		if refused := new(ipam.Refusal); errors.As(err, &refused) {
			t.Pool = pool // a rule may have set it
			return netip.Addr{}, nil, nil
		}
	case !hint.Live && req.MAC == (ipam.MAC{}): // if the engine sends MACs, they identify the container
		before, err = t.restarted()
		if before != nil {
			addr, named.Name, named.Guessed = before.Address, before.Name, true
		}
	}
	if addr.IsValid() {
		*req = named
	}
	return addr, before, err
}

// knownByMAC reports whether an address is reserved or remembered for a MAC. That is more reliable than any guess.
func (t *Target) knownByMAC(mac ipam.MAC) (bool, error) {
	if mac == (ipam.MAC{}) {
		return false, nil
	}
	if t.Sx.ByOwner().Has(mac.String()) {
		return true, nil
	}
	m, err := t.Remembered(&ipam.AddressRequest{MAC: mac})
	return m != nil, err
}

// bootTime is the maximum time in which the containers of a stopping or starting engine release their addresses.
const bootTime = 30 * time.Second

// leftByOthers returns the free last address of a container that starts together with the requester. It takes them in
// the order in which the containers ended. While the engine boots, it takes them in the order of their release. So
// several containers that restart share only their own old addresses. The requester is unknown, so a quarantine counts.
// A container with a MAC of its own is not unknown: its MAC tells it from the others.
func (t *Target) leftByOthers(hint *ipam.Hint, may func(*ipam.Lease) bool) (*ipam.Lease, error) {
	free := func(m *ipam.Lease) bool { return IsMemory(m) && !chosenMAC(m.MAC) && Free(m, t.Now()) && may(m) }
	for _, name := range hint.Others {
		id := t.Known().ContainerOf(name)
		if m, err := LastHad(t.Sx, id, name, ipam.MAC{}, t.Record, IsMemory, free); m != nil || err != nil {
			return m, err
		}
	}
	var released []netip.Addr
	if len(hint.Others) > 0 || hint.Boots {
		released = t.Sx.LastReleased(bootTime)
	}
	for _, addr := range released {
		m, err := t.Record(addr)
		// A container with a MAC is recognized by it when it starts. An unknown holder that released its address just
		// before is one of several containers that restart together.
		if err != nil || free(m) && m.Attachment == t.At.ID && m.MAC == (ipam.MAC{}) &&
			(hint.Boots || m.Name == "" && t.Now().Sub(m.Left()) < bootTime) {
			return m, err
		}
	}
	return nil, nil
}

// chosenMAC reports whether a user chose the MAC. The MACs that engines before 28 draw begin with 02:42 (libnetwork's
// netutils), and later engines do not send what they draw.
func chosenMAC(mac ipam.MAC) bool { return mac != (ipam.MAC{}) && (mac[0] != 0x02 || mac[1] != 0x42) }

// givenBack records a release, because a restart may follow.
func givenBack(c *ledger.Change, l *ipam.Lease) {
	if l.Kind != ipam.Automatic && l.Kind != ipam.Static || l.Attachment == (ipam.ID{}) {
		return
	}
	before := c.Index().Turnover(l.Attachment)
	c.SetTurnover(l.Attachment,
		ledger.Turnover{Addr: l.Address, At: c.Now(), Crowded: c.Now().Sub(before.At) <= restartTime})
}

// restarted returns the memory of the only address that was released through the attachment a moment ago. It is nil if
// another address was released or taken since, or if this one is not available. The quarantine counts, because the
// requester is not certain. A requested address does not count, because its holder would request it again.
func (t *Target) restarted() (*ipam.Lease, error) {
	last, n := t.Index().Turnover(t.At.ID), t.Index().Network(t.Sub.Network)
	age := t.Now().Sub(last.At)
	if last.Crowded || age < 0 || age > restartTime || n == nil || n.Policy.Forget ||
		n.CheckAutomatic() != nil && !t.Sub.FromDHCP() {
		return nil, nil
	}
	m, err := t.Record(last.Addr)
	may := m.Remembered() && m.Kind == ipam.Automatic && m.Attachment == t.At.ID && Free(m, t.Now()) &&
		(t.Sub.FromDHCP() || t.recalls(m)) && !t.Kept.From(m.Name, m.Address)
	if !may {
		m = nil
	}
	return m, err
}
