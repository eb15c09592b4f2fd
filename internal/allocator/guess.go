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

// guessable reports whether req can be from a container that sends no name. A swarm's manager asks for all of its
// nodes.
func guessable(req *ipam.AddressRequest, at *ipam.Attachment) bool {
	return req.Name == "" && !at.Swarm && !surelyAuxiliary(req, at)
}

// guessed is a request with a guessed name, and its address.
type guessed struct {
	req    ipam.AddressRequest // with the name
	addr   netip.Addr
	before *ipam.Lease // the address's record, or nil
}

// guess guesses which container sent a request without a name, and returns its address. It uses the witness's hint or,
// without a witness, assumes a restart. It returns nil if it knows no container, or if the container's address is not
// free: a guess never causes a refusal.
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
	case hint.Live, req.MAC != (ipam.MAC{}): // if the engine sends MACs, they identify the container
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

// guessName returns the address for the guessed name in req, or nil if there is none.
func (t *Target) guessName(req ipam.AddressRequest) (*guessed, error) {
	pool := t.Pool
	addr, before, err := t.choose(&req)
	if err == nil {
		return &guessed{req, addr, before}, nil
	}
	if refused := new(ipam.Refusal); errors.As(err, &refused) {
		t.Pool = pool // a rule may have set it
		return nil, nil
	}
	return nil, err
}

// knownByMAC reports whether an address is reserved or remembered for a MAC. That is more reliable than any guess.
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

// bootTime is the maximum time in which the containers of a stopping or starting engine release their addresses.
const bootTime = 30 * time.Second

// leftByOthers returns the free last address of a container that starts together with the requester. It takes them in
// the order in which the containers ended. While the engine boots, it takes them in the order of their release. So
// several containers that restart share only their own old addresses. The requester is unknown, so a quarantine counts.
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
		// a container with a MAC is recognized by it when it starts
		if err != nil || free(m) && m.Attachment == t.At.ID && m.MAC == (ipam.MAC{}) && (hint.Boots || t.justLeft(m)) {
			return m, err
		}
	}
	return nil, nil
}

// justLeft reports whether an unknown holder released an address a moment ago. It is one of several containers that
// restart together.
func (t *Target) justLeft(m *ipam.Lease) bool {
	return m.Name == "" && t.Now().Sub(m.Left()) < bootTime
}

// givenBack records a release, because a restart may follow.
func givenBack(c *ledger.Change, l *ipam.Lease) {
	if l.Kind != ipam.Automatic && l.Kind != ipam.Static || l.Attachment == (ipam.ID{}) {
		return
	}
	before, was := c.Index().Turnover(l.Attachment)
	c.SetTurnover(l.Attachment,
		ledger.Turnover{Addr: l.Address, At: c.Now(), Crowded: was && c.Now().Sub(before.At) <= restartTime})
}

// restarted returns the memory of the only address that was released through the attachment a moment ago. It is nil if
// another address was released or taken since, or if this one is not available. The quarantine counts, because the
// requester is not certain. A requested address does not count, because its holder would request it again.
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
