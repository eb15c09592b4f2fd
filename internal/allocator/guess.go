package allocator

import (
	"context"
	"errors"
	"net/netip"
	"time"

	"berth/internal/ipam"
	"berth/internal/ipam/ledger"
)

// restartTime is how soon after the one release through an attachment a take is its restart, where no witness tells.
const restartTime = time.Second

// Ask asks the witness which container sent req, if req has no name. Call it before the transaction, because the answer
// may take a quarter of a second.
func Ask(ctx context.Context, s *ledger.Ledger, req *ipam.AddressRequest) {
	if s.Known().Ask == nil || req.Gateway || req.Seen {
		return
	}
	at := ledger.Ask(s, func(ix *ledger.Index) *ipam.Attachment { return ix.Attachment(req.Pool) })
	if at == nil || !guessable(req, at) {
		return
	}
	req.Hint = s.Known().Ask(ctx, ipam.Question{Space: at.Space, CIDR: at.CIDR, Address: req.Preferred})
	if len(req.Hint.Name) > ipam.MaxText { // no lease could keep it
		req.Hint.Name = ""
	}
}

// guessable tells whether req can be from a container that says no name. A swarm's manager asks for all of its nodes.
func guessable(req *ipam.AddressRequest, at *ipam.Attachment) bool {
	return req.Name == "" && !at.Swarm && !surelyAuxiliary(req, at)
}

// guessed is the address of whom a request without a name is taken for.
type guessed struct {
	req    ipam.AddressRequest // with the name
	addr   netip.Addr
	before *ipam.Lease // the address's record, nil where it has none
}

// guess finds out from whom a request without a name is, and that one's address: as if the name had been sent or,
// without a witness, by a restart. It is nil where nobody is known, or where what is known leads to no free address:
// a guess refuses nobody.
func (t *Target) guess(req ipam.AddressRequest) (*guessed, error) {
	if !guessable(&req, t.At) {
		return nil, nil
	}
	if known, err := t.knownByMAC(req.MAC); known || err != nil {
		return nil, err
	}
	req.Guessed = true
	switch hint := &req.Hint; {
	case hint.Name != "":
		req.Name = hint.Name
		return t.guessName(req)
	case hint.Live, req.MAC != (ipam.MAC{}): // where MACs are asked for, they are what tells one from another
		return nil, nil
	}
	m, err := t.restarted()
	if err != nil {
		return nil, err
	}
	if m == nil {
		return nil, nil
	}
	req.Name = m.Name
	return &guessed{req, m.Address, m}, nil
}

// guessName is what one of the name would be given.
func (t *Target) guessName(req ipam.AddressRequest) (*guessed, error) {
	pool := t.Pool
	addr, before, err := t.choose(&req)
	if err == nil {
		return &guessed{req, addr, before}, nil
	}
	if refused := new(ipam.Refusal); errors.As(err, &refused) {
		t.Pool = pool // which a rule may have set
		return nil, nil
	}
	return nil, err
}

// knownByMAC tells whether something is reserved or remembered for a MAC: that is surer than any guess.
func (t *Target) knownByMAC(mac ipam.MAC) (bool, error) {
	if mac == (ipam.MAC{}) {
		return false, nil
	}
	for range t.Sx.ByOwner().Of(mac.String()) {
		return true, nil
	}
	m, err := t.Remembered(&ipam.AddressRequest{MAC: mac})
	return m != nil, err
}

// bootTime is how long the containers of an engine that stops or starts take to give back their addresses.
const bootTime = 30 * time.Second

// leftByOthers is a free address that one had who starts together with whoever asks: in the order in which they ended
// or, while the engine boots, in which it gave the addresses back. So a restart of several gives out nothing but what
// they had. It is nobody's who is known, so that a quarantine counts.
func (t *Target) leftByOthers(hint *ipam.Hint, may func(*ipam.Lease) bool) (*ipam.Lease, error) {
	free := func(m *ipam.Lease) bool { return isMemory(m) && Free(m, t.Now()) && may(m) }
	for _, name := range hint.Others {
		id := t.Known().ContainerOf(name)
		if m, err := LastHad(t.Sx, id, name, ipam.MAC{}, t.read, free); m != nil || err != nil {
			return m, err
		}
	}
	if len(hint.Others) == 0 && !hint.Boots {
		return nil, nil
	}
	for _, addr := range t.Sx.LastReleased(bootTime) {
		m, err := t.read(addr)
		// one that has a MAC is known by that when it comes
		if err != nil || free(m) && m.Attachment == t.At.ID && m.MAC == (ipam.MAC{}) && (hint.Boots || t.justLeft(m)) {
			return m, err
		}
	}
	return nil, nil
}

// justLeft tells whether an address was given back a moment ago by one of whom nobody knows who it was: one of those
// that were restarted at once, and are again.
func (t *Target) justLeft(m *ipam.Lease) bool {
	return m.Name == "" && t.Now().Sub(m.Left()) < bootTime
}

// givenBack notes a release, after which a restart may come.
func givenBack(c *ledger.Change, l *ipam.Lease) {
	if l.Kind != ipam.Automatic && l.Kind != ipam.Static || l.Attachment == (ipam.ID{}) {
		return
	}
	before, was := c.Index().Turnover(l.Attachment)
	c.SetTurnover(l.Attachment,
		ledger.Turnover{Addr: l.Address, At: c.Now(), Crowded: was && c.Now().Sub(before.At) <= restartTime})
}

// restarted is the memory of the one address that was given back through the attachment a moment ago, with nothing
// given or taken since; nil where there is none, or it is not to be had. Its quarantine counts: who comes back is not
// sure. Who had asked for it by address would do so again.
func (t *Target) restarted() (*ipam.Lease, error) {
	last, was := t.Index().Turnover(t.At.ID)
	age := t.Now().Sub(last.At)
	if !was || last.Crowded || age < 0 || age > restartTime {
		return nil, nil
	}
	n := t.Index().Network(t.Sub.Network)
	if n == nil || n.Policy.Forget || n.CheckAutomatic() != nil && !t.Sub.FromDHCP() {
		return nil, nil
	}
	m, err := t.Lease(t.Sub.ID, last.Addr)
	if err != nil {
		return nil, err
	}
	if !m.Remembered() || m.Kind != ipam.Automatic || m.Attachment != t.At.ID || !Free(m, t.Now()) {
		return nil, nil
	}
	if !t.Sub.FromDHCP() && !t.recalls(m) || t.Kept.From(m.Name, m.Address) {
		return nil, nil
	}
	return m, nil
}
