package allocator_test

import (
	"testing"

	"berth/internal/ipam/ipamtest"
)

// If no witness knows more, a request within a second after the only release is the restart of that endpoint.
func TestRestartRule(t *testing.T) {
	const two = `
		attach A cidr=192.0.2.0/28
		ask A mac=1 -> 192.0.2.1
		ask A mac=2 -> 192.0.2.2
		idle lost
		wait 1h
	`
	runGuesses(t, []ipamtest.Script{
		{"a restart", two + `
			back A 192.0.2.1
			wait 1s
			ask A -> 192.0.2.1
			# whoever comes next is another one
			ask A -> 192.0.2.3
			guesses -> made 0 wrong 0
		`},
		{"where MACs are asked for, they tell one from another", two + `
			back A 192.0.2.1
			ask A mac=8 -> 192.0.2.3
		`},
		{"of one with a name", two + `
			seen 192.0.2.1 web
			back A 192.0.2.1
			ask A -> 192.0.2.1
			lease 192.0.2.1 -> automatic web?
			told lease.take -> 3: 192.0.2.1 web (automatic by a guess)
			guesses -> made 1 wrong 0
		`},
		{"too late", two + `
			back A 192.0.2.1
			wait 1001ms
			ask A -> 192.0.2.3
		`},
		{"the clock was set back", two + `
			back A 192.0.2.1
			wait -1ms
			ask A -> 192.0.2.3
		`},
		{"two at once", two + `
			back A 192.0.2.1
			wait 500ms
			back A 192.0.2.2
			ask A -> 192.0.2.3
		`},
		{"two at once, the clock set back between them", two + `
			back A 192.0.2.1
			wait -1h
			back A 192.0.2.2
			ask A -> 192.0.2.3
		`},
		{"two one after the other", two + `
			back A 192.0.2.1
			wait 1001ms
			back A 192.0.2.2
			ask A -> 192.0.2.2
		`},
		{"another one took something meanwhile", two + `
			back A 192.0.2.1
			ask A web -> 192.0.2.3
			ask A -> 192.0.2.4
		`},
		{"another one took something by address", two + `
			back A 192.0.2.1
			ask A ip=192.0.2.9 -> 192.0.2.9
			ask A -> 192.0.2.3
		`},
		{"it has another holder", two + `
			attach B cidr=192.0.2.0/28
			back A 192.0.2.1
			ask B ip=192.0.2.1 mac=5 -> 192.0.2.1
			ask A -> 192.0.2.3
		`},
		{"through another attachment", two + `
			attach B cidr=192.0.2.0/28
			back A 192.0.2.1
			ask B -> 192.0.2.3
			ask A -> 192.0.2.1
		`},
		{"the other attachment's take of it", two + `
			attach B cidr=192.0.2.0/28
			seen 192.0.2.1 web
			back A 192.0.2.1
			ask B web -> 192.0.2.1
			back B 192.0.2.1
			ask A -> 192.0.2.3
		`},
		{"one who had asked for it by address asks so again", two + `
			ask A ip=192.0.2.9 mac=5 -> 192.0.2.9
			back A 192.0.2.9
			ask A -> 192.0.2.3
			lease 192.0.2.9 -> static - remembered
		`},
		{"a container asks for it by now", two + `
			back A 192.0.2.1
			want 192.0.2.1 db
			ask A -> 192.0.2.3
		`},
		{"the gateway of an attachment is nobody's restart", `
			attach A cidr=192.0.2.0/28
			gateway A -> 192.0.2.1
			ask A mac=1 -> 192.0.2.2
			gateway A ip=192.0.2.9 -> 192.0.2.9
			idle lost
			back A 192.0.2.2
			wait 10ms
			back A 192.0.2.9
			ask A -> 192.0.2.2
		`},
		{"with a witness that knows nobody", two + `
			back A 192.0.2.1
			idle none
			ask A -> 192.0.2.3
			idle lost
			ask A -> 192.0.2.4
		`},
		{"with a witness that knows another one", two + `
			back A 192.0.2.1
			idle web
			ask A -> 192.0.2.3
			lease 192.0.2.3 -> automatic web?
		`},
		{"a MAC tells more", two + `
			ask A mac=3 -> 192.0.2.3
			back A 192.0.2.3
			wait 1h
			back A 192.0.2.1
			ask A mac=3 -> 192.0.2.3
		`},
		{"quarantine binds it, and not who is named", `
			network net1 subnet=192.0.2.0/24,pool
			network.set net1 quarantine=1m
			attach A net=net1
			ask A web -> 192.0.2.1
			idle lost
			back A 192.0.2.1
			ask A -> 192.0.2.2
			back A 192.0.2.2
			idle web
			ask A -> 192.0.2.1
			lease 192.0.2.1 -> automatic web?
		`},
		{"where nothing is remembered", `
			network net1 subnet=192.0.2.0/24,pool
			network.set net1 sticky=off
			attach A net=net1
			ask A mac=1 -> 192.0.2.1
			idle lost
			back A 192.0.2.1
			ask A -> 192.0.2.2
			back A 192.0.2.2
			idle web
			ask A -> 192.0.2.3
			lease 192.0.2.3 -> automatic web?
			back A 192.0.2.3
			ask A -> 192.0.2.4
		`},
		{"it was reserved meanwhile", `
			network net1 subnet=192.0.2.0/24,pool
			attach A net=net1
			ask A mac=1 -> 192.0.2.1
			idle lost
			back A 192.0.2.1
			reserve net1 db 192.0.2.1
			ask A -> 192.0.2.2
		`},
		{"it is excluded by now", `
			network net1 subnet=192.0.2.0/24,pool
			attach A net=net1
			ask A mac=1 -> 192.0.2.1
			idle lost
			back A 192.0.2.1
			exclude net1 192.0.2.1
			ask A -> 192.0.2.2
		`},
		{"the network gives nothing automatically by now", `
			network net1 subnet=192.0.2.0/24,pool
			network net2 subnet=198.51.100.0/24,pool type=vip
			attach A net=net2
			ask A mac=1 ip=198.51.100.9 -> 198.51.100.9
			idle lost
			back A 198.51.100.9
			ask A ! inuse|invalid|exhausted
		`},
		{"a daemon that was started since knows of no release", two + `
			back A 192.0.2.1
			restart
			ask A -> 192.0.2.3
		`},
		{"a request that was refused takes nothing", two + `
			back A 192.0.2.1
			ask A ip=192.0.2.2 ! inuse
			ask A mac=2 ip=192.0.2.2 ! inuse
			ask A -> 192.0.2.1
		`},
		{"a release of nothing releases nobody", two + `
			back A 192.0.2.1
			back A 192.0.2.1
			back A 192.0.2.9
			ask A -> 192.0.2.1
		`},
	})
}
