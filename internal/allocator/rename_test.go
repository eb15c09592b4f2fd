package allocator_test

import (
	"testing"

	"berth/internal/ipam/ipamtest"
)

// A renamed container keeps its address, by its id. The former addresses of a name belong to the present
// container of that name, unless the container that had the address under that name gets it again first.
func TestRename(t *testing.T) {
	const two = `
		attach A cidr=192.0.2.0/28
		call x a
		call y b
		ask A a -> 192.0.2.1
		ask A b -> 192.0.2.2
	`
	runGuesses(t, []ipamtest.Script{
		{"and restarted", two + `
			call x c
			back A 192.0.2.1
			ask A c -> 192.0.2.1
			lease 192.0.2.1 -> automatic c
			call x d
			back A 192.0.2.1
			ask A d -> 192.0.2.1
		`},
		{"and restarted, where a guess says who it is", `
			attach A cidr=192.0.2.0/28
			call x a
			call y b
			idle a
			ask A -> 192.0.2.1
			idle b
			ask A -> 192.0.2.2
			call x c
			back A 192.0.2.1
			back A 192.0.2.2
			idle b
			ask A -> 192.0.2.2
			idle c
			ask A -> 192.0.2.1
		`},
		{"started again by an engine that names nobody, after a power cut", `
			attach A cidr=192.0.2.0/28
			call x web
			ask A web mac=1 ip=192.0.2.9 -> 192.0.2.9
			sight 192.0.2.9 gone
			ask A mac=1 ip=192.0.2.9 -> 192.0.2.9
			ask A mac=2 ip=192.0.2.9 ! inuse
		`},
		{"while it is stopped, and others come meanwhile", two + `
			back A 192.0.2.1
			call x c
			ask A d -> 192.0.2.3
			ask A c -> 192.0.2.1
		`},
		{"two swap their names", two + `
			call x tmp
			call y a
			call x b
			back A 192.0.2.1
			back A 192.0.2.2
			ask A a -> 192.0.2.2
			ask A b -> 192.0.2.1
		`},
		{"the new one of the name, when the old one is gone", two + `
			call x a-old
			back A 192.0.2.1
			call x
			call z a
			ask A a -> 192.0.2.1
		`},
		{"the new one of the name, when the old one has another", two + `
			call x a-old
			back A 192.0.2.1
			ask A a-old ip=192.0.2.9 -> 192.0.2.9
			call z a
			ask A a -> 192.0.2.1
		`},
		{"the new one of the name, when it starts first", two + `
			call x a-old
			back A 192.0.2.1
			call z a
			ask A a -> 192.0.2.1
			ask A a-old -> 192.0.2.3
			back A 192.0.2.1
			back A 192.0.2.3
			ask A a-old -> 192.0.2.3
			ask A a -> 192.0.2.1
		`},
		{"the old one, when it starts first", two + `
			call x a-old
			back A 192.0.2.1
			call z a
			ask A a-old -> 192.0.2.1
			ask A a -> 192.0.2.3
		`},
		{"the last that it had, by its id, before what its name has left since", two + `
			back A 192.0.2.1
			call x c
			call y a
			back A 192.0.2.2
			wait 1h
			ask A a -> 192.0.2.2
			ask A c -> 192.0.2.1
		`},
		{"Compose v1: the old one is renamed, the new one made, and the old one removed", two + `
			back A 192.0.2.1
			call x 0123456789ab_a
			call z a
			call x
			ask A a -> 192.0.2.1
		`},
		{"Compose v2: the new one is made by another name, the old one removed, and the new one renamed", two + `
			call z 0123456789ab_a
			back A 192.0.2.1
			call x
			call z a
			ask A a -> 192.0.2.1
		`},
		{"Portainer: the old one is stopped and renamed, the new one made and started, and the old one removed", two + `
			back A 192.0.2.1
			call x a-old
			call z a
			ask A a -> 192.0.2.1
			call x
			back A 192.0.2.1
			ask A a -> 192.0.2.1
		`},
		{"Portainer, where the new one does not start: the old one is what it was", two + `
			back A 192.0.2.1
			call x a-old
			call z a
			ask A a -> 192.0.2.1
			back A 192.0.2.1
			call z
			call x a
			ask A a -> 192.0.2.1
		`},
		{"a witness learns which container it is", `
			attach A cidr=192.0.2.0/28
			ask A a -> 192.0.2.1
			ask A b -> 192.0.2.2
			seen2 192.0.2.1 a x
			told lease.name -> 0
			seen 192.0.2.2 b y
			call x b
			call y a
			back A 192.0.2.1
			back A 192.0.2.2
			ask A a -> 192.0.2.2
			ask A b -> 192.0.2.1
		`},
		{"and its lease was lost", two + `
			call x c
			sight 192.0.2.1 gone
			ask A c -> 192.0.2.1
			lease 192.0.2.1 -> automatic c
		`},
		{"its address is that of one who exists, and lent last", `
			attach A cidr=192.0.2.0/30
			call x a
			ask A a -> 192.0.2.1
			ask A b -> 192.0.2.2
			back A 192.0.2.1
			call x c
			wait 1h
			back A 192.0.2.2
			wait 1h
			ask A d -> 192.0.2.2
			ask A c -> 192.0.2.1
		`},
		{"a reservation stays with the name", `
			network net1 subnet=192.0.2.0/28,pool
			reserve net1 a 192.0.2.9
			attach A net=net1
			call x a
			ask A a -> 192.0.2.9
			call x b
			back A 192.0.2.9
			ask A b -> 192.0.2.1
			call z a
			ask A a -> 192.0.2.9
		`},
		{"where nobody knows the container, its name is all there is", `
			attach A cidr=192.0.2.0/28
			ask A a -> 192.0.2.1
			back A 192.0.2.1
			ask A c -> 192.0.2.2
			ask A a -> 192.0.2.1
		`},
	})
}
