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

// A fenced range answers while it has live elements, which the kernel removes after a timeout. Their timeout is the
// time left until the state's Until. But a process could be frozen after it has read the clock, and its late
// transaction would revive an expired range. Therefore each transaction needs a ticket. This is an element with a
// timeout of ticketTime that is added before the clock is read. The transaction deletes it, and fails completely if it
// has expired. So an element can last too long by at most ticketTime.

// ticketTime is the maximum delay between the reading of the clock and the transaction.
const ticketTime = 500 * time.Millisecond

// allowance says which ranges may be answered for, and until when.
type allowance struct {
	ranges []edge.Range
	ends   edge.BootTime
}

// timedSets are the sets of live elements, by the families whose tables have one.
var timedSets = map[knftables.Family]set{
	knftables.IPv4Family:   {name: setLive, keyType: "ipv4_addr", interval: true, timed: true},
	knftables.IPv6Family:   {name: setLive, keyType: "ipv6_addr", interval: true, timed: true},
	knftables.ARPFamily:    {name: setLive, keyType: "ipv4_addr", interval: true, timed: true},
	knftables.NetDevFamily: {name: setLive, keyType: "ipv4_addr", interval: true, timed: true},
}

// Renew implements edge.Provider.
func (p *Provider) Renew(ctx context.Context, until edge.BootTime) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.state == nil {
		return errors.New("there is nothing to renew: set the whole state first")
	}
	if len(p.live) == 0 && !p.fences() {
		p.state.Until = until
		return nil
	}
	if !p.whole { // the kernel may have addresses that the state no longer has, and would answer for them
		return errors.New("the last wanted state was not fully applied, so it cannot be renewed; set it again")
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
		// The deletion of the old elements fails completely if one has expired.
		err = p.extend(until, p.live)
		if err == nil {
			p.state.Until = until
			return nil
		}
		if !errors.Is(err, unix.ENOENT) {
			return err
		}
		// They have expired, which the next round finds, or the process was frozen for longer than ticketTime, or
		// others removed them.
		p.known = 0
		_, err = p.check(ctx)
		if err != nil {
			return err
		}
	}
	return errors.New("the renewal took too long too often; this host is too busy")
}

func (p *Provider) fences() bool {
	for _, r := range p.state.Ranges {
		if r.Fenced() {
			return true
		}
	}
	return false
}

// grant replaces all live elements by those of the state.
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
	return errors.New("elements of nftables expire faster than Berth can replace them; this host is too busy")
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

// extend replaces the present live elements by those that last until a moment.
func (p *Provider) extend(until edge.BootTime, present map[place]elements) error {
	ticket, err := p.takeTicket()
	if err != nil {
		return err
	}
	return p.spend(ticket, until, present)
}

// spend makes the transaction that needs the ticket.
func (p *Provider) spend(ticket elements, until edge.BootTime, present map[place]elements) error {
	now, err := edge.Now()
	if err != nil {
		return err
	}
	tx := p.kernel.begin()
	tx.remove(place{knftables.IPv4Family, setTicket}, ticketSet, ticket)
	for at, all := range present {
		tx.remove(at, timedSets[at.family], all)
	}
	granted, ends := map[place]elements{}, edge.BootTime(0)
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
		defer p.announcer.Again("") // neighbours may have learned something else meanwhile
	}
	p.allowed.Store(&allowance{ranges: p.state.Ranges, ends: ends})
	return p.wrote(2)
}

var ticketSet = set{name: setTicket, keyType: "mark", timed: true}

// takeTicket adds a new element that expires soon.
func (p *Provider) takeTicket() (elements, error) {
	p.ticket++
	var key [4]byte
	binary.NativeEndian.PutUint32(key[:], p.ticket)
	one := elements{string(key[:]): ""}
	tx := p.kernel.begin()
	tx.add(place{knftables.IPv4Family, setTicket}, ticketSet, one, ticketTime)
	return one, tx.commit()
}

// mayAnswer reports whether this host may still answer for a range.
func (a *allowance) mayAnswer(r edge.Range) bool {
	if !r.Fenced() {
		return true
	}
	now, err := edge.Now()
	return err == nil && now < a.ends
}
