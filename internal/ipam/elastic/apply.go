package elastic

import (
	"context"
	"encoding/json"
	"fmt"
	"net/netip"
	"strings"

	"berth/internal/ipam"
	"berth/internal/ipam/ledger"
)

// Addresses answers questions about elastic addresses and changes them. If the host shares a store, they belong to the
// cluster.
type Addresses struct {
	homes  ledger.Homes
	ledger *ledger.Ledger // of the store that has the elastic addresses: see home
}

// Of returns the Addresses over a host's records.
func Of(homes ledger.Homes) Addresses { return Addresses{homes, homes.Own} }

// home returns the Addresses over the store that has the elastic addresses.
func (s Addresses) home() (Addresses, error) {
	l, err := s.homes.Cluster("the elastic addresses")
	return Addresses{s.homes, l}, err
}

// look runs fn over the records of elastic addresses, only to read.
func (s Addresses) look(ctx context.Context, fn func(*ledger.Change) error) error {
	s, err := s.home()
	if err != nil {
		return err
	}
	return s.ledger.Look(ctx, fn)
}

// Apply makes an edit of elastic addresses or refuses it. mine is false for any other edit. seen is the revision of the
// address that the requester saw, or 0 if any will do.
func Apply(c *ledger.Change, e ipam.Edit, seen uint64) (result ipam.Result, mine bool, err error) {
	noun, _, _ := strings.Cut(e.Op(), ".")
	switch {
	case noun != "account" && noun != "elastic":
		return ipam.Result{}, false, nil
	case seen != 0 && !ofAddress(e):
		err = ipam.Refuse(ipam.ErrInvalid, "accounts and elastic ranges have no revision; send the change without one")
	case c.NoElastic():
		err = turnedOff()
	default:
		result, err = apply(c, e, seen)
	}
	return result, true, err
}

func apply(c *ledger.Change, e ipam.Edit, seen uint64) (result ipam.Result, err error) {
	switch e := e.(type) {
	case *ipam.CreateAccount:
		return result, createAccount(e, c)
	case *ipam.RemoveAccount:
		return removeAccount(e, c)
	case *ipam.AddElasticRange:
		return result, addRange(e, c)
	case *ipam.RemoveElasticRange:
		return result, removeRange(e, c)
	case *ipam.AllocateElastic:
		return allocate(e, c, seen)
	case *ipam.AssociateElastic:
		return associate(e, c, seen)
	case *ipam.DisassociateElastic:
		return disassociate(e, c, seen)
	case *ipam.ReleaseElastic:
		return release(e, c, seen)
	case *ipam.DeclareElastic:
		return declare(e, c)
	case *ipam.EndDeclaredElastic:
		return endDeclared(e, c)
	}
	return result, fmt.Errorf("%s is not an edit of elastic addresses", e.Op())
}

// ofAddress reports whether an edit is about one elastic address.
func ofAddress(e ipam.Edit) bool {
	switch e.(type) {
	case *ipam.AllocateElastic, *ipam.AssociateElastic, *ipam.DisassociateElastic, *ipam.ReleaseElastic:
		return true
	}
	return false
}

// Edited returns the elastic address that an edit was about, from its result, or false.
func Edited(e ipam.Edit, came *ipam.Result) (addr netip.Addr, is bool) {
	if !ofAddress(e) || len(came.Addresses) == 0 {
		return addr, false
	}
	return came.Addresses[0], true
}

// turnedOff is the refusal of a daemon without elastic addresses.
func turnedOff() error {
	return ipam.RefuseAs(ipam.ElasticTurnedOff, ipam.ErrInUse,
		"elastic addresses are turned off on this daemon, so it refuses changes to them")
}

// tell writes the event of a change, with the facts before and after; nil means none.
func tell(c *ledger.Change, e *ipam.Event, before, after any) (id uint64, err error) {
	if e.Before, err = rawJSON(before); err != nil {
		return 0, err
	}
	if e.After, err = rawJSON(after); err != nil {
		return 0, err
	}
	return c.Event(e)
}

func rawJSON(v any) (json.RawMessage, error) {
	if v == nil {
		return nil, nil
	}
	return json.Marshal(v)
}
