package edit_test

import (
	"testing"

	"berth/internal/ipam/ipamtest"
)

// TestSwap: owners that swap addresses in one request each get the address that the other one leaves, also while
// containers hold the addresses. An address that its owner does not leave stays with that owner.
func TestSwap(t *testing.T) {
	ipamtest.RunScripts(t, []ipamtest.Script{
		{"two change places", `
			network n subnet=192.0.2.0/28,pool
			reserve n a 192.0.2.5
			reserve n b 192.0.2.6
			bind n a=192.0.2.6 ! inuse; 192.0.2.6; b
			bind n a=192.0.2.6 b=192.0.2.5
			owned n -> b=192.0.2.5 a=192.0.2.6
			told reservation.remove -> 2: 192.0.2.5 a (it is b's by the same request)
		`},
		{"a ring of three, and one who goes elsewhere", `
			network n subnet=192.0.2.0/28,pool
			reserve n a 192.0.2.5
			reserve n b 192.0.2.6
			reserve n c 192.0.2.7
			reserve n d 192.0.2.8
			bind n a=192.0.2.6 b=192.0.2.7 c=192.0.2.5 d=192.0.2.9
			owned n -> c=192.0.2.5 a=192.0.2.6 b=192.0.2.7 d=192.0.2.8! d=192.0.2.9
		`},
		{"a row of them", `
			network n subnet=192.0.2.0/28,pool
			reserve n a 192.0.2.5
			reserve n b 192.0.2.6
			bind n a=192.0.2.6 b=192.0.2.7
			owned n -> a=192.0.2.5! a=192.0.2.6 b=192.0.2.7
		`},
		{"who keeps his address is not driven out of it", `
			network n subnet=192.0.2.0/28,pool
			reserve n a 192.0.2.5
			reserve n b 192.0.2.6
			bind n a=192.0.2.6 b=192.0.2.6 ! inuse
			bind n a=192.0.2.6 b ! inuse; 192.0.2.6; b
			bind n a=192.0.2.6 c=192.0.2.5 ! inuse; 192.0.2.6; b
			owned n -> a=192.0.2.5 b=192.0.2.6
		`},
		{"what is held by hand stays where it is", `
			network n subnet=192.0.2.0/28,pool
			reserve n a 192.0.2.5
			reserve n b 192.0.2.6
			take n b 192.0.2.6
			bind n a=192.0.2.6 b=192.0.2.5 ! inuse; =AlreadyInUse; 192.0.2.6; b
			release n b
			bind n a=192.0.2.6 b=192.0.2.5
		`},
		{"while their containers run: each gets the other's once that is released", `
			network n subnet=192.0.2.0/28,pool
			reserve n a 192.0.2.5
			reserve n b 192.0.2.6
			attach p net=n
			ask p a -> 192.0.2.5
			ask p b -> 192.0.2.6
			bind n a=192.0.2.6 b=192.0.2.5
			users n -> 192.0.2.5=a 192.0.2.6=b
			back p 192.0.2.5
			back p 192.0.2.6
			ask p a -> 192.0.2.6
			ask p b -> 192.0.2.5
		`},
	})
}
