package allocator_test

import (
	"testing"

	"berth/internal/ipam"
	"berth/internal/ipam/ipamtest"
)

// TestAttachments: Docker networks on the subnets of a space (LN-5, LN-6, C32, C65, C66).
func TestAttachments(t *testing.T) {
	ipamtest.RunScripts(t, []ipamtest.Script{
		{"subnets of one space never overlap, those of two may", `
			attach A cidr=10.0.0.0/8
			attach B cidr=11.0.0.0/8
			attach C cidr=8.0.0.0/6 ! overlap; 8.0.0.0/6
			attach C cidr=10.0.0.0/9 ! overlap; 10.0.0.0/8
			attach C cidr=10.255.255.255/32 ! overlap; 10.0.0.0/8
			attach C cidr=10.0.0.0/9 space=lab
			attach D cidr=c000::/2
			attach E cidr=8000::/1 ! overlap; c000::/2
			attach E cidr=192.168.0.128/25
			attach F cidr=192.168.0.128/28 ! overlap; space local
			attach F cidr=192.168.0.0/24 ! overlap; 192.168.0.128/25
			attach F cidr=192.168.0.0/25
			# the same first bytes
			attach G cidr=a00::/24
			attach H cidr=255.255.255.0/24
			attach I cidr=255.255.255.0/25 ! overlap; net-
		`},
		{"of one subnet: addresses are unique over all, and the subnet lives until the last one goes", `
			attach A cidr=10.0.0.0/28
			attach B cidr=10.0.0.0/28
			attach L cidr=10.0.0.0/28 space=lab
			ask A mac=1 -> 10.0.0.1
			ask B mac=2 -> 10.0.0.2
			ask L mac=2 -> 10.0.0.1
			ask B mac=9 ip=10.0.0.1 ! inuse; 02:00:00:00:00:01
			detach A
			ask A mac=3 ! notfound
			ask B mac=9 ip=10.0.0.1 -> 10.0.0.1
			has B mac=2 -> 10.0.0.2
			restart
			detach B
			detach B
			attach C cidr=10.0.0.0/8
		`},
		{"ranges of one subnet that do not touch one another, each with its own addresses", `
			attach A cidr=10.0.0.0/24 range=10.0.0.0-10.0.0.63
			attach B cidr=10.0.0.0/24 range=10.0.0.192-10.0.0.255
			attach C cidr=10.0.0.0/24 range=10.0.0.192-10.0.0.255
			attach D cidr=10.0.0.0/24 range=10.0.0.63 ! overlap; 10.0.0.0/26
			attach D cidr=10.0.0.0/24 range=10.0.0.0-10.0.0.127 ! overlap; 10.0.0.0/26
			attach D cidr=10.0.0.0/24 range=10.0.0.60-10.0.0.70 ! overlap; 10.0.0.0/26
			attach D cidr=10.0.0.0/24 ! overlap; 10.0.0.0/26
			attach D cidr=10.0.0.0/24 range=10.0.0.64-10.0.0.191
			ask A mac=1 -> 10.0.0.1
			ask D mac=2 -> 10.0.0.64
			ask B mac=3 -> 10.0.0.192
			ask C mac=4 -> 10.0.0.193
		`},
		{"outside of the range by address alone (LN-9, LN-14, GA-15)", `
			attach A cidr=10.0.0.0/24 range=10.0.0.128-10.0.0.255
			gateway A ip=10.0.0.9 -> 10.0.0.9
			ask A ip=10.0.0.5 -> 10.0.0.5
			ask A ip=10.0.0.200 -> 10.0.0.200
			ask A mac=1 ip=10.0.0.7 -> 10.0.0.7
			ask A mac=2 -> 10.0.0.128
		`},
		{"the range that is the whole subnet, and no range at all, are the same", `
			attach A cidr=10.0.0.0/24 range=10.0.0.0-10.0.0.255
			attach B cidr=10.0.0.0/24
			detach A
			ask B mac=1 -> 10.0.0.1
			attach C cidr=10.0.0.0/24 range=10.0.0.0-10.0.0.255
			detach B
			ask C mac=2 -> 10.0.0.2
			detach C
			attach D cidr=10.0.0.0/24 range=10.0.0.64-10.0.0.127
			attach E cidr=10.0.0.0/24 range=10.0.0.64-10.0.0.127
			detach D
			ask E mac=1 -> 10.0.0.64
			detach E
			# and of two beside one another, the one that goes leaves nothing
			attach F cidr=10.0.0.0/24 range=10.0.0.64-10.0.0.127
			attach G cidr=10.0.0.0/24 range=10.0.0.128-10.0.0.191
			detach F
			ask G mac=1 -> 10.0.0.128
			attach H cidr=10.0.0.0/24 range=10.0.0.0-10.0.0.127
			detach G
			detach H
			attach I cidr=10.0.0.0/25
		`},
	})
}

// TestReleaseEverything: the end of a network releases its gateway, its auxiliary addresses and its pool, even
// if the engine leaks some of them (LN-10). A release of an unused address succeeds, and changes no other lease
// (LN-2, LN-4, C24, C50, C67).
func TestReleaseEverything(t *testing.T) {
	const begun = `
		attach A cidr=10.0.0.0/24 range=10.0.0.128-10.0.0.255
		gateway A ip=10.0.0.9 -> 10.0.0.9
		ask A ip=10.0.0.5 -> 10.0.0.5
		ask A mac=1 -> 10.0.0.128
	`
	for leaked, released := range map[string]string{"released": "back A 10.0.0.128\nback A 10.0.0.9\nback A 10.0.0.5\n",
		"leaked": ""} {
		t.Run(leaked, func(t *testing.T) {
			r := ipamtest.New(t)
			r.Run(begun + released + "detach A\ndetach A\nback A 10.0.0.128\nattach B cidr=10.0.0.0/8")
			if left := ipamtest.ListLeases(t, r.S, ipam.LeaseFilter{Remembered: true}); len(left) > 0 {
				t.Errorf("left are %+v", left)
			}
		})
	}
	ipamtest.New(t).Run(begun + `
		attach B cidr=10.0.1.0/24
		# free, of another subnet, of the other family, and the network's own
		back A 10.0.0.99
		back A 10.0.1.99
		back A fd00::1
		back A 10.0.0.0
		back A 10.0.0.9
		# through the pool of another subnet
		back B 10.0.0.128
		ask A mac=2 ip=10.0.0.128 ! inuse; 02:00:00:00:00:01
		ask A mac=2 ip=10.0.0.9 ! inuse; gateway
		back A 10.0.0.128
		back A 10.0.0.128
	`)
}

// TestHosts: a subnet larger than /31 never gives its network or broadcast address, and an IPv6 subnet never its
// anycast address (RFC 3021, RFC 4291, RFC 6164). A range gives all that its subnet allows (C21, C28, C29).
func TestHosts(t *testing.T) {
	ipamtest.RunScripts(t, []ipamtest.Script{
		{"/32", "attach A cidr=10.0.0.0/32\nask A mac=1 -> 10.0.0.0\nask A mac=2 ! exhausted; 10.0.0.0/32"},
		{"/31", "attach A cidr=10.0.0.0/31\nask A mac=1 -> 10.0.0.0\nask A mac=2 -> 10.0.0.1\nask A mac=3 ! exhausted; larger"},
		{"/30", "attach A cidr=10.0.0.0/30\nask A mac=1 -> 10.0.0.1\nask A mac=2 -> 10.0.0.2\nask A mac=3 ! exhausted; 2"},
		{"/128", "attach A cidr=fd00::/128\nask A mac=1 -> fd00::\nask A mac=2 ! exhausted; fd00::/128"},
		{"/127", "attach A cidr=fd00::/127\nask A mac=1 -> fd00::\nask A mac=2 -> fd00::1\nask A mac=3 ! exhausted; 2"},
		{"/126", "attach A cidr=fd00::/126\nask A mac=1 -> fd00::1\nask A mac=2 -> fd00::2\nask A mac=3 -> fd00::3\n" +
			"ask A mac=4 ! exhausted; local"},
		{"the first range", "attach A cidr=10.0.0.0/24 range=10.0.0.0-10.0.0.1\nask A mac=1 -> 10.0.0.1\n" +
			"ask A mac=2 ! exhausted; 10.0.0.0/31"},
		{"the last range", "attach A cidr=10.0.0.0/24 range=10.0.0.254-10.0.0.255\nask A mac=1 -> 10.0.0.254\n" +
			"ask A mac=2 ! exhausted; no address is free"},
		{"the last of IPv6", "attach A cidr=fd00::/64 range=fd00::ffff:ffff:ffff:ffff\n" +
			"ask A mac=1 -> fd00::ffff:ffff:ffff:ffff\nask A mac=2 ! exhausted"},
		{".0 and .255 in the midst (C68)", "attach A cidr=10.0.0.0/16 range=10.0.0.255-10.0.1.0\nask A mac=1 -> 10.0.0.255\n" +
			"ask A mac=2 -> 10.0.1.0\nask A mac=3 ! exhausted"},
		{"by address", `
			attach A cidr=10.0.0.0/24
			ask A mac=1 ip=10.0.0.254 -> 10.0.0.254
			ask A mac=2 ip=10.0.0.0 ! invalid; network address
			ask A ip=10.0.0.255 ! invalid; broadcast
			ask A mac=2 ip=10.0.1.1 ! invalid; outside
			ask A ip=fd00::1 ! invalid; outside
			attach B cidr=fd00::/64
			ask B mac=2 ip=fd00:: ! invalid; anycast
			ask B ip=fd00:: ! invalid; 4291
			ask B mac=2 ip=10.0.0.1 ! invalid; outside
			ask B mac=2 ip=fd00::ffff:ffff:ffff:ffff -> fd00::ffff:ffff:ffff:ffff
		`},
		{"a pool too small for its gateway", "attach A cidr=10.0.0.0/32 gw=10.0.0.0 ! exhausted; too small\n" +
			"attach A cidr=10.0.0.0/24 range=10.0.0.0-10.0.0.1 gw=10.0.0.1 ! exhausted; too small"},
		{"a gateway in the midst", `
			attach A cidr=192.168.1.0/29 gw=192.168.1.3
			ask A mac=9 ip=192.168.1.3 ! inuse; gateway
			ask A mac=1 -> 192.168.1.1
			ask A mac=2 -> 192.168.1.2
			ask A mac=3 -> 192.168.1.4
		`},
	})
}

// TestNamedPool: a full named pool is an error that names it; no other pool is used. Without a name the pools of
// the subnet are used in order. Exclusions and the gateway are never given (LN-6, GA-8, GA-9, GA-10, GA-16,
// BO-7).
func TestNamedPool(t *testing.T) {
	const front = `
		network front subnet=10.0.0.0/24,gw=10.0.0.254+10.0.1.0/24,pool
		pool front 10.0.0.10+3 name=web
		pool front 10.0.0.20+2 name=rest
		exclude front 10.0.0.11 note=printer
	`
	ipamtest.RunScripts(t, []ipamtest.Script{
		{"by its name", front + `
			attach A net=front pool=web
			ask A mac=1 -> 10.0.0.10
			ask A mac=2 -> 10.0.0.12
			ask A mac=3 ! exhausted; web
			back A 10.0.0.12
			ask A mac=4 -> 10.0.0.12
			ask A mac=5 ip=10.0.0.99 -> 10.0.0.99
			ask A mac=6 ip=10.0.0.11 ! inuse; printer
		`},
		{"without", front + `
			attach A net=front
			ask A mac=1 -> 10.0.0.10
			ask A mac=2 -> 10.0.0.12
			ask A mac=3 -> 10.0.0.20
			ask A mac=4 -> 10.0.0.21
			ask A mac=5 ! exhausted; 10.0.0.0/24
		`},
		{"excluded while somebody has it", front + `
			attach A net=front pool=web
			ask A mac=1 -> 10.0.0.10
			exclude front 10.0.0.10 note=moved
			has A mac=1 -> 10.0.0.10
			back A 10.0.0.10
			ask A mac=4 ip=10.0.0.10 ! inuse; moved
			ask A mac=1 -> 10.0.0.12
			ask A mac=5 ! exhausted; web
			restart
			include front 10.0.0.10
			ask A mac=5 -> 10.0.0.10
		`},
		{"the engine wants a gateway where none is planned: it is the Docker network's, and goes back with it", front + `
			attach A net=front cidr=10.0.1.0/24
			gateway A -> 10.0.1.1
			ask A mac=1 ip=10.0.1.1 ! inuse; gateway
			back A 10.0.1.1
			detach A
			attach A net=front cidr=10.0.1.0/24
			ask A mac=1 ip=10.0.1.1 -> 10.0.1.1
		`},
	})
}

// TestRepetition: an endpoint's address is given to no second endpoint, whatever MAC or name that sends. Without
// a witness a lease from before the daemon's start is in doubt. The next start of its endpoint gets it again,
// once. The MAC and, if sent, the name identify the endpoint (LN-3, LN-9, GA-22, invariant 3). The error names
// the holder (C17, BO-5).
func TestRepetition(t *testing.T) {
	var scripts []ipamtest.Script
	for _, row := range []struct {
		first, second string
		same          bool
	}{
		{"mac=1", "mac=1", true},
		{"mac=1", "mac=2", false},
		{"web mac=1", "web mac=1", true},
		{"web mac=1", "db mac=1", false},
		{"web mac=1", "web mac=2", false},
		{"web mac=1", "mac=1", true},
		{"web", "web", false},
		{"", "", false},
	} {
		steps := "attach A cidr=10.0.0.0/24\nwait 1m\nask A " + row.first + " ip=10.0.0.77 -> 10.0.0.77\n" +
			"ask A " + row.second + " ip=10.0.0.77 ! inuse; held by\nrestart\n"
		if row.same {
			steps += "ask A " + row.second + " ip=10.0.0.77 -> 10.0.0.77\n"
		}
		scripts = append(scripts, ipamtest.Script{Name: row.first + ", then " + row.second,
			Steps: steps + "ask A " + row.second + " ip=10.0.0.77 ! inuse; 10.0.0.77"})
	}
	ipamtest.RunScripts(t, append(scripts, []ipamtest.Script{
		{"by a MAC alone", `
			attach A cidr=10.0.0.0/24
			ask A mac=1 -> 10.0.0.1
			ask A mac=1 -> 10.0.0.2
			restart
			# the latest first
			ask A mac=1 -> 10.0.0.2
			ask A mac=1 -> 10.0.0.1
			ask A mac=1 -> 10.0.0.3
		`},
		{"over two attachments of one subnet", `
			attach A cidr=10.0.0.0/24
			attach B cidr=10.0.0.0/24
			ask A mac=1 -> 10.0.0.1
			ask B mac=1 -> 10.0.0.2
			restart
			ask B mac=1 ip=10.0.0.1 ! inuse; held by
			ask A mac=1 -> 10.0.0.1
			ask B mac=1 -> 10.0.0.2
		`},
		{"auxiliary, gateway and endpoint", `
			attach A cidr=10.0.0.0/24
			ask A ip=10.0.0.5 -> 10.0.0.5
			ask A mac=1 ip=10.0.0.5 ! inuse; auxiliary
			ask A ip=10.0.0.5 ! inuse; auxiliary
			gateway A ip=10.0.0.5 ! inuse; auxiliary
			gateway A ip=10.0.0.6 -> 10.0.0.6
			ask A mac=1 ip=10.0.0.6 ! inuse; gateway
			ask A ip=10.0.0.6 ! inuse; gateway
			ask A mac=1 ip=10.0.0.7 -> 10.0.0.7
			gateway A ip=10.0.0.7 ! inuse; 02:00:00:00:00:01
		`},
		{"the subnet's gateway is every attachment's, and none can give it away (LN-11, LN-14)", `
			attach A cidr=10.0.0.0/24
			attach B cidr=10.0.0.0/24
			gateway A -> 10.0.0.1
			gateway B ip=10.0.0.1 -> 10.0.0.1
			gateway B -> 10.0.0.1
			back A 10.0.0.1
			back B 10.0.0.1
			detach A
			ask B mac=1 ip=10.0.0.1 ! inuse; gateway
			gateway B ip=10.0.0.9 -> 10.0.0.9
			gateway B ip=10.0.0.9 -> 10.0.0.9
		`},
	}...))
}

// TestMemory: an endpoint that comes back gets its former address, by its MAC and by its name, even after other
// endpoints came or the daemon was restarted. If nothing else is free, others get remembered addresses, the one
// released longest ago first (BO-2, LN-3).
func TestMemory(t *testing.T) {
	var scripts []ipamtest.Script
	for _, row := range [][4]string{
		{"mac=1", "10.0.0.64", "mac=1", "10.0.0.64"},
		{"web mac=1", "10.0.0.64", "web mac=2", "10.0.0.64"},
		{"web mac=1 ip=10.0.0.77", "10.0.0.77", "web mac=2", "10.0.0.77"},
		{"mac=1 ip=10.0.0.5", "10.0.0.5", "mac=1", "10.0.0.5"},
		{"web mac=1", "10.0.0.64", "db mac=2", "10.0.0.67"},
	} {
		for _, then := range []string{"", "restart\n"} {
			others := "ask A mac=100\nask A mac=101\n"
			scripts = append(scripts, ipamtest.Script{Name: row[0] + ", " + then + row[2],
				Steps: "attach A cidr=10.0.0.0/24 range=10.0.0.64-10.0.0.127\nask A " + row[0] + " -> " + row[1] + "\nback A " +
					row[1] + "\n" + then + others + "ask A " + row[2] + " -> " + row[3]})
		}
	}
	ipamtest.RunScripts(t, append(scripts, []ipamtest.Script{
		{"forgotten on purpose", `
			network n subnet=10.0.0.0/24,pool sticky=off
			attach A net=n
			ask A web mac=1 -> 10.0.0.1
			back A 10.0.0.1
			ask A mac=2 -> 10.0.0.2
			ask A mac=3 -> 10.0.0.3
			ask A web mac=1 -> 10.0.0.4
		`},
		{"no claim", `
			attach A cidr=10.0.0.0/29
			ask A mac=1 -> 10.0.0.1
			ask A mac=2 -> 10.0.0.2
			ask A mac=3 -> 10.0.0.3
			ask A mac=4 -> 10.0.0.4
			ask A mac=5 -> 10.0.0.5
			ask A mac=6 -> 10.0.0.6
			back A 10.0.0.4
			back A 10.0.0.2
			back A 10.0.0.6
			ask A mac=11 -> 10.0.0.4
			restart
			ask A mac=12 -> 10.0.0.2
			ask A mac=13 -> 10.0.0.6
		`},
		{"in quarantine, for its last holder alone", `
			network n subnet=10.0.0.0/30,pool quarantine=1h
			attach A net=n
			ask A one mac=1 -> 10.0.0.1
			ask A two mac=2 -> 10.0.0.2
			back A 10.0.0.1
			wait 30m
			back A 10.0.0.2
			restart
			ask A mac=9 ! exhausted; quarantine
			ask A two mac=22 -> 10.0.0.2
			wait 1799s
			ask A mac=9 ! exhausted; quarantine
			wait 1s
			ask A mac=9 -> 10.0.0.1
		`},
		{"in quarantine, for whoever asks for it by address", `
			network n subnet=10.0.0.0/30,pool quarantine=1h
			attach A net=n
			ask A one mac=1 -> 10.0.0.1
			back A 10.0.0.1
			ask A two ip=10.0.0.1 -> 10.0.0.1
		`},
	}...))
}

// TestSwarm: after a restart, a swarm's manager requests all its pools and addresses again, by address and
// without a MAC, and begins with the gateway. While the manager runs, no request is a replay (LN-5, LN-9, GA-22,
// engine.md).
func TestSwarm(t *testing.T) {
	const begun = `
		attach A space=global cidr=10.0.9.0/24 swarm
		gateway A -> 10.0.9.1
		ask A -> 10.0.9.2
		ask A -> 10.0.9.3
	`
	ipamtest.RunScripts(t, []ipamtest.Script{
		{"the new pool's end is the old one's too, with what the manager has forgotten", begun + `
			restart
			attach B space=global cidr=10.0.9.0/24 swarm
			gateway B ip=10.0.9.1 -> 10.0.9.1
			ask B ip=10.0.9.2 -> 10.0.9.2
			ask B -> 10.0.9.4
			ask B mac=1 ip=10.0.9.2 ! inuse; held by
			back B 10.0.9.2
			back B 10.0.9.4
			back B 10.0.9.1
			detach B
			attach C space=global cidr=10.0.0.0/8 swarm
		`},
		{"a manager that dies in the midst of its replay comes a third time", begun + `
			attach B space=global cidr=10.0.9.0/24 swarm
			gateway B ip=10.0.9.1 -> 10.0.9.1
			ask B ip=10.0.9.2 -> 10.0.9.2
			attach C space=global cidr=10.0.9.0/24 swarm
			gateway C ip=10.0.9.1 -> 10.0.9.1
			ask C ip=10.0.9.2 -> 10.0.9.2
			ask C ip=10.0.9.3 -> 10.0.9.3
			gateway C ip=10.0.9.1 -> 10.0.9.1
			detach C
			attach D space=global cidr=10.0.0.0/8 swarm
		`},
		{"nothing ran", `
			attach A space=global cidr=10.0.9.0/24 swarm gw=10.0.9.77
			attach B space=global cidr=10.0.9.0/24 swarm gw=10.0.9.77
			gateway B ip=10.0.9.77 -> 10.0.9.77
			back B 10.0.9.77
			detach B
			attach C space=global cidr=10.0.0.0/8 swarm
		`},
		{"the same address of two containers", begun + `
			ask A ip=10.0.9.7 -> 10.0.9.7
			ask A ip=10.0.9.7 ! inuse; held by a static address
			attach B space=global cidr=10.0.9.0/24 swarm
			ask B ip=10.0.9.2 ! inuse; held by
			gateway B ip=10.0.9.1 -> 10.0.9.1
			ask B ip=10.0.9.2 -> 10.0.9.2
			ask B ip=10.0.9.2 ! inuse; held by
		`},
		{"an older pool takes nothing of a newer one", `
			attach A space=global cidr=10.0.9.0/24 swarm
			wait 1s
			attach B space=global cidr=10.0.9.0/24 swarm
			ask B ip=10.0.9.77 -> 10.0.9.77
			ask A ip=10.0.9.77 ! inuse; held by
		`},
		{"who sends a MAC is no manager", `
			attach A space=global cidr=10.0.9.0/24 swarm
			ask A mac=1 -> 10.0.9.1
			ask A -> 10.0.9.2
			attach B space=global cidr=10.0.9.0/24 swarm
			ask B ip=10.0.9.1 ! inuse; 02:00:00:00:00:01
			ask B mac=2 ip=10.0.9.2 ! inuse; held by
		`},
		{"its node asks for the same in the local space, and after a crash once more", begun + `
			attach N cidr=10.0.9.0/24
			gateway N ip=10.0.9.1 -> 10.0.9.1
			attach M cidr=10.0.9.0/24
			gateway M ip=10.0.9.1 -> 10.0.9.1
			ask M mac=1 ip=10.0.9.2 -> 10.0.9.2
		`},
	})
}
