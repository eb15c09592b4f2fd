package allocator_test

import (
	"path/filepath"
	"testing"

	"berth/internal/ipam/ipamtest"
)

// runGuesses runs scripts on a file and on a store in memory. Both run some transaction functions twice.
func runGuesses(t *testing.T, scripts []ipamtest.Script) {
	t.Helper()
	for _, sc := range scripts {
		for _, over := range []string{"bolt", "mem"} {
			t.Run(sc.Name+"/"+over, func(t *testing.T) {
				path := ""
				if over == "bolt" {
					path = filepath.Join(t.TempDir(), "berth.db")
				}
				r := ipamtest.NewAt(t, path)
				r.Store.Each(ipamtest.EveryThirdTwice)
				r.Run(sc.Steps)
			})
		}
	}
}

// A request without a name gets the same address as one with the name that the witness reports.
func TestGuessAsNamed(t *testing.T) {
	runGuesses(t, []ipamtest.Script{
		{"memory", `
			attach A cidr=192.0.2.0/29
			ask A web -> 192.0.2.1
			ask A db -> 192.0.2.2
			back A 192.0.2.2
			back A 192.0.2.1
			wait 1h
			idle web
			ask A -> 192.0.2.1
			lease 192.0.2.1 -> automatic web?
			told lease.take -> 3: 192.0.2.1 web (automatic by a guess)
			guesses -> made 1 wrong 0
			asked -> local/192.0.2.0/29/-
			idle none
			ask A -> 192.0.2.3
			lease 192.0.2.3 -> automatic -
			guesses -> made 1 wrong 0
			# what is remembered of a guess is no guess
			back A 192.0.2.1
			lease 192.0.2.1 -> automatic web remembered
		`},
		{"who sends a name is not guessed", `
			attach A cidr=192.0.2.0/29
			idle web
			ask A db -> 192.0.2.1
			lease 192.0.2.1 -> automatic db
			asked ->
			guesses -> made 0 wrong 0
		`},
		{"a new one is known by its name from now on", `
			attach A cidr=192.0.2.0/29
			idle web
			ask A -> 192.0.2.1
			back A 192.0.2.1
			idle none
			wait 1h
			ask A -> 192.0.2.2
			idle web
			ask A -> 192.0.2.1
		`},
		{"a reservation", `
			network net1 subnet=192.0.2.0/24,pool
			reserve net1 web 192.0.2.77
			attach A net=net1
			idle web
			ask A -> 192.0.2.77
			lease 192.0.2.77 -> automatic web?
		`},
		{"a replica as Compose names it", `
			network net1 subnet=192.0.2.0/24,pool
			reserve net1 shop/web/1 192.0.2.77
			attach A net=net1
			idle shop-web-1
			ask A -> 192.0.2.77
		`},
		{"a rule's owner and pool", `
			network net1 subnet=192.0.2.0/24 rule=web-*=pool:front+api=owner:store
			pool net1 192.0.2.10+5 name=back
			pool net1 192.0.2.100+5 name=front
			reserve net1 store 192.0.2.200
			attach A net=net1
			idle web-7
			ask A -> 192.0.2.100
			idle none
			ask A -> 192.0.2.10
			idle api
			ask A -> 192.0.2.200
		`},
	})
}

// Containers that start together get their former addresses in the order in which they stopped, whichever asks
// first.
func TestGuessTogether(t *testing.T) {
	const three = `
			attach A cidr=192.0.2.0/28
			ask A a -> 192.0.2.1
			ask A b -> 192.0.2.2
			ask A c -> 192.0.2.3
			back A 192.0.2.1
			back A 192.0.2.2
			back A 192.0.2.3
		`
	runGuesses(t, []ipamtest.Script{
		{"in the order in which they ended", three + `
			idle /c,a,b
			ask A -> 192.0.2.3
			lease 192.0.2.3 -> automatic -
			ask A -> 192.0.2.1
			ask A -> 192.0.2.2
			# and then there is nothing left of theirs
			ask A -> 192.0.2.4
			guesses -> made 0 wrong 0
		`},
		{"whose own is in other hands has another one's", three + `
			idle /a,b
			ask A -> 192.0.2.1
			seen 192.0.2.1 b
			idle a/a,b
			ask A -> 192.0.2.2
			idle none
			ask A -> 192.0.2.4
		`},
		{"whose own is free has it", three + `
			idle b/a,b,c
			ask A -> 192.0.2.2
			lease 192.0.2.2 -> automatic b?
		`},
		{"again, before anybody knows who has which", three + `
			idle /a,b
			ask A -> 192.0.2.1
			ask A -> 192.0.2.2
			back A 192.0.2.2
			back A 192.0.2.1
			ask A -> 192.0.2.2
			ask A -> 192.0.2.1
		`},
		{"a stranger has a new one", three + `
			idle none
			ask A -> 192.0.2.4
		`},
		{"a reservation is its owner's alone", `
			network net1 subnet=192.0.2.0/24,pool
			attach A net=net1
			ask A a -> 192.0.2.1
			ask A b -> 192.0.2.2
			reserve net1 a 192.0.2.1
			back A 192.0.2.1
			back A 192.0.2.2
			idle /a,b
			ask A -> 192.0.2.2
			ask A -> 192.0.2.3
			idle a/a,b
			ask A -> 192.0.2.1
		`},
		{"a quarantine keeps it for who is known", `
			network net1 subnet=192.0.2.0/24,pool quarantine=1h
			attach A net=net1
			ask A a -> 192.0.2.1
			ask A b -> 192.0.2.2
			back A 192.0.2.1
			back A 192.0.2.2
			idle /a,b
			ask A -> 192.0.2.3
			idle b/a,b
			ask A -> 192.0.2.2
		`},
		{"what is not remembered", `
			network net1 subnet=192.0.2.0/24,pool
			network.set net1 sticky=off
			attach A net=net1
			ask A a -> 192.0.2.1
			ask A b -> 192.0.2.2
			back A 192.0.2.1
			idle /a,b
			ask A -> 192.0.2.3
			idle boots
			ask A -> 192.0.2.4
		`},
		{"while the engine boots, in the order in which it gave back", `
			attach A cidr=192.0.2.0/28
			ask A old -> 192.0.2.1
			ask A a -> 192.0.2.2
			ask A b -> 192.0.2.3
			back A 192.0.2.1
			wait 1h
			back A 192.0.2.3
			back A 192.0.2.2
			idle boots
			ask A -> 192.0.2.3
			ask A -> 192.0.2.2
			# and then what was given back before that
			ask A -> 192.0.2.1
			ask A -> 192.0.2.4
		`},
		{"the only one that boots is known by the release before", `
			attach A cidr=192.0.2.0/28
			ask A a -> 192.0.2.1
			ask A b -> 192.0.2.2
			back A 192.0.2.1
			wait 10s
			back A 192.0.2.2
			idle boots
			ask A -> 192.0.2.2
			lease 192.0.2.2 -> automatic b?
		`},
	})
}

// If a guess leads to an address that is not available, the request gets the same as one of an unknown container.
func TestGuessLeadsNowhere(t *testing.T) {
	runGuesses(t, []ipamtest.Script{
		{"the reserved address is in other hands", `
			network net1 subnet=192.0.2.0/24,pool
			reserve net1 web 192.0.2.77
			attach A net=net1
			ask A ip=192.0.2.77 mac=9 -> 192.0.2.77
			ask A web ! inuse
			idle web
			ask A -> 192.0.2.1
			lease 192.0.2.1 -> automatic -
			guesses -> made 0 wrong 0
		`},
		{"the rule's pool is full", `
			network net1 subnet=192.0.2.0/24 rule=web-*=pool:front
			pool net1 192.0.2.10+2 name=back
			pool net1 192.0.2.100 name=front
			attach A net=net1
			ask A web-1 -> 192.0.2.100
			ask A web-2 ! exhausted
			idle web-2
			ask A -> 192.0.2.10
			idle web-3
			ask A -> 192.0.2.11
			ask A ! exhausted; front; back
		`},
		{"the rule's pool is of no subnet", `
			network net1 subnet=192.0.2.0/24+198.51.100.0/24 rule=web-*=pool:front
			pool net1 192.0.2.10+2 name=back
			pool net1 198.51.100.10 name=front
			attach A net=net1 cidr=192.0.2.0/24
			ask A web-1 ! exhausted; front
			idle web-1
			ask A -> 192.0.2.10
		`},
		{"a network without automatic addresses", `
			network net1 type=vip subnet=192.0.2.0/24,pool
			reserve net1 web 192.0.2.77
			attach A net=net1
			ask A ! inuse|invalid|exhausted
			idle db
			ask A ! inuse|invalid|exhausted
			idle web
			ask A -> 192.0.2.77
			ask A ! inuse|invalid|exhausted
		`},
		{"a name that no lease keeps", `
			attach A cidr=192.0.2.0/29
			idle long
			ask A -> 192.0.2.1
			lease 192.0.2.1 -> automatic -
			ask A ip=192.0.2.5 -> 192.0.2.5
			lease 192.0.2.5 -> auxiliary -
		`},
		{"the remembered address has another holder", `
			attach A cidr=192.0.2.0/29
			ask A web -> 192.0.2.1
			back A 192.0.2.1
			ask A ip=192.0.2.1 mac=5 -> 192.0.2.1
			idle web
			ask A -> 192.0.2.2
			lease 192.0.2.2 -> automatic web?
		`},
	})
}

// A MAC has priority over a guess.
func TestGuessAfterMAC(t *testing.T) {
	runGuesses(t, []ipamtest.Script{
		{"memory", `
			attach A cidr=192.0.2.0/29
			ask A web -> 192.0.2.1
			ask A mac=7 -> 192.0.2.2
			back A 192.0.2.1
			back A 192.0.2.2
			wait 1h
			idle web
			ask A mac=7 -> 192.0.2.2
			lease 192.0.2.2 -> automatic -
			# of a MAC that nobody knows it is as without
			ask A mac=8 -> 192.0.2.1
			lease 192.0.2.1 -> automatic web?
			# which is not given to a second one of the MAC, and after a restart to the next
			idle none
			ask A mac=8 -> 192.0.2.3
			back A 192.0.2.3
			restart
			ask A mac=8 -> 192.0.2.1
			guesses -> made 0 wrong 0
		`},
		{"reservation", `
			network net1 subnet=192.0.2.0/24,pool
			reserve net1 02:00:00:00:00:07 192.0.2.70
			reserve net1 web 192.0.2.77
			attach A net=net1
			idle web
			ask A mac=7 -> 192.0.2.70
			lease 192.0.2.70 -> automatic -
			ask A mac=8 -> 192.0.2.77
		`},
		{"the memory of a MAC where nothing is remembered on purpose", `
			network net1 subnet=192.0.2.0/24,pool
			network.set net1 sticky=off
			reserve net1 web 192.0.2.77
			attach A net=net1
			ask A mac=7 -> 192.0.2.1
			back A 192.0.2.1
			idle web
			ask A mac=7 -> 192.0.2.77
		`},
	})
}

// Of containers that start together, one with a MAC that its user chose is recognized by it. No other gets its address.
// MACs that begin with 02:42 are the engine's.
func TestGuessTogetherWithMAC(t *testing.T) {
	runGuesses(t, []ipamtest.Script{{"a chosen MAC, and a drawn one", `
		attach A cidr=192.0.2.0/29
		ask A a mac=7 -> 192.0.2.1
		ask A b mac=02:42:00:00:00:01 -> 192.0.2.2
		back A 192.0.2.1
		back A 192.0.2.2
		idle /a,b
		ask A mac=02:42:00:00:00:02 -> 192.0.2.2
		ask A mac=02:42:00:00:00:03 -> 192.0.2.3
		ask A mac=7 -> 192.0.2.1
	`}})
}

// No guess is made if an endpoint would have sent more, or if no endpoint asks.
func TestNobodyGuessed(t *testing.T) {
	runGuesses(t, []ipamtest.Script{
		{"a swarm's manager", `
			attach A space=global cidr=192.0.2.0/29 swarm
			idle web
			ask A -> 192.0.2.1
			ask A ip=192.0.2.5 -> 192.0.2.5
			lease 192.0.2.5 -> static -
			back A 192.0.2.1
			ask A -> 192.0.2.2
			asked ->
			idle lost
			back A 192.0.2.2
			ask A -> 192.0.2.3
		`},
		{"an engine that tells", `
			attach A cidr=192.0.2.0/28
			idle web
			ask A telling -> 192.0.2.1
			lease 192.0.2.1 -> automatic -
			ask A telling ip=192.0.2.9 -> 192.0.2.9
			lease 192.0.2.9 -> auxiliary -
			wait 1h
			ask A telling ip=192.0.2.10 -> 192.0.2.10
			lease 192.0.2.10 -> auxiliary -
			asked ->
			ask A telling mac=3 ip=192.0.2.11 -> 192.0.2.11
			lease 192.0.2.11 -> static web?
			asked -> local/192.0.2.0/28/192.0.2.11
			idle lost
			back A 192.0.2.1
			ask A telling -> 192.0.2.2
		`},
		{"a gateway", `
			attach A cidr=192.0.2.0/29
			idle web
			gateway A -> 192.0.2.1
			lease 192.0.2.1 -> gateway -
			asked ->
		`},
	})
}

// A requested address is given or refused as without a witness. The witness only shows whose it is.
func TestGuessPreferred(t *testing.T) {
	runGuesses(t, []ipamtest.Script{
		{"named", `
			attach A cidr=192.0.2.0/28
			idle web
			ask A ip=192.0.2.9 -> 192.0.2.9
			lease 192.0.2.9 -> static web?
			asked -> local/192.0.2.0/28/192.0.2.9
			told lease.take -> 1: 192.0.2.9 web (static by a guess)
			guesses -> made 1 wrong 0
			ask A ip=192.0.2.9 ! inuse; web
		`},
		{"nobody, right after the pool and later", `
			attach A cidr=192.0.2.0/28
			idle none
			wait 1s
			ask A ip=192.0.2.9 -> 192.0.2.9
			lease 192.0.2.9 -> auxiliary -
			wait 1us
			ask A ip=192.0.2.10 -> 192.0.2.10
			lease 192.0.2.10 -> static -
			ask A mac=1 ip=192.0.2.11 -> 192.0.2.11
			lease 192.0.2.11 -> static -
			seen 192.0.2.9 web
			lease 192.0.2.9 -> static web
		`},
		{"with a MAC right after the pool", `
			attach A cidr=192.0.2.0/28
			idle lost
			ask A mac=1 ip=192.0.2.9 -> 192.0.2.9
			lease 192.0.2.9 -> static -
		`},
		{"the owner", `
			network net1 subnet=192.0.2.0/24,pool
			reserve net1 web 192.0.2.9
			attach A net=net1
			idle web
			ask A ip=192.0.2.9 -> 192.0.2.9
			lease 192.0.2.9 -> static web?
			told lease.foreign_holder -> 0
		`},
		{"a foreign holder, who has it: the witness tells of one, and no guess", `
			network net1 subnet=192.0.2.0/24,pool
			reserve net1 web 192.0.2.9
			attach A net=net1
			ask A db ip=192.0.2.9 ! inuse; web
			idle db
			ask A ip=192.0.2.9 -> 192.0.2.9
			lease 192.0.2.9 -> static db?
			told lease.foreign_holder -> 0
			ask A ip=192.0.2.9 ! inuse
		`},
		{"who says neither is none, where the engine tells", `
			network net1 subnet=192.0.2.0/24,pool
			reserve net1 web 192.0.2.9
			attach A net=net1
			idle web
			ask A telling ip=192.0.2.9 ! inuse; web
			ask A telling ip=192.0.2.10 -> 192.0.2.10
			lease 192.0.2.10 -> auxiliary -
			ask A telling mac=4 ip=192.0.2.9 -> 192.0.2.9
			lease 192.0.2.9 -> static web?
		`},
		{"what is excluded", `
			network net1 subnet=192.0.2.0/24,pool
			exclude net1 192.0.2.9
			attach A net=net1
			idle web
			ask A ip=192.0.2.9 ! inuse
		`},
	})
}
