package allocator

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

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
func (t *Target) standIn(req ipam.AddressRequest, who ipam.Meaning) (l *ipam.Lease, err error) {
	known := t.Known()
	if req.Guessed || t.Sx.Reserved() == 0 || t.At.Swarm || known.Replica == nil || !who.IsReplica() {
		return nil, nil
	}
	has, err := ReadStandIn(t.Change, StandInKey(req.Name, t.Host()))
	if err != nil {
		return nil, err
	}
	if has != nil {
		id, live := known.Container(req.Name)
		if !live || id == has.ID {
			return t.reservedOf(has.For)
		}
		if id == "" {
			return nil, nil // it is not known yet which container this is
		}
		if err := endStandIn(t.Change, has); err != nil {
			return nil, err
		}
	}
	replica := known.Replica(req.Name)
	if replica.ID == "" || len(replica.Removed) == 0 || ownsAnything(t.Change, who) {
		return nil, nil
	}
	for i := 0; i < len(replica.Removed) && l == nil && err == nil; i++ {
		l, err = t.standInFor(&replica.Removed[i], req.Name, &replica)
	}
	return l, err
}

// standInFor makes a new replica stand in for a destroyed one, and returns the address. It returns nil if the destroyed
// one has no free reservation here, or if another container stands in for it. A higher replica that stayed must have a
// reservation.
func (t *Target) standInFor(old *ipam.RemovedReplica, name string, replica *ipam.Replica) (*ipam.Lease, error) {
	other, err := ReadStandIn(t.Change, StandInForKey(old.Name, t.Host()))
	if err != nil {
		return nil, err
	}
	n := t.Index().Network(t.Sub.Network)
	stayed := slices.ContainsFunc(old.Above,
		func(above string) bool { return ownsAnything(t.Change, n.Meaning(above)) })
	if !stayed || other != nil && slices.Contains(replica.Replicas, other.ID) {
		return nil, nil
	}
	l, err := t.reservedOf(old.Name)
	if err != nil || l == nil {
		return nil, err
	}
	if other != nil {
		if err := endStandIn(t.Change, other); err != nil {
			return nil, err
		}
	}
	s := &ipam.StandIn{Name: name, ID: replica.ID, For: old.Name, Host: t.Host(), Since: t.Now()}
	if err := WriteStandIn(t.Change, s); err != nil {
		return nil, err
	}
	_, err = t.Event(&ipam.Event{Verb: ipam.StoodIn, Space: t.Sub.Space, Subnet: t.Sub.CIDR, Address: l.Address,
		Attachment: t.At.ID, Name: name, Detail: fmt.Sprintf("stands in for %s, the destroyed container of %s",
			old.Name, l.Reservation.Owner)})
	return l, err
}

// reservedOf returns the free address that is reserved for an owner of a container's name, or nil.
func (t *Target) reservedOf(name string) (*ipam.Lease, error) {
	l, err := t.reservation(t.Index().Network(t.Sub.Network).Owners(name))
	if l.Held() {
		return nil, err
	}
	if l != nil {
		if _, runs := t.runsElsewhere(l.Address, ""); runs {
			return nil, err
		}
	}
	return l, err
}

// ownsAnything reports whether an owner of a name has a reservation in any network.
func ownsAnything(c *ledger.Change, who ipam.Meaning) bool {
	for owner := range who.Owners {
		for _, sx := range c.Index().Subnets() {
			if sx.ByOwner().Has(owner) {
				return true
			}
		}
	}
	return false
}

// ReadStandIn reads the record at a key. It returns nil if there is none.
func ReadStandIn(c *ledger.Change, key []byte) (*ipam.StandIn, error) {
	return ledger.ReadJSON[ipam.StandIn](c.Tx(), key, "a stand-in")
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
	if err := ipam.DecodeJSON("a stand-in", rec.Value, &s); err != nil {
		return err
	}
	if key := string(rec.Key); key != string(StandInKey(s.Name, s.Host)) &&
		key != string(StandInForKey(s.For, s.Host)) {
		return fmt.Errorf("%w: the record of %s, which stands in for %s, has the wrong key", ipam.ErrDamaged, s.Name,
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

// endStandIn ends a stand-in, with its event.
func endStandIn(c *ledger.Change, s *ipam.StandIn) error {
	if _, err := c.Event(&ipam.Event{Verb: ipam.StandInEnded, Name: s.Name, Detail: "it stood in for " + s.For +
		", and was destroyed"}); err != nil {
		return err
	}
	for _, key := range keysOf(s) {
		if err := c.Tx().Delete(key); err != nil {
			return err
		}
	}
	return nil
}

// StandIns lists the containers of this host that stand in for others, by name.
func (s Allocator) StandIns(ctx context.Context) (all []ipam.StandIn, err error) {
	for _, l := range s.homes.All() {
		some, err := standIns(ctx, l)
		if err != nil {
			return nil, err
		}
		all = append(all, some...)
	}
	return all, nil
}

func standIns(ctx context.Context, l *ledger.Ledger) (all []ipam.StandIn, err error) {
	all, err = ledger.View(ctx, l, func(tx store.Tx) ([]ipam.StandIn, error) {
		return ledger.AllJSON[ipam.StandIn](tx, ledger.KindRange(StandInKeys), "a stand-in")
	})
	all = slices.DeleteFunc(all, func(one ipam.StandIn) bool { return one.Host != l.Host() })
	slices.SortFunc(all, func(a, b ipam.StandIn) int {
		return cmp.Or(strings.Compare(a.Name, b.Name), strings.Compare(a.ID, b.ID))
	})
	return all, err
}

// EndStandIns ends the stand-ins whose containers were destroyed. It skips one that has another container by now.
func (s Allocator) EndStandIns(ctx context.Context, gone []ipam.StandIn) error {
	for _, l := range s.homes.All() {
		if err := endStandIns(ctx, l, gone); err != nil {
			return err
		}
	}
	return nil
}

func endStandIns(ctx context.Context, l *ledger.Ledger, gone []ipam.StandIn) error {
	for page := range slices.Chunk(gone, ipam.MaxEdits) {
		err := l.Update(ctx, func(c *ledger.Change) error {
			for i := range page {
				now, err := ReadStandIn(c, StandInKey(page[i].Name, page[i].Host))
				if err != nil {
					return err
				}
				if now == nil || now.ID != page[i].ID {
					continue
				}
				if err := endStandIn(c, now); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}
