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
			told reservation.remove -> 2: 192.0.2.5 a (the same request gives it to b)
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
			bind n a=192.0.2.6 c=192.0.2.5 ! inuse; 192.0.2.6; b
			owned n -> a=192.0.2.5 b=192.0.2.6
		`},
		{"who does not name its address any more leaves it to the one who does, in any order", `
			network n subnet=192.0.2.0/28,pool
			reserve n a 192.0.2.5
			reserve n b 192.0.2.6
			bind n b a=192.0.2.6
			owned n -> b=192.0.2.1:a a=192.0.2.5! a=192.0.2.6
			reserve n a replace + reserve n b 192.0.2.6 replace
			owned n -> b=192.0.2.1:a! a=192.0.2.5:a b=192.0.2.6
			reserve n c 192.0.2.6 replace + reserve n b 192.0.2.9 replace
			owned n -> b=192.0.2.1:a! a=192.0.2.5:a c=192.0.2.6 b=192.0.2.9
			reserve n a 192.0.2.6 replace + reserve n c replace
			owned n -> b=192.0.2.1:a! c=192.0.2.2:a a=192.0.2.5:a! a=192.0.2.6 b=192.0.2.9
			# a request that does not replace gives nothing up
			reserve n d 192.0.2.9 replace + reserve n b ! inuse; 192.0.2.9; b
			reserve n d 192.0.2.9 + reserve n b replace ! inuse; 192.0.2.9; b
			reserve n d 192.0.2.9 replace ! inuse; 192.0.2.9; b
			# an automatic address stays with an automatic wish (BO-9)
			reserve n d 192.0.2.2 replace + reserve n c replace ! inuse; 192.0.2.2; c
			reserve n c replace + reserve n d 192.0.2.2 replace ! inuse; 192.0.2.2; c
		`},
		{"who moves to another network leaves its address there", `
			network n subnet=192.0.2.0/28,pool
			network m subnet=198.51.100.0/28,pool
			reserve n b 192.0.2.6
			reserve n a 192.0.2.6 replace + reserve m b replace ! inuse; 192.0.2.6; b
			reserve n a 192.0.2.6 replace + reserve m b replace only=m,n ! inuse; 192.0.2.6; b
			reserve n a 192.0.2.6 replace + reserve m b replace only=m
			owned n -> a=192.0.2.6
			owned m -> b=198.51.100.1:a
		`},
		{"while its container runs, also if its reservation has ended", `
			network n subnet=192.0.2.0/28,pool
			reserve n b 192.0.2.6
			attach p net=n
			ask p b -> 192.0.2.6
			reserve n a 192.0.2.6 replace + reserve n b replace
			owned n -> b=192.0.2.1:a a=192.0.2.6*
			users n -> 192.0.2.1= 192.0.2.6=b
			back p 192.0.2.6
			ask p b -> 192.0.2.1
			ask p a -> 192.0.2.6
			unreserve n a
			reserve n b 192.0.2.6 replace ! inuse; held by a
			reserve n b replace + reserve n a 192.0.2.6 replace + reserve n b 192.0.2.6 replace ! inuse
			reserve n a replace + reserve n b 192.0.2.6 replace
			owned n -> b=192.0.2.1:a*! a=192.0.2.2:a b=192.0.2.6*
			users n -> 192.0.2.1=b 192.0.2.2= 192.0.2.6=a
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
