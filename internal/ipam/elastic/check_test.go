package elastic_test

import (
	"testing"

	"berth/internal/ipam"
	"berth/internal/ipam/ledger"
)

// TestCheckMapped: the check finds an address that should be mapped and is not, after some seconds, or at once
// if the edge gives the reason. It does not find an address that a host's edge reports as mapped.
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

// TestCheckGuestGone: the check finds an association with a removed container. It does not find one with a
// stopped container, nor one with a reserved address (CS-8).
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

// TestFsck: the check finds contradictions among the records of elastic addresses.
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
