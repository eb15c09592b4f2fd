package edit_test

import (
	"testing"

	"berth/internal/ipam/ipamtest"
)

// BO-13: an owner that leaves networks keeps its addresses there until it runs with those on the new network. Its
// addresses on networks where it stays do not change, nor do those of other owners.
func TestBO13AnotherNetwork(t *testing.T) {
	ipamtest.RunScripts(t, []ipamtest.Script{
		{"until it runs", `
			network n subnet=192.0.2.0/28,pool
			network m subnet=198.51.100.0/28,pool
			network o subnet=203.0.113.0/28,pool
			reserve n a 192.0.2.5
			reserve n b 192.0.2.6
			reserve o a 203.0.113.5
			attach N net=n
			attach M net=m
			ask N a mac=1 -> 192.0.2.5
			reserve m a replace only=o
			owned  -> a=192.0.2.5*! b=192.0.2.6 a=198.51.100.1:a a=203.0.113.5
			# it does not run with the new one yet
			end a replaced
			reserve m a replace only=o
			owned  -> a=192.0.2.5*! b=192.0.2.6 a=198.51.100.1:a a=203.0.113.5
			back N 192.0.2.5
			ask M a mac=1 -> 198.51.100.1
			end a replaced
			owned  -> b=192.0.2.6 a=198.51.100.1:a* a=203.0.113.5
		`},
		{"back before it ran: it has its old one, and the new one is kept for a while", `
			network n subnet=192.0.2.0/28,pool
			network m subnet=198.51.100.0/28,pool
			reserve n a -> 192.0.2.1
			reserve m a replace only=
			reserve n a replace only=gone
			owned  -> a=192.0.2.1:a a=198.51.100.1:a!
		`},
		{"only is for replace, and without it other networks stay", `
			network n subnet=192.0.2.0/28,pool
			network m subnet=198.51.100.0/28,pool
			reserve n a -> 192.0.2.1
			reserve m a replace
			owned  -> a=192.0.2.1:a a=198.51.100.1:a
			reserve m a only=n ! invalid
		`},
	})
}

// BO-5: also in a store that is rebuilt from what runs, a reservation with Replace can be repeated, as `berth
// compose` does. An address of another owner is refused.
func TestBO5ForgetsCompose(t *testing.T) {
	r := ipamtest.Forgetful(t)
	for _, step := range []string{"network n subnet=192.0.2.0/28,pool", "network d subnet=198.51.100.0/28 type=dynamic",
		"reserve n a 192.0.2.5 replace only=d", "reserve n b replace only=d", "reserve d a replace only=n",
		"reserve n a 192.0.2.5 replace only=d", "reserve n b replace only=d", "reserve d a replace only=n",
		"owned n -> b=192.0.2.1:a a=192.0.2.5"} {
		r.Line(step)
	}
	_, err := r.Step([]string{"reserve", "n", "b", "192.0.2.5", "replace"})
	r.Refused("the address of another", "inuse; =AlreadyInUse", err)
}

// TestMoves: if a deploy wants it, an automatic address that is excluded or outside every pool is replaced once, and
// kept until its owner runs with the new one. Other addresses stay, and so do those that a person reserved by
// address (BO-9, BO-13).
func TestMoves(t *testing.T) {
	ipamtest.RunScripts(t, []ipamtest.Script{{"", `
		network net1 subnet=192.0.2.0/24
		pool net1 192.0.2.10+10
		reserve net1 shop/web/1
		reserve net1 shop/web/2
		reserve net1 shop/web/3 192.0.2.99
		exclude net1 192.0.2.10
		reserve net1 shop/web/1 replace moves -> 192.0.2.12
		reserve net1 shop/web/2 replace moves -> 192.0.2.11
		reserve net1 shop/web/3 replace moves -> 192.0.2.99
		reserve net1 shop/web/1 replace moves -> 192.0.2.12
		exclude net1 192.0.2.11
		# where nothing is to move
		reserve net1 shop/web/1 replace -> 192.0.2.12
		reserve net1 shop/web/2 replace -> 192.0.2.11
		owned net1 -> shop/web/1=192.0.2.10:a! shop/web/2=192.0.2.11:a shop/web/1=192.0.2.12:a shop/web/3=192.0.2.99
		reserve net1 shop/web/1 moves ! invalid; set "replace", or leave out "moves"
	`}})
}
