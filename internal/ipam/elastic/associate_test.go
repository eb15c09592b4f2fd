package elastic_test

import (
	"encoding/json"
	"testing"

	"berth/internal/ipam"
)

// TestChangedHands: if another owner has a guest address now, it is another guest. The elastic address goes
// there only with a move.
func TestChangedHands(t *testing.T) {
	begins(t, `
		run job -> G1
		to E0 job
		stop job
		reserve net1 job2 G1
		to E0 job2 ! AddressAssociated; job
		to E0 job2 egress ! AddressAssociated; job
		to E0 job2 move
		show E0 -> allocated default job2
		told -> E0=G1 staged
	`)
}

// TestAgain: repeating an association succeeds and changes nothing, whatever its guest does meanwhile.
func TestAgain(t *testing.T) {
	const again = `
		to E0 job -> net1 10.20.0.0/24 E0
		to E0 job net=net1 -> net1 10.20.0.0/24 E0
		revision E0 -> same
	`
	begins(t, `
		run job -> G1
		to E0 job -> net1 10.20.0.0/24 E0
		revision E0 -> new
	`+again+`
		publishes job 80/tcp
	`+again+`
		stop job
	`+again+`
		to E0 job egress ! GuestUnclear
		to E0 job guest=G1 ! GuestUnclear
		to E0 job net=net9 ! -
	`)
}

// TestEndsOnItsNetwork: when an owner's reservation expires on one network, its reservation on another network
// keeps its elastic address.
func TestEndsOnItsNetwork(t *testing.T) {
	begins(t, `
		network net2 subnet=10.21.0.0/24,pool
		elastic net2 on
		reserve net1 web for=1h
		reserve net2 web
		to E0 web net=net1
		to E1 web net=net2
		wait 2h
		# any change: what is due ends before it
		account shop
		show E0 -> allocated default
		show E1 -> allocated default web
	`)
}

// TestEndsByName: an association ends with its owner, even if it names the owner's container and the owner has
// several addresses, or if a rule makes several names one owner.
func TestEndsByName(t *testing.T) {
	begins(t, `
		network.set net1 rule=batch-*=owner:batch
		reserve net1 shop/web/1 G9,G10 for=1h
		to E0 shop_web_1 guest=G10
		to E1 shop/web/1 guest=G10 ! GuestAssociated
		reserve net1 batch for=1h
		to E1 batch-7
		allocate
		to E2 batch-8 ! GuestAssociated; E1
		wait 2h
		account shop
		show E0 -> allocated default
		show E1 -> allocated default
	`)
}

// TestOnePerAddress: a guest's address occurs once on a host. A guest on another network with the same address
// is refused an elastic address.
func TestOnePerAddress(t *testing.T) {
	begins(t, `
		network net2 space=other subnet=10.20.0.0/24,pool
		elastic net2 on
		reserve net1 web G9
		reserve net2 mail G9
		to E0 web
		to E1 mail ! GuestAssociated; E0; web; net1
		off E0
		to E1 mail
	`)
}

// TestOneAfterItMoved: a guest that has another address than at its association is found under the new one.
func TestOneAfterItMoved(t *testing.T) {
	begins(t, `
		run job -> G1
		to E0 job
		stop job
		take net1 printer 0:ip0=G1
		run job -> G2
		to E1 job ! GuestAssociated; E0
	`)
}

// TestFailedAssociationChangesNothing: a refused association leaves the address unchanged, neither allocated nor
// half moved (CloudStack PR 3836: a failed enable leaves the address allocated).
func TestFailedAssociationChangesNothing(t *testing.T) {
	begins(t, `
		reserve net1 web G9
		reserve net1 mail G10
		reserve net1 shop/db/1 G11
		account shop shop/*
		to E0 web
		publishes mail 25/tcp
		to E0 nobody move ! GuestUnclear
		to E0 mail move ! ContainerPublishes
		to E0 shop/db/1 move ! OtherAccount
		to E0 mail ! ContainerPublishes
		to E0 web guest=G99 move ! GuestUnclear
		to E3 web ! AddressNotAllocated
		show E0 -> allocated default web
		show E3 -> free
	`)
}

// TestNoSilentDisplacement: a second address for a container is refused, with --move too, and the first one
// stays mapped (AWS: a second address on an instance silently displaces the first).
func TestNoSilentDisplacement(t *testing.T) {
	begins(t, `
		reserve net1 web G9
		to E0 web
		to E1 web ! GuestAssociated; E0
		to E1 web move ! GuestAssociated; E0
		told -> E0=G9 staged
		show E1 -> allocated default
		off E0
		to E1 web
	`)
}

// TestTransferEvents: the events of an association name the old and the new instance with their hosts; the event of a
// release names the account (CS-9, CS-10).
func TestTransferEvents(t *testing.T) {
	b := begins(t, `
		reserve net1 web G9
		reserve net1 mail G10
		to E0 web
		to E0 mail move
		off E0
		free E0
	`)
	events, err := b.Events(t.Context(), ipam.EventFilter{Last: 3})
	must(b, err)
	type facts struct{ Host, Instance, Account, Kind string }
	read := func(raw json.RawMessage) (f facts) {
		if raw != nil {
			must(b, json.Unmarshal(raw, &f))
		}
		return f
	}
	for i, want := range []struct {
		verb          ipam.Verb
		before, after facts
	}{
		{ipam.ElasticAssociated, facts{Host: "h1", Instance: "web"}, facts{Host: "h1", Instance: "mail"}},
		{ipam.ElasticDisassociated, facts{Host: "h1", Instance: "mail"}, facts{}},
		{ipam.ElasticReleased, facts{Account: "default", Kind: "elastic"}, facts{}},
	} {
		e := events[i]
		if e.Verb != want.verb || read(e.Before) != want.before || read(e.After) != want.after {
			t.Errorf("event %d is %s, before %s, after %s; want %+v", i, e.Verb, e.Before, e.After, want)
		}
	}
}
