package nft

import (
	"context"
	"encoding/binary"
	"errors"
	"time"

	"berth/internal/edge"

	"golang.org/x/sys/unix"
	"sigs.k8s.io/knftables"
)

// Fenced ranges answer by live elements, which the kernel ends. An element gets the time that is left until the state's
// Until; but a process can be frozen between reading the clock and the transaction, and would then give an expired
// range a new life. Therefore each transaction needs a ticket: an element that was put in before the clock was read,
// and which ends after ticketTime. The transaction deletes it, and so fails as a whole where it has ended. What is
// granted may last too long by ticketTime, and never by more.

// ticketTime is how late a transaction may come after its look at the clock.
const ticketTime = 500 * time.Millisecond

// allowance is until when which ranges may be answered for.
type allowance struct {
	ranges []edge.Range
	ends   edge.Moment
}

// timedSet is a set of live elements, with the families whose tables have one.
var timedSets = map[knftables.Family]set{
	knftables.IPv4Family:   {name: setLive, keyType: "ipv4_addr", interval: true, timed: true},
	knftables.IPv6Family:   {name: setLive, keyType: "ipv6_addr", interval: true, timed: true},
	knftables.ARPFamily:    {name: setLive, keyType: "ipv4_addr", interval: true, timed: true},
	knftables.NetDevFamily: {name: setLive, keyType: "ipv4_addr", interval: true, timed: true},
}

// Renew is edge.Provider's.
func (p *Provider) Renew(ctx context.Context, until edge.Moment) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.state == nil {
		return errors.New("nothing was set that could be renewed: set the whole state first")
	}
	if len(p.live) == 0 && !p.fences() {
		p.state.Until = until
		return nil
	}
	if !p.whole { // the kernel may have what the state has no more, and would answer for it
		return errors.New("the state that was set last is not in place: set it again")
	}
	for range attempts {
		now, err := edge.Now()
		if err != nil {
			return err
		}
		if ends := p.allowed.Load().ends; now >= ends || until <= now {
			p.expired.Add(1)
			return edge.ErrExpired
		}
		// Deleting what was granted before fails as a whole once that has ended.
		err = p.extend(until, p.live)
		if err == nil {
			p.state.Until = until
			return nil
		}
		if !errors.Is(err, unix.ENOENT) {
			return err
		}
		// Ended, which the next round finds; or frozen for longer than a ticket lasts; or taken away by others.
		p.known = 0
		_, err = p.check(ctx)
		if err != nil {
			return err
		}
	}
	return errors.New("the renewal came too late for its ticket again and again; this host is too busy")
}

func (p *Provider) fences() bool {
	for _, r := range p.state.Ranges {
		if r.Fenced() {
			return true
		}
	}
	return false
}

// grant makes the live elements those of the state, whichever are there.
func (p *Provider) grant(context.Context) error {
	for range attempts {
		found, err := p.kernel.structure()
		if err != nil {
			return err
		}
		live, err := p.readLive(found)
		if err != nil {
			return err
		}
		if len(live) == 0 && !p.fences() {
			p.live = nil
			return nil
		}
		err = p.extend(p.state.Until, live)
		if !errors.Is(err, unix.ENOENT) {
			return err
		}
	}
	return errors.New("live elements end between each look and its transaction; this host is too busy")
}

func (p *Provider) readLive(found map[knftables.Family]foundTable) (map[place]elements, error) {
	live := map[place]elements{}
	for family, s := range timedSets {
		had := found[family].sets[s.name]
		if had == nil {
			continue
		}
		all, err := p.kernel.elements(had)
		if err != nil {
			return nil, err
		}
		if len(all) > 0 {
			live[place{family, s.name}] = all
		}
	}
	return live, nil
}

// extend replaces the live elements that are there by those that may be until a moment.
func (p *Provider) extend(until edge.Moment, present map[place]elements) error {
	ticket, err := p.takeTicket()
	if err != nil {
		return err
	}
	return p.spend(ticket, until, present)
}

// spend is the transaction that needs the ticket.
func (p *Provider) spend(ticket elements, until edge.Moment, present map[place]elements) error {
	now, err := edge.Now()
	if err != nil {
		return err
	}
	tx := p.kernel.begin()
	tx.remove(place{knftables.IPv4Family, setTicket}, ticketSet, ticket)
	for at, all := range present {
		tx.remove(at, timedSets[at.family], all)
	}
	granted, ends := map[place]elements{}, edge.Moment(0)
	for _, r := range p.state.Ranges {
		timeout := r.Timeout(now, until).Truncate(time.Millisecond)
		if !r.Fenced() || timeout <= 0 {
			continue
		}
		if last := now.Add(timeout); ends == 0 || last < ends {
			ends = last
		}
		for _, family := range gatesOf(r.From) {
			at := place{family, setLive}
			one := elements{bytesOf(r.From): endOf(r.To)}
			tx.add(at, timedSets[family], one, timeout)
			if granted[at] == nil {
				granted[at] = elements{}
			}
			granted[at][bytesOf(r.From)] = endOf(r.To)
		}
	}
	err = tx.commit()
	if err != nil {
		p.known = 0
		return err
	}
	p.live = granted
	if had := p.allowed.Load().ends; had != 0 && had < now {
		defer p.announcer.Again("") // somebody else may have been believed meanwhile
	}
	p.allowed.Store(&allowance{ranges: p.state.Ranges, ends: ends})
	return p.wrote(2)
}

var ticketSet = set{name: setTicket, keyType: "mark", timed: true}

// takeTicket puts an element in that was never there, and that ends soon.
func (p *Provider) takeTicket() (elements, error) {
	p.ticket++
	var key [4]byte
	binary.NativeEndian.PutUint32(key[:], p.ticket)
	one := elements{string(key[:]): ""}
	tx := p.kernel.begin()
	tx.add(place{knftables.IPv4Family, setTicket}, ticketSet, one, ticketTime)
	return one, tx.commit()
}

// mayAnswer: this host may still say of an address that it is here.
func (a *allowance) mayAnswer(r edge.Range) bool {
	if !r.Fenced() {
		return true
	}
	now, err := edge.Now()
	return err == nil && now < a.ends
}
