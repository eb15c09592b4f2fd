package crash

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"sync"

	api "github.com/docker/go-plugins-helpers/ipam"
)

const optMAC = "com.docker.network.endpoint.macaddress"

// lease is one address that a caller has requested.
type lease struct {
	pool     string
	mac      string
	addr     string // from the answer; empty: no answer came, it may have been taken or not
	released bool   // its release was requested, answered or not
}

// pool is one acknowledged attachment.
type pool struct {
	id, cidr string
	released bool
}

// ledger is what a daemon has told its callers, across its restarts.
type ledger struct {
	*place
	*book
	onePool bool // callers attach no pools of their own
	pools   []*pool
}

// book is the shared record of ledgers: hosts with a common subnet write to one.
type book struct {
	mu     sync.Mutex
	next   int               // of MACs
	open   map[string]*lease // by MAC: no acknowledged release
	holder map[string]*lease // by address: acknowledged, and no release requested
	acked  int
	wake   chan struct{} // gets a value when acked reaches until
	until  int
	failed string // the first refusal of a caller that names a file
}

func newBook() *book {
	return &book{open: map[string]*lease{}, holder: map[string]*lease{}, wake: make(chan struct{}, 1)}
}

func newLedger(p *place) *ledger { return &ledger{place: p, book: newBook()} }

// note records a caller's refusal if the disk caused it.
func (l *ledger) note(text string) {
	if !strings.Contains(text, l.db()) {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.failed == "" {
		l.failed = text
	}
}

// noted is the first refusal that note recorded.
func (l *ledger) noted() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.failed
}

// wakeAfter makes wake get a value after n further acknowledgements.
func (l *book) wakeAfter(n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.until = l.acked + n
}

// heard counts an acknowledgement. mu is held.
func (l *book) heard() {
	l.acked++
	if l.acked == l.until {
		select {
		case l.wake <- struct{}{}:
		default:
		}
	}
}

// begin records that a new holder will request an address, with its own MAC.
func (l *ledger) begin(pool string) *lease {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.next++
	n := l.next
	le := &lease{pool: pool, mac: fmt.Sprintf("02:42:%02x:%02x:%02x:%02x", n>>24&0xff, n>>16&0xff, n>>8&0xff, n&0xff)}
	l.open[le.mac] = le
	return le
}

// took records the answer, and fails the test if another holder has the address.
func (l *ledger) took(le *lease, address string) {
	addr := netip.MustParsePrefix(address).Addr().String()
	l.mu.Lock()
	defer l.mu.Unlock()
	if other := l.holder[addr]; other != nil && other != le {
		l.t.Errorf("LOST or GIVEN TWICE: %s is held by %s and was given to %s", addr, other.mac, le.mac)
	}
	le.addr = addr
	l.holder[addr] = le
	l.heard()
}

// drop records that nothing was taken.
func (l *ledger) drop(le *lease) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.open, le.mac)
}

// releasing records that a release is about to be requested: from now on any holder may have the address.
func (l *ledger) releasing(le *lease) {
	l.mu.Lock()
	defer l.mu.Unlock()
	le.released = true
	if l.holder[le.addr] == le {
		delete(l.holder, le.addr)
	}
}

// releasedFor records that the release was answered.
func (l *ledger) releasedFor(le *lease) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.open, le.mac)
	l.heard()
}

// take requests an address.
func (l *ledger) take(pool, addr string) (*lease, error) {
	le := l.begin(pool)
	return le, l.ask(le, addr)
}

func (l *ledger) ask(le *lease, addr string) error {
	r, err := l.call("RequestAddress",
		api.RequestAddressRequest{PoolID: le.pool, Address: addr, Options: map[string]string{optMAC: le.mac}})
	if err == nil {
		l.took(le, r.Address)
		return nil
	}
	if text, ok := refused(err); ok && !strings.Contains(text, "unknown") {
		l.drop(le)
	}
	return err
}

// give releases an address.
func (l *ledger) give(le *lease) error {
	l.releasing(le)
	_, err := l.call("ReleaseAddress", api.ReleaseAddressRequest{PoolID: le.pool, Address: le.addr})
	if err == nil {
		l.releasedFor(le)
	}
	return err
}

// attach requests a pool.
func (l *ledger) attach(cidr string, options map[string]string) (*pool, error) {
	if l.space != "local" {
		options = maps.Clone(options)
		if options == nil {
			options = map[string]string{}
		}
		options["space"] = l.space
	}
	r, err := l.call("RequestPool", api.RequestPoolRequest{AddressSpace: "local", Pool: cidr, Options: options})
	if err != nil {
		return nil, err
	}
	p := &pool{id: r.PoolID, cidr: r.Pool}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.pools = append(l.pools, p)
	l.heard()
	return p, nil
}

// detach releases a pool.
func (l *ledger) detach(p *pool) error {
	l.mu.Lock()
	p.released = true
	l.mu.Unlock()
	_, err := l.call("ReleasePool", api.ReleasePoolRequest{PoolID: p.id})
	if err == nil {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.heard()
	}
	return err
}

// verify checks everything that the daemon acknowledged, with no other callers: each address still belongs to its
// holder, and a stranger is refused. It then completes the calls without an answer.
func (l *ledger) verify() {
	l.t.Helper()
	for _, p := range l.pools {
		if p.released {
			continue
		}
		if le, err := l.take(p.id, ""); err != nil {
			l.t.Errorf("LOST: pool %s of %s: %v", p.id, p.cidr, err)
		} else if err := l.give(le); err != nil {
			l.t.Error(err)
		}
	}
	open := slices.Collect(maps.Values(l.open))
	for _, le := range open {
		if !le.released && le.addr != "" {
			l.verifyHeld(le)
		}
	}
	for _, le := range open {
		if le.addr != "" {
			continue
		}
		// Taken or not, it gets an address now.
		if err := l.ask(le, ""); err != nil {
			l.t.Errorf("%s, whose first call was not answered, asks again: %v", le.mac, err)
		} else {
			l.mustGive(le)
		}
	}
	// Last, because a release names an address, and another holder may have it by now.
	for _, le := range open {
		if le.released && l.holder[le.addr] == nil {
			l.mustGive(le)
		}
	}
}

func (l *ledger) mustGive(le *lease) {
	l.t.Helper()
	if err := l.give(le); err != nil {
		l.t.Errorf("releasing %s: %v", le.addr, err)
	}
}

// verifyHeld requests an address as a stranger: the refusal must name the holder. The holder itself does not ask:
// in the same life of the daemon a repeated request counts as another endpoint.
func (l *ledger) verifyHeld(le *lease) {
	l.t.Helper()
	_, err := l.call("RequestAddress",
		api.RequestAddressRequest{PoolID: le.pool, Address: le.addr,
			Options: map[string]string{optMAC: "02:00:00:00:00:01"}})
	if text, ok := refused(err); !ok || !strings.Contains(text, le.mac) {
		l.t.Errorf("GIVEN TWICE: %s is held by %s, and a stranger gets: %v", le.addr, le.mac, err)
	}
}
