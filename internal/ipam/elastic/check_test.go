package elastic_test

import (
	"testing"

	"berth/internal/ipam"
	"berth/internal/ipam/ledger"
)

// TestCheckMapped: an address that is to be mapped and is not, is found after some seconds, and at once where the edge
// says why. One of which a host's edge says that it is mapped is none.
func TestCheckMapped(t *testing.T) {
	begins(t, `
		reserve net1 web G9
		found ->
		to E0 web
		found ->
		unmapped -> 1 1
		wait 6s
		found -> unmapped_elastic E0
		applies no such table
		found -> unmapped_elastic E0
		details -> ~no such table
		applies
		found ->
		unmapped -> 1 0
		to E0 web egress
		found ->
		wait 6s
		found -> unmapped_elastic E0
		# all of it is off (CS-11)
		restart off
		found ->
	`)
}

// TestCheckGuestGone: an association with a container that is no more is found; one with a container that is stopped is
// none, nor one for which an address is reserved (CS-8).
func TestCheckGuestGone(t *testing.T) {
	begins(t, `
		there web
		run web
		to E0 web
		applies
		found ->
		stop web
		found ->
		gone web
		found -> guest_gone E0
		reserve net1 web G9
		found ->
	`)
}

// TestFsck: what contradicts itself among records of elastic addresses is told.
func TestFsck(t *testing.T) {
	for name, spoil := range map[string]func(e *ipam.Elastic){
		"an account that is not there": func(e *ipam.Elastic) { e.Account = "nobody" },
		"a network that is not there":  func(e *ipam.Elastic) { e.Association.Network = ipam.ID{1} },
		"no range":                     func(e *ipam.Elastic) { e.Address = addr("192.0.2.1") },
		"another's guest":              func(e *ipam.Elastic) { e.Address = addr(next) },
		"a record of another":          func(*ipam.Elastic) {},
		"released and associated":      func(e *ipam.Elastic) { e.State = ipam.ElasticReleasing },
	} {
		b := begins(t, mapped)
		b.sound()
		must(b, b.Ledger.Update(t.Context(), func(c *ledger.Change) error {
			e := *c.Index().Elastic(addr(elastic))
			a := *e.Association
			e.Association = &a
			if spoil(&e); name == "a record of another" {
				return c.SetElastic(addr(next), &e)
			}
			return c.SetElastic(e.Address, &e)
		}))
		if found, err := b.Check(t.Context()); err != nil || len(found) == 0 {
			t.Errorf("%s is not found (%v)", name, err)
		}
	}
}
