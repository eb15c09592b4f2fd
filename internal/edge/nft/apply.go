package nft

import (
	"context"
	"errors"
	"fmt"
	"maps"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
	"sigs.k8s.io/knftables"
)

// attempts is how often a transaction is tried if others write to nftables at the same time.
const attempts = 4

// load repairs the tables and reads their contents, unless nobody has written to nftables since they were read. It
// returns what was missing, and whether it read the tables.
func (p *Provider) load(ctx context.Context) (gone []string, looked bool, err error) {
	devices, err := p.heldDevices()
	if err != nil {
		return nil, false, err
	}
	now, err := p.kernel.generation()
	if err != nil {
		return nil, false, err
	}
	if p.known != 0 && now == p.known && maps.Equal(devices, p.devices) {
		return nil, false, nil
	}
	p.known, p.devices = 0, devices
	for range attempts {
		more, err := p.look(ctx)
		if err != nil {
			return nil, false, err
		}
		gone = append(gone, more...)
		if p.known != 0 {
			return gone, true, nil
		}
	}
	return nil, false, errors.New("other programs keep changing nftables, so it cannot be read as a whole; try again")
}

// look reads everything once. known stays zero if others write meanwhile.
func (p *Provider) look(ctx context.Context) ([]string, error) {
	found, err := p.kernel.structure()
	if err != nil {
		return nil, err
	}
	want := schema(mark{p.config.Mark, p.config.Mask}, p.devices)
	gone, err := p.mend(ctx, want, found, p.want)
	if err != nil {
		return nil, err
	}
	if len(gone) > 0 {
		return gone, nil // the next call reads the repaired tables
	}
	before, err := p.kernel.generation()
	if err != nil {
		return nil, err
	}
	have, err := p.read(found)
	if errors.Is(err, unix.ENOENT) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	after, err := p.kernel.generation()
	if err != nil {
		return nil, err
	}
	if before == after {
		p.have, p.known = have, after
	}
	return nil, nil
}

// read returns the contents of the sets whose elements have no timeout.
func (p *Provider) read(found map[knftables.Family]foundTable) (contents, error) {
	all := contents{}
	for _, t := range schema(mark{}, nil) {
		for _, s := range t.sets {
			had := found[t.family].sets[s.name]
			if had == nil || s.timed || s.name == setTicket {
				continue
			}
			of, err := p.kernel.elements(had)
			if err != nil {
				return nil, err
			}
			all[place{t.family, s.name}] = of
		}
	}
	return all, nil
}

// move writes the difference between the current and the wanted contents in one transaction.
func (p *Provider) move(ctx context.Context, change delta) error {
	for range attempts {
		tx := p.kernel.begin()
		for _, t := range schema(mark{}, nil) {
			for _, s := range t.sets {
				at := place{t.family, s.name}
				tx.remove(at, s, change[at].remove)
				tx.add(at, s, change[at].add, 0)
			}
		}
		if tx.empty {
			p.have = p.want
			return nil
		}
		err := tx.commit()
		if err == nil {
			p.have = p.want
			return p.wrote(1)
		}
		p.known = 0
		if !errors.Is(err, unix.ENOENT) && !errors.Is(err, unix.EEXIST) {
			return err
		}
		_, _, err = p.load(ctx) // others wrote between the read and the transaction
		if err != nil {
			return err
		}
		change = deltaOf(p.have, p.want)
	}
	return errors.New("other programs keep changing Berth's tables; stop them, and try again")
}

// wrote advances the known generation by our own transactions. Any other number means that others wrote, too.
func (p *Provider) wrote(transactions uint32) error {
	now, err := p.kernel.generation()
	if err != nil {
		return err
	}
	if p.known == 0 || now != p.known+transactions {
		p.known = 0
		return nil
	}
	p.known = now
	return nil
}

// heldDevices returns the devices that announce a fenced IPv4 range, by index.
func (p *Provider) heldDevices() (map[int]string, error) {
	devices := map[int]string{}
	if !p.egress {
		return devices, nil
	}
	for _, r := range p.state.Ranges {
		if r.Announce == "" || !r.Fenced() || !r.From.Is4() {
			continue
		}
		link, err := netlink.LinkByName(r.Announce)
		if missing := (netlink.LinkNotFoundError{}); errors.As(err, &missing) {
			continue // reported for each of its addresses when they cannot be added
		}
		if err != nil {
			return nil, fmt.Errorf("cannot look for the device %s: %w", r.Announce, err)
		}
		devices[link.Attrs().Index] = r.Announce
	}
	return devices, nil
}
