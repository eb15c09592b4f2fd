package allocator

import (
	"fmt"
	"slices"

	"berth/internal/ipam"
	"berth/internal/ipam/ledger"
	"berth/store"
)

// The first bytes of the keys of stand-ins, by their own name and by the replaced name. All first bytes are in
// ledger/keys.go.
const (
	StandInKeys    = 'w'
	standInForKeys = 'o'
)

// StandInKey is the key of a stand-in by its own name.
func StandInKey(name, host string) []byte { return hostedKey(StandInKeys, name, host) }

// StandInForKey is the key of a stand-in by the name that it replaces.
func StandInForKey(name, host string) []byte { return hostedKey(standInForKeys, name, host) }

func hostedKey(kind byte, name, host string) []byte {
	return slices.Concat([]byte{kind}, []byte(name), []byte{0}, []byte(host))
}

// standIn returns the reserved address of the replica that req's container stands in for, claimed now or before. It is
// nil if the container stands in for none, or if that address is not free. A guess claims nothing.
func (t *Target) standIn(req ipam.AddressRequest, who ipam.Meaning) (*ipam.Lease, error) {
	if req.Guessed || t.Sx.Reserved() == 0 || t.At.Swarm || t.Known().Newcomer == nil || !numbered(who.Final) {
		return nil, nil
	}
	has, err := ReadStandIn(t.Change, StandInKey(req.Name, t.Host()))
	if err != nil {
		return nil, err
	}
	if has != nil {
		id, live := t.Known().Container(req.Name)
		switch {
		case !live || id == has.ID:
			return t.reservedOfName(has.For)
		case id == "":
			return nil, nil // it is not known yet which container this is
		}
		if err := EndStandIn(t.Change, has); err != nil {
			return nil, err
		}
	}
	comer := t.Known().Newcomer(req.Name)
	if comer.ID == "" || len(comer.Vacant) == 0 || ownsAnything(t.Change, who) {
		return nil, nil
	}
	for i := range comer.Vacant {
		if l, err := t.claimVacancy(req.Name, &comer, &comer.Vacant[i]); err != nil {
			return l, err
		} else if l != nil {
			return l, nil
		}
	}
	return nil, nil
}

// numbered reports whether Compose can have generated a name.
func numbered(name string) bool {
	for range ipam.ComposeOwners(name) {
		return true
	}
	return false
}

// claimVacancy makes a newcomer stand in for a destroyed container, and returns the address. It returns nil if the
// destroyed one has no free reservation here, or if another container stands in for it. A higher replica that stayed
// must have a reservation.
func (t *Target) claimVacancy(name string, comer *ipam.Newcomer, v *ipam.Vacancy) (*ipam.Lease, error) {
	other, err := ReadStandIn(t.Change, StandInForKey(v.Name, t.Host()))
	if err != nil {
		return nil, err
	}
	if other != nil && slices.Contains(comer.Replicas, other.ID) {
		return nil, nil
	}
	n := t.Index().Network(t.Sub.Network)
	stayed := slices.ContainsFunc(v.Above, func(above string) bool { return ownsAnything(t.Change, n.Meaning(above)) })
	l, err := t.reservedOfName(v.Name)
	if err != nil {
		return nil, err
	}
	if l == nil || !stayed {
		return nil, nil
	}
	if other != nil {
		if err := EndStandIn(t.Change, other); err != nil {
			return nil, err
		}
	}
	s := &ipam.StandIn{Name: name, ID: comer.ID, For: v.Name, Host: t.Host(), Since: t.Now()}
	if err := WriteStandIn(t.Change, s); err != nil {
		return nil, err
	}
	_, err = t.Event(&ipam.Event{Verb: ipam.StoodIn, Space: t.Sub.Space, Subnet: t.Sub.CIDR, Address: l.Address,
		Attachment: t.At.ID, Name: name,
		Detail: fmt.Sprintf("stands in for %s, the container of %s, which was destroyed", v.Name, l.Reservation.Owner)})
	return l, err
}

// reservedOfName returns the free address that is reserved for an owner of a container's name, or nil.
func (t *Target) reservedOfName(name string) (*ipam.Lease, error) {
	for owner := range t.Index().Network(t.Sub.Network).Owners(name) {
		free, held, err := t.Reservations(t.Sub.ID, owner)
		if err != nil {
			return nil, err
		}
		for _, l := range free {
			if !l.Reservation.Replaced {
				return l, nil
			}
		}
		if len(held) > 0 {
			return nil, nil
		}
	}
	return nil, nil
}

// ownsAnything reports whether an owner of a name has a reservation in any network.
func ownsAnything(c *ledger.Change, who ipam.Meaning) bool {
	for owner := range who.Owners {
		for _, sx := range c.Index().Subnets() {
			if sx.Reserved() == 0 {
				continue
			}
			for range sx.ByOwner().Of(owner) {
				return true
			}
		}
	}
	return false
}

// ReadStandIn reads the record at a key. It returns nil if there is none.
func ReadStandIn(c *ledger.Change, key []byte) (*ipam.StandIn, error) {
	return ledger.ReadJSON[ipam.StandIn](c.Tx(), key, "who stands in for a container")
}

// CheckStandIns reports each stand-in record that does not decode or has the wrong key.
func CheckStandIns(tx store.Tx, found func(error)) error {
	for _, kind := range []byte{StandInKeys, standInForKeys} {
		for rec, err := range tx.Scan(ledger.KindRange(kind)) {
			if err != nil {
				return err
			}
			if err := checkStandIn(rec); err != nil {
				found(err)
			}
		}
	}
	return nil
}

// checkStandIn returns an error if a record does not match its key.
func checkStandIn(rec store.Record) error {
	var s ipam.StandIn
	if err := ipam.DecodeJSON("who stands in for a container", rec.Value, &s); err != nil {
		return err
	}
	if key := string(rec.Key); key != string(StandInKey(s.Name, s.Host)) &&
		key != string(StandInForKey(s.For, s.Host)) {
		return fmt.Errorf("%w: the record of %s, which stands in for %s, is not in its place", ipam.ErrDamaged, s.Name,
			s.For)
	}
	return nil
}

// WriteStandIn writes both records of a stand-in.
func WriteStandIn(c *ledger.Change, s *ipam.StandIn) error {
	for _, key := range keysOf(s) {
		if _, err := c.PutJSON(key, s); err != nil {
			return err
		}
	}
	return nil
}

func removeStandIn(c *ledger.Change, s *ipam.StandIn) error {
	for _, key := range keysOf(s) {
		if err := c.Tx().Delete(key); err != nil {
			return err
		}
	}
	return nil
}

func keysOf(s *ipam.StandIn) [][]byte {
	return [][]byte{StandInKey(s.Name, s.Host), StandInForKey(s.For, s.Host)}
}

// PutStandIns writes the stand-ins that have no record yet. If a container is gone by now, the witness's next look ends
// its stand-in.
func PutStandIns(c *ledger.Change, all []ipam.StandIn) error {
	for i := range all {
		in := &all[i]
		has, err := ReadStandIn(c, StandInKey(in.Name, in.Host))
		if err != nil {
			return err
		}
		other, err := ReadStandIn(c, StandInForKey(in.For, in.Host))
		if err != nil {
			return err
		}
		if has != nil || other != nil {
			continue
		}
		if err := WriteStandIn(c, in); err != nil {
			return err
		}
	}
	return nil
}

// EndStandIn ends a stand-in, with its event.
func EndStandIn(c *ledger.Change, s *ipam.StandIn) error {
	if _, err := c.Event(&ipam.Event{Verb: ipam.StandInEnded, Name: s.Name, Detail: "it stood in for " + s.For +
		", and was destroyed"}); err != nil {
		return err
	}
	return removeStandIn(c, s)
}
