package allocator_test

import (
	"strings"
	"testing"

	"berth/internal/ipam/ipamtest"
)

// street is a planned network with a pool of four addresses and another one named web.
const street = `
	network front subnet=10.0.0.0/24,gw=10.0.0.254
	pool front 10.0.0.10+4
	pool front 10.0.0.20+4 name=web
`

// TestOwnerNames: which owner an endpoint's name means, in the forms that Docker and both lines of Compose
// write. An endpoint with any other name gets no reserved address (BO-2).
func TestOwnerNames(t *testing.T) {
	for owner, names := range map[string]string{
		"web": "web 0123456789ab_web ! web-1 Web",
		"shop/web/1": "shop-web-1 shop_web_1 0123456789ab_shop-web-1 0123456789ab_shop_web_1 shop/web/1 ! shop-web-10 " +
			"shop-web-2 shop-web shop-web-01 web-1 my-shop-web-1 shop-web-1-1 0123456789AB_shop-web-1 " + // no id
			"0123456789a_shop-web-1 0123456789abc_shop-web-1 x0123456789ab_shop-web-1",
		"my-shop/web/1":     "my-shop-web-1 my-shop_web_1 ! shop-web-1",
		"shop/web-front/12": "shop-web-front-12 shop_web-front_12 !",
		"my_shop/web/1":     "my_shop-web-1 my_shop_web_1 !",
		"shop/web/run/1":    "! shop-web-run-1",
	} {
		t.Run(owner, func(t *testing.T) {
			script := street + "attach A net=front\nreserve front " + owner + " 10.0.0.99\nask A sharp_knuth mac=2 -> 10.0.0.10\n"
			its, others, _ := strings.Cut(names, "!")
			for name := range strings.FieldsSeq(its) {
				script += "ask A " + name + " mac=1 -> 10.0.0.99\nback A 10.0.0.99\n" +
					"ask A " + name + " mac=1 ip=10.0.0.99 -> 10.0.0.99\nback A 10.0.0.99\n"
			}
			for name := range strings.FieldsSeq(others) {
				script += "ask A " + name + " mac=1 ip=10.0.0.99 ! inuse; " + owner + "\n"
			}
			ipamtest.New(t).Run(script)
		})
	}
}

// TestOwnerOrder: the name has priority over the MAC, and both over the requested address (BO-2).
func TestOwnerOrder(t *testing.T) {
	r := ipamtest.New(t)
	r.Run(street + `
		attach A net=front
		reserve front web 10.0.0.91
		reserve front shop/web/1 10.0.0.92
		reserve front 02:00:00:00:00:07 10.0.0.93
		reserve front shop-db-1 10.0.0.94
		reserve front shop/db/1 10.0.0.95
		ask A web mac=7 -> 10.0.0.91
		back A 10.0.0.91
		ask A shop-web-1 mac=7 -> 10.0.0.92
		back A 10.0.0.92
		ask A nobody mac=7 -> 10.0.0.93
		back A 10.0.0.93
		# itself, before what Compose may mean by it
		ask A shop-db-1 mac=7 -> 10.0.0.94
		back A 10.0.0.94
		ask A shop_db_1 mac=7 -> 10.0.0.95
		back A 10.0.0.95
		ask A web mac=7 ip=10.0.0.93 -> 10.0.0.93
		back A 10.0.0.93
		ask A shop-db-1 mac=7 ip=10.0.0.95 -> 10.0.0.95
		back A 10.0.0.95
		# one who sends no name is whom the address says
		ask A mac=7 ip=10.0.0.91 -> 10.0.0.91
		back A 10.0.0.91
		ask A nobody mac=7 ip=10.0.0.91 ! inuse; =AlreadyInUse
		ask A shop_db_1 mac=7 ip=10.0.0.94 ! inuse; =AlreadyInUse
	`)
}

// TestOwnerRecreated: a replica that Compose recreates keeps its address, whatever its temporary name, and the
// address is not lent meanwhile (BO-2). An unreserved address is remembered by the name.
func TestOwnerRecreated(t *testing.T) {
	const own = street + "attach A net=front\nreserve front shop/web/1 10.0.0.99\n"
	scripts := []ipamtest.Script{
		{"Compose 2: made under another name, the old one removed, renamed, started", own + `
			ask A shop-web-1 mac=1 -> 10.0.0.99
			back A 10.0.0.99
			ask A sharp_knuth mac=8 -> 10.0.0.10
			ask A shop-web-1 mac=2 -> 10.0.0.99
		`},
		{"started under the other name when the old one has stopped", own + `
			ask A shop-web-1 mac=1 -> 10.0.0.99
			back A 10.0.0.99
			ask A 0123456789ab_shop-web-1 mac=2 -> 10.0.0.99
			back A 10.0.0.99
			ask A shop-web-1 mac=2 -> 10.0.0.99
		`},
		{"started under the other name while the old one runs", own + `
			ask A shop-web-1 mac=1 -> 10.0.0.99
			ask A 0123456789ab_shop-web-1 mac=2 ! inuse; =AlreadyInUse
			ask A 0123456789ab_shop-web-1 mac=2 ! inuse; by shop-web-1 (MAC 02:00:00:00:00:01) on host h1
			has A shop-web-1 mac=1 -> 10.0.0.99
			back A 10.0.0.99
			ask A 0123456789ab_shop-web-1 mac=2 -> 10.0.0.99
		`},
		{"Compose 1: the old one stopped and renamed, the new one started, the old one removed", own + `
			ask A shop_web_1 mac=1 -> 10.0.0.99
			back A 10.0.0.99
			ask A shop_web_1 mac=2 -> 10.0.0.99
			# somebody starts the old one again
			ask A 0123456789ab_shop_web_1 mac=1 ! inuse; by shop_web_1 (MAC 02:00:00:00:00:02) on host h1
		`},
		{"from Compose 1 to Compose 2", own + `
			ask A shop_web_1 mac=1 -> 10.0.0.99
			back A 10.0.0.99
			ask A shop-web-1 mac=2 -> 10.0.0.99
		`},
		{"down and up, with another Docker network", own + `
			ask A shop-web-1 mac=1 -> 10.0.0.99
			back A 10.0.0.99
			back A 10.0.0.254
			detach A
			restart
			attach B net=front
			ask B sharp_knuth mac=8 -> 10.0.0.10
			ask B shop-web-1 mac=2 -> 10.0.0.99
		`},
		{"scaled to three and back: each replica has its own", own + `
			reserve front shop/web/2 10.0.0.98
			reserve front shop/web/3 10.0.0.97
			ask A shop-web-3 mac=3 -> 10.0.0.97
			ask A shop-web-2 mac=2 -> 10.0.0.98
			ask A shop-web-1 mac=1 -> 10.0.0.99
			back A 10.0.0.97
			back A 10.0.0.98
			ask A shop-web-4 mac=4 -> 10.0.0.10
			ask A shop-web-2 mac=5 -> 10.0.0.98
		`},
		{"renamed, and another one is called so: another address", street + `
			attach A net=front
			ask A web mac=1 -> 10.0.0.10
			ask A web mac=2 -> 10.0.0.11
			has A web mac=1 -> 10.0.0.10
			back A 10.0.0.10
			# restarted under its new name, it is known by its MAC
			ask A old mac=1 -> 10.0.0.10
		`},
		{"renamed, and another one is called so, for whom it is reserved: a refusal that names the user", street + `
			attach A net=front
			reserve front web 10.0.0.99
			ask A web mac=1 -> 10.0.0.99
			ask A web mac=2 ! inuse; by web (MAC 02:00:00:00:00:01) on host h1
			back A 10.0.0.99
			ask A web mac=2 -> 10.0.0.99
			ask A old mac=1 -> 10.0.0.10
		`},
		{"names that Docker draws use up nothing", street + `
			attach A net=front
			reserve front shop/web/1 10.0.0.11
			reserve front shop/db/1 10.0.0.22
			ask A a mac=1 -> 10.0.0.10
			ask A b mac=2 -> 10.0.0.12
			ask A c mac=3 -> 10.0.0.13
			ask A d mac=4 -> 10.0.0.20
			ask A e mac=5 -> 10.0.0.21
			ask A f mac=6 -> 10.0.0.23
			ask A g mac=7 ! exhausted; =NotEnoughCapacity
			back A 10.0.0.13
			ask A g mac=7 -> 10.0.0.13
			ask A shop-web-1 mac=8 -> 10.0.0.11
			ask A shop-db-1 mac=9 -> 10.0.0.22
		`},
	}
	for _, names := range [][2]string{{"shop-web-1", "shop-web-1"}, {"shop_web_1", "shop_web_1"}, {"shop_web_1", "shop-web-1"},
		{"0123456789ab_shop-web-1", "shop-web-1"}, {"shop-web-1", "0123456789ab_shop-web-1"}} {
		scripts = append(scripts, ipamtest.Script{Name: strings.Join(names[:], ", then "), Steps: street + `
			attach A net=front
			ask A first mac=1 -> 10.0.0.10
			ask A ` + names[0] + ` mac=2 -> 10.0.0.11
			back A 10.0.0.10
			back A 10.0.0.11
			ask A ` + names[1] + ` mac=3 -> 10.0.0.11
		`})
	}
	ipamtest.RunScripts(t, scripts)
}

// TestOwnerRules: rules decide by an endpoint's name from which pool it gets an address, and which owner it is.
// A rule applies only to families that have a pool of its name (LN-8).
func TestOwnerRules(t *testing.T) {
	const planned = street + "pool front 10.0.0.30+2 name=rest\nreserve front prod/api/1 10.0.0.99\n"
	ipamtest.RunScripts(t, []ipamtest.Script{
		{"a pool by a name", planned + `
			network.set front rule=web-*=pool:web
			attach A net=front
			ask A web-a mac=1 -> 10.0.0.20
			ask A db-a mac=2 -> 10.0.0.10
			ask A web mac=3 -> 10.0.0.11
			ask A web-b mac=4 -> 10.0.0.21
			ask A web-c mac=5 -> 10.0.0.22
			ask A web-d mac=6 -> 10.0.0.23
			ask A web-e mac=7 ! exhausted; =NotEnoughCapacity
			ask A db-b mac=8 -> 10.0.0.12
		`},
		{"a pool by an owner's path", planned + `
			network.set front rule=shop/web/*=pool:web
			attach A net=front
			ask A shop-web-1 mac=1 -> 10.0.0.20
			ask A shop_web_2 mac=2 -> 10.0.0.21
			ask A shop-db-1 mac=3 -> 10.0.0.10
			ask A 0123456789ab_shop-web-3 mac=4 -> 10.0.0.22
		`},
		{"an owner", planned + `
			network.set front rule=prod-*-n*=owner:prod/*/*
			attach A net=front
			ask A prod-api-n1 mac=1 -> 10.0.0.99
			ask A prod-api-n2 mac=2 -> 10.0.0.10
			ask A prod/api/1 mac=3 ! inuse; =AlreadyInUse
		`},
		{"an owner and a pool", planned + `
			network.set front rule=api*=owner:prod/api/*,pool:web
			attach A net=front
			ask A api1 mac=1 -> 10.0.0.99
			ask A api2 mac=2 -> 10.0.0.20
			ask A other mac=3 -> 10.0.0.10
		`},
		{"a pool by the owner that a rule makes", planned + `
			network.set front rule=api*=owner:prod/api/*+prod/*=pool:web
			attach A net=front
			ask A api1 mac=1 -> 10.0.0.99
			ask A api2 mac=2 -> 10.0.0.20
			ask A other mac=3 -> 10.0.0.10
			ask A prod/api/3 mac=4 -> 10.0.0.21
		`},
		{"its own pool before that of the owner it makes", planned + `
			network.set front rule=api*=owner:prod/api/*,pool:web+prod/*=pool:rest
			attach A net=front
			ask A api2 mac=1 -> 10.0.0.20
			ask A prod/api/3 mac=2 -> 10.0.0.30
		`},
		{"the first that matches", planned + `
			network.set front rule=web-a*=pool:web+web-*=owner:prod/api/1
			attach A net=front
			ask A web-ax mac=1 -> 10.0.0.20
			ask A web-b mac=2 -> 10.0.0.99
			ask A web-c mac=3 ! inuse; =AlreadyInUse
		`},
		{"one pool of the Docker network's own", planned + `
			network.set front rule=web-*=pool:web+api=owner:prod/api/1
			attach A net=front pool=rest
			ask A web-a mac=1 -> 10.0.0.30
			ask A api mac=2 -> 10.0.0.99
			ask A db mac=3 -> 10.0.0.31
			ask A web-b mac=4 ! exhausted; =NotEnoughCapacity
		`},
		{"a pool that is nowhere binds nobody", planned + `
			network.set front rule=*=pool:nowhere
			attach A net=front
			ask A web mac=1 -> 10.0.0.10
		`},
		{"an owner that cannot be binds nobody", planned + `
			network.set front rule=web*=owner:prod/*
			attach A net=front
			ask A web mac=1 -> 10.0.0.10
			ask A web/ mac=2 -> 10.0.0.11
			ask A web// mac=3 -> 10.0.0.12
		`},
		{"both families", `
			network front subnet=10.0.0.0/24,gw=10.0.0.254+fd00::/64,gw=fd00::ffff rule=web-*=pool:web+six-*=pool:six
			pool front 10.0.0.10+4
			pool front 10.0.0.20+1 name=web
			pool front fd00::10+4
			pool front fd00::20+1 name=six
			attach A net=front
			attach B net=front six
			ask A web-1 mac=1 -> 10.0.0.20
			ask B web-1 mac=1 -> fd00::10
			ask A six-1 mac=2 -> 10.0.0.10
			ask B six-1 mac=2 -> fd00::20
			# its pool is full, and it is given none of another
			ask A web-2 mac=3 ! exhausted; =NotEnoughCapacity
			ask B web-2 mac=3 -> fd00::11
			ask A six-2 mac=4 -> 10.0.0.11
			ask B six-2 mac=4 ! exhausted; =NotEnoughCapacity
			ask A db mac=5 -> 10.0.0.12
			ask B db mac=5 -> fd00::12
			ask B web-1 mac=1 ip=fd00::20 ! inuse; six-1
		`},
	})
}
