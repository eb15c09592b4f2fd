package edit_test

import (
	"fmt"
	"testing"

	"berth/internal/ipam/ipamtest"
)

// BO-1: an address in a network has one owner, whatever the deployment and the Docker network. What one deployment
// releases another one may get.
func TestBO1Unique(t *testing.T) {
	ipamtest.RunScripts(t, []ipamtest.Script{
		{"two deployments on two Docker networks", `
			network front subnet=192.0.2.0/29,pool
			attach A net=front cidr=192.0.2.0/29
			attach B net=front cidr=192.0.2.0/29
			reserve front shop/web/1 -> 192.0.2.1
			reserve front blog/web/1 -> 192.0.2.2
			reserve front blog/web/2 192.0.2.1 ! inuse; =AlreadyInUse; 192.0.2.1; shop/web/1
			ask A shop-web-1 mac=1 -> 192.0.2.1
			ask B blog-web-1 mac=2 -> 192.0.2.2
			ask B blog-web-2 mac=3 ip=192.0.2.1 ! inuse; =AlreadyInUse; 192.0.2.1; shop
			ask B blog-web-2 mac=3 -> 192.0.2.3
			owned front -> shop/web/1=192.0.2.1:a* blog/web/1=192.0.2.2:a*
		`},
		{"released by one deployment, reserved by the other", `
			network front subnet=192.0.2.0/29,pool
			attach A net=front
			reserve front shop/web/1 192.0.2.5
			ask A shop-web-1 mac=1 -> 192.0.2.5
			end shop under
			reserve front blog/web/1 192.0.2.5 ! inuse; =AlreadyInUse; shop-web-1
			back A 192.0.2.5
			reserve front blog/web/1 192.0.2.5 -> 192.0.2.5
			ask A shop-web-1 mac=1 -> 192.0.2.1
			ask A blog-web-1 mac=2 -> 192.0.2.5
		`},
		{"the same address on networks of two spaces", `
			network one subnet=192.0.2.0/29,pool
			network two space=lab subnet=192.0.2.0/29,pool
			reserve one shop/web/1 192.0.2.5
			reserve two blog/web/1 192.0.2.5 -> 192.0.2.5
		`},
	})
}

// BO-2: the successor of a container that was stopped, killed, removed or lost with its host gets its owner's
// address. Nobody else gets it meanwhile, however full the pool is.
func TestBO2Successor(t *testing.T) {
	const full = `
			network n subnet=192.0.2.0/29,gw=192.0.2.1,pool
			attach A net=n
			reserve n shop/web/1 -> 192.0.2.2
			ask A shop-web-1 mac=1 -> 192.0.2.2
			ask A a mac=11 -> 192.0.2.3
			ask A b mac=12 -> 192.0.2.4
			ask A c mac=13 -> 192.0.2.5
			ask A d mac=14 -> 192.0.2.6
	`
	const nobody = `
			ask A e mac=15 ! exhausted; =NotEnoughCapacity
			ask A mac=16 ! exhausted; =NotEnoughCapacity
			ask A e mac=15 ip=192.0.2.2 ! inuse; =AlreadyInUse; 192.0.2.2; shop/web/1
			take n printer pool ! exhausted; =NotEnoughCapacity
			take n printer 192.0.2.2 force ! inuse; =AlreadyInUse; shop/web/1
			reserve n other ! exhausted; =NotEnoughCapacity
			reserve n other 192.0.2.2 force ! inuse; =AlreadyInUse; shop/web/1
			gateway A ip=192.0.2.2 ! inuse; shop/web/1
			exclude n 192.0.2.2
			include n 192.0.2.2
	`
	ipamtest.RunScripts(t, []ipamtest.Script{
		{"stopped, and started with another MAC", full + `back A 192.0.2.2` + nobody +
			`ask A shop-web-1 mac=2 -> 192.0.2.2`},
		{"the daemon restarts meanwhile", full + "back A 192.0.2.2\nrestart\n" + nobody +
			`ask A shop_web_1 mac=2 -> 192.0.2.2`},
		{"lost with its host, and found again by its MAC", full + `
			restart
			ask A shop-web-1 mac=1 -> 192.0.2.2
			owned n -> shop/web/1=192.0.2.2:a*`},
		{"lost, and its release too: its successor waits for the witness", full + `
			ask A shop-web-1 mac=2 ! inuse; =AlreadyInUse; 192.0.2.2; shop-web-1; 02:00:00:00:00:01
			lost 192.0.2.2 -> true
			owned n -> shop/web/1=192.0.2.2:a` + nobody + `ask A shop-web-1 mac=2 -> 192.0.2.2`},
		{"another host's is not for this one's witness to end", full + `
			host h2
			lost 192.0.2.2 -> false
			host h1
			lost 192.0.2.2 -> true`},
		{"the Docker network is recreated", full + `
			detach A
			attach A net=n
			ask A p mac=21
			ask A q mac=22
			ask A r mac=23
			ask A s mac=24
			owned n -> shop/web/1=192.0.2.2:a` + nobody + `ask A shop-web-1 mac=2 -> 192.0.2.2`},
		{"excluded meanwhile", full + `
			back A 192.0.2.2
			exclude n 192.0.2.2
			ask A shop-web-1 mac=2 -> 192.0.2.2`},
		{"out of the pools meanwhile", full + `
			back A 192.0.2.2
			pool.rm n 192.0.2.2
			ask A shop-web-1 mac=2 -> 192.0.2.2`},
		{"in quarantine, which binds not its owner", `
			network n subnet=192.0.2.0/29,pool quarantine=1h sticky=off
			attach A net=n
			reserve n web 192.0.2.4
			ask A web mac=1 -> 192.0.2.4
			back A 192.0.2.4
			ask A web mac=2 -> 192.0.2.4`},
		{"a MAC is the owner", `
			network n subnet=192.0.2.0/30,pool
			attach A net=n
			reserve n 02:00:00:00:00:07 -> 192.0.2.1
			ask A x mac=7 -> 192.0.2.1
			back A 192.0.2.1
			ask A y mac=8 -> 192.0.2.2
			ask A z mac=9 ! exhausted; =NotEnoughCapacity
			ask A z mac=7 -> 192.0.2.1`},
	})
}

// BO-3: when an owner ends, anybody can get its addresses at once, on all networks. An address that an endpoint
// holds is free after its release.
func TestBO3Deleted(t *testing.T) {
	const shop = `
			network n subnet=192.0.2.0/28,gw=192.0.2.1,pool
			network m subnet=198.51.100.0/28,pool
			reserve n shop/web/1 -> 192.0.2.2
			reserve n shop/web/2 -> 192.0.2.3
			reserve m shop/web/1 -> 198.51.100.1
			reserve n shop/db/1 192.0.2.9,192.0.2.10
			reserve n shopping/web/1 -> 192.0.2.4
			reserve n shop-web -> 192.0.2.5
	`
	ipamtest.RunScripts(t, []ipamtest.Script{
		{"one instance, on all networks", shop + `
			end shop/web/1
			owned n -> shop/web/2=192.0.2.3:a shopping/web/1=192.0.2.4:a shop-web=192.0.2.5:a shop/db/1=192.0.2.9 shop/db/1=192.0.2.10
			owned m -> 
			take n new pool -> 192.0.2.2
			reserve m other 198.51.100.1 -> 198.51.100.1
			end shop/web/1
		`},
		{"all of a service", shop + `
			end shop/web under
			owned n -> shopping/web/1=192.0.2.4:a shop-web=192.0.2.5:a shop/db/1=192.0.2.9 shop/db/1=192.0.2.10
			owned m -> 
			reserve n new -> 192.0.2.2
			reserve n newer -> 192.0.2.3
		`},
		{"all of a deployment, and no other that begins like it", shop + `
			end shop under
			owned n -> shopping/web/1=192.0.2.4:a shop-web=192.0.2.5:a
			reserve n new 192.0.2.9,192.0.2.10 -> 192.0.2.9 192.0.2.10
		`},
		{"no deployment without that being said", shop + `
			end shop
			end shop/web
			end shop/w under
			owned n shop/web/1 -> shop/web/1=192.0.2.2:a
			show n counts -> held 1 reserved 6 docker 0 planned true
		`},
		{"what it took by hand", `
			network n subnet=192.0.2.0/28,gw=192.0.2.1,pool
			reserve n shop/web/1 -> 192.0.2.2
			take n shop/web/1 0:ip0=192.0.2.2,ip1=pool -> 192.0.2.2 192.0.2.3
			take n shop/web/2 pool -> 192.0.2.4
			take n shops pool -> 192.0.2.5
			end shop under
			show n taken -> shops:0.0=192.0.2.5
			show n counts -> held 2 reserved 0 docker 0 planned true
			take n a 0:ip0=192.0.2.2,ip1=192.0.2.3,ip2=192.0.2.4
		`},
		{"what its container has stays in use, and is everybody's after that", `
			network n subnet=192.0.2.0/30,pool
			attach A net=n
			reserve n shop/web/1 -> 192.0.2.1
			reserve n shop/web/2 -> 192.0.2.2
			ask A shop-web-1 mac=1 -> 192.0.2.1
			end shop under
			ask A x mac=2 -> 192.0.2.2
			ask A y mac=3 ! exhausted; =NotEnoughCapacity
			has A shop-web-1 mac=1 -> 192.0.2.1
			back A 192.0.2.1
			ask A y mac=3 -> 192.0.2.1
		`},
		{"a MAC, however it is written, and a container's name", `
			network n subnet=192.0.2.0/28,pool
			reserve n 02:00:00:00:00:0a -> 192.0.2.1
			reserve n web -> 192.0.2.2
			end 02-00-00-00-00-0A
			end web
			owned n -> 
		`},
	})
}

// BO-5: an owner that reserves again what it has succeeds and changes nothing. Others are refused, with its name.
func TestBO5Again(t *testing.T) {
	ipamtest.RunScripts(t, []ipamtest.Script{
		{"given addresses", `
			network n subnet=192.0.2.0/28,pool
			reserve n a 192.0.2.5,192.0.2.6 -> 192.0.2.5 192.0.2.6
			reserve n a 192.0.2.5,192.0.2.6 -> 192.0.2.5 192.0.2.6
			reserve n b 192.0.2.6 ! inuse; =AlreadyInUse; 192.0.2.6; a
			reserve n b 192.0.2.6 force ! inuse; =AlreadyInUse; 192.0.2.6; a
			reserve n b 192.0.2.6 automatic ! inuse; =AlreadyInUse; 192.0.2.6; a
			reserve n b 192.0.2.6 replace ! inuse; =AlreadyInUse; 192.0.2.6; a
			owned n -> a=192.0.2.5 a=192.0.2.6
		`},
		{"chosen ones, by whichever name of the pool they came from", `
			network n subnet=192.0.2.0/28
			pool n 192.0.2.4-192.0.2.7 name=web
			reserve n a -> 192.0.2.4
			reserve n a pool -> 192.0.2.4
			reserve n a web -> 192.0.2.4
			restart
			reserve n a -> 192.0.2.4
			owned n -> a=192.0.2.4:a
		`},
		{"what somebody has in hand, and has not reserved", `
			network n subnet=192.0.2.0/28,gw=192.0.2.1,pool
			attach A net=n
			ask A web mac=1 -> 192.0.2.2
			take n router 192.0.2.3
			reserve n b 192.0.2.2 ! inuse; =AlreadyInUse; 192.0.2.2; web; h1
			reserve n b 192.0.2.3 ! inuse; =AlreadyInUse; 192.0.2.3; router
			reserve n b 192.0.2.1 ! inuse; 192.0.2.1; gateway
			reserve n web 192.0.2.2 -> 192.0.2.2
			reserve n router 192.0.2.3 -> 192.0.2.3
		`},
	})
}

// BO-5: a repeated reservation changes no record and writes no event.
func TestBO5NothingWritten(t *testing.T) {
	r := ipamtest.New(t)
	r.Run(`
		network n subnet=192.0.2.0/28,pool
		reserve n a 192.0.2.5,192.0.2.6
		reserve n b
	`)
	for _, e := range ipamtest.Edits(t, `
		reserve n a 192.0.2.5,192.0.2.6
		reserve n b
		bind n a=192.0.2.5,192.0.2.6 b
		end nobody
		end nobody under
		end a replaced`) {
		unchanged(r, fmt.Sprintf("%+v", e), func() {
			if out := r.Edit(e); len(out.Changes) > 0 {
				t.Errorf("%+v: %+v", e, out.Changes)
			}
		})
	}
}

// BO-6: an owner has one reservation in a network: one interface with one or several addresses.
func TestBO6One(t *testing.T) {
	ipamtest.RunScripts(t, []ipamtest.Script{
		{"a second address", `
			network n subnet=192.0.2.0/28,pool
			reserve n a 192.0.2.5
			reserve n a 192.0.2.6 ! inuse; =AlreadyExists; a; 192.0.2.5
			reserve n a 192.0.2.6 force ! inuse; =AlreadyExists; a; 192.0.2.5
			reserve n a 192.0.2.6 automatic ! inuse; =AlreadyExists; a; 192.0.2.5
			owned n -> a=192.0.2.5
		`},
		{"a second interface", `
			network n subnet=192.0.2.0/28,pool
			reserve n a 192.0.2.5
			reserve n a nic=1 ! inuse; =AlreadyExists; a; 192.0.2.5
			reserve n a 192.0.2.6 nic=1 ! inuse; =AlreadyExists; a; 192.0.2.5
			reserve n b 192.0.2.7 nic=1
			reserve n b 192.0.2.8 ! inuse; =AlreadyExists; b; 192.0.2.7
			owned n -> a=192.0.2.5 b=192.0.2.7
		`},
		{"another pool", `
			network n subnet=192.0.2.0/28
			pool n 192.0.2.4+2 name=web
			pool n 192.0.2.8+2 name=db
			reserve n a web -> 192.0.2.4
			reserve n a db ! inuse; =AlreadyExists; a; 192.0.2.4
		`},
		{"several addresses of an interface are one", `
			network n subnet=192.0.2.0/28,pool+2001:db8::/64,pool
			reserve n a 192.0.2.5,192.0.2.6,2001:db8::5 -> 192.0.2.5 192.0.2.6 2001:db8::5
		`},
		{"on another network", `
			network n subnet=192.0.2.0/28,pool
			network m subnet=198.51.100.0/28,pool
			reserve n a 192.0.2.5
			reserve m a 198.51.100.5 -> 198.51.100.5
		`},
		{"twice in one wish", `
			network n subnet=192.0.2.0/28,pool
			bind n a=192.0.2.5 a=192.0.2.6 ! invalid|inuse; =AlreadyExists; a
			bind n a a ! invalid|inuse; =AlreadyExists; a
			reserve n a 192.0.2.5,192.0.2.5 ! invalid|inuse; =AlreadyExists; 192.0.2.5
			owned n -> 
			reserve n a 192.0.2.5
			reserve n a pool,192.0.2.5,192.0.2.5 replace ! invalid|inuse; =AlreadyExists; 192.0.2.5
			bind n a=pool,192.0.2.5,192.0.2.5 ! invalid|inuse; =AlreadyExists; 192.0.2.5
			owned n -> a=192.0.2.5
		`},
		{"the old one during a change is not a wanted one", `
			network n subnet=192.0.2.0/28,pool
			reserve n a 192.0.2.5
			reserve n a 192.0.2.6 replace -> 192.0.2.6
			reserve n a 192.0.2.6 -> 192.0.2.6
			reserve n a 192.0.2.7 ! inuse; =AlreadyExists; a; 192.0.2.6
			owned n -> a=192.0.2.5! a=192.0.2.6
		`},
	})
}

// BO-7: a refusal for too few addresses says how many are wanted and free, and reserves nothing.
func TestBO7Capacity(t *testing.T) {
	ipamtest.RunScripts(t, []ipamtest.Script{
		{"one", `
			network n subnet=192.0.2.0/30,pool
			reserve n a
			reserve n b
			reserve n c ! exhausted; =NotEnoughCapacity; 1 wanted; 0 free
			take n c pool ! exhausted; =NotEnoughCapacity
		`},
		{"several of a deploy", `
			network n subnet=192.0.2.0/29,pool
			reserve n old 192.0.2.3
			bind n s/web/1 s/web/2 s/web/3 s/web/4 s/web/5 s/web/6 s/web/7 ! exhausted; =NotEnoughCapacity; 7 wanted; 5 free
			owned n -> old=192.0.2.3
			bind n s/web/1 s/web/2 s/web/3 s/web/4 s/web/5
		`},
		{"those that are there count not", `
			network n subnet=192.0.2.0/29,pool
			bind n s/web/1 s/web/2 s/web/3 s/web/4
			bind n s/web/1 s/web/2 s/web/3 s/web/4 s/web/5 s/web/6 s/web/7 ! exhausted; =NotEnoughCapacity; 3 wanted; 2 free
		`},
		{"a static band is not free", `
			network n subnet=192.0.2.0/29,pool static=192.0.2.1-192.0.2.4
			bind n s/web/1 s/web/2 s/web/3 ! exhausted; =NotEnoughCapacity; 3 wanted; 2 free
			bind n s/web/1 s/web/2 s/db/1=192.0.2.2
			attach A net=n
			ask A x mac=1 ! exhausted; =NotEnoughCapacity
			take n x pool ! exhausted; =NotEnoughCapacity
		`},
		{"a named pool", `
			network n subnet=192.0.2.0/28
			pool n 192.0.2.4+2 name=web
			pool n 192.0.2.8+2
			bind n a=web b=web c=web ! exhausted; =NotEnoughCapacity; web; 3 wanted; 2 free
			attach A net=n pool=web
			ask A x mac=1
			ask A y mac=2
			ask A z mac=3 ! exhausted; =NotEnoughCapacity; web
		`},
		{"no pool at all, no subnet at all", `
			network n subnet=192.0.2.0/28
			network flat
			reserve n a ! exhausted; =NotEnoughCapacity; no pool
			reserve flat a ! exhausted; flat
		`},
	})
}
