package edit_test

import (
	"strings"
	"testing"

	"berth/internal/ipam/ipamtest"
)

// BO-9: a bind first reuses existing reservations that fit: the same network, and any static address that is wished
// for.
func TestBO9Bind(t *testing.T) {
	ipamtest.RunScripts(t, []ipamtest.Script{
		{"what is there stays", `
			network n subnet=192.0.2.0/28,gw=192.0.2.1,pool
			reserve n shop/web/1 192.0.2.7 automatic
			reserve n shop/db/1 192.0.2.9
			bind n shop/web/2 shop/web/1 shop/db/1=192.0.2.9
			owned n -> shop/web/2=192.0.2.2:a shop/web/1=192.0.2.7:a shop/db/1=192.0.2.9
			bind n shop/web/2 shop/web/1 shop/db/1=192.0.2.9
			owned n -> shop/web/2=192.0.2.2:a shop/web/1=192.0.2.7:a shop/db/1=192.0.2.9
		`},
		{"before the rest is reserved: nobody is given what another one has", `
			network n subnet=192.0.2.0/28,pool
			reserve n b -> 192.0.2.1
			bind n a=192.0.2.1 b ! inuse; =AlreadyInUse; 192.0.2.1; b
			bind n a b
			owned n -> b=192.0.2.1:a a=192.0.2.2:a
		`},
		{"a static wish that matches makes it static, and an automatic one automatic", `
			network n subnet=192.0.2.0/28,pool static=192.0.2.9
			reserve n a -> 192.0.2.1
			reserve n b 192.0.2.2
			reserve n c 192.0.2.9
			bind n a=192.0.2.1 b c
			owned n -> a=192.0.2.1 b=192.0.2.2:a c=192.0.2.9
		`},
		{"another static wish holds both", `
			network n subnet=192.0.2.0/28,pool
			reserve n a -> 192.0.2.1
			bind n a=192.0.2.9
			owned n -> a=192.0.2.1:a! a=192.0.2.9
			bind n a=192.0.2.9
			owned n -> a=192.0.2.1:a! a=192.0.2.9
		`},
		{"on each network by itself", `
			network n subnet=192.0.2.0/28,pool
			network m subnet=198.51.100.0/28,pool
			reserve n a 192.0.2.5
			bind m a a@n=192.0.2.5 b@n
			owned n -> b=192.0.2.1:a a=192.0.2.5
			owned m -> a=198.51.100.1:a
		`},
		{"several addresses of one interface", `
			network n subnet=192.0.2.0/28,pool+2001:db8::/64
			pool n 2001:db8::5+2 name=six
			reserve n a pool,six -> 192.0.2.1 2001:db8::5
			bind n a=pool,six b=pool,six
			owned n -> a=192.0.2.1:a b=192.0.2.2:a a=2001:db8::5:a b=2001:db8::6:a
		`},
		{"those that are not wanted are not touched", `
			network n subnet=192.0.2.0/28,pool
			reserve n old
			bind n new
			owned n -> old=192.0.2.1:a new=192.0.2.2:a
		`},
		{"wanted again on a network that it was not wanted on for a while", `
			network n subnet=192.0.2.0/28,pool
			network m subnet=198.51.100.0/28,pool
			bind n a a@m b@m
			bind n a
			owned m -> a=198.51.100.1:a! b=198.51.100.2:a
			bind n a a@m
			owned m -> a=198.51.100.1:a b=198.51.100.2:a
			bind n a
			bind n a a@m=198.51.100.1
			owned m -> a=198.51.100.1 b=198.51.100.2:a
		`},
		{"wanted again in a slot that was not wanted for a while", `
			network n subnet=192.0.2.0/28,pool
			bind n a=pool,pool
			bind n a=pool
			owned n -> a=192.0.2.1:a a=192.0.2.2:a!
			bind n a=pool,pool
			owned n -> a=192.0.2.1:a a=192.0.2.2:a
		`},
		{"what the owner has, or had last, by a name of which a rule makes it", `
			network n subnet=192.0.2.0/28,pool rule=api-*=owner:prod/api/*
			attach A net=n
			ask A x mac=9
			ask A api-1 mac=1 -> 192.0.2.2
			ask A api-2 mac=2 -> 192.0.2.3
			back A 192.0.2.3
			bind n prod/api/2 prod/api/1 prod/api/3
			owned n -> prod/api/1=192.0.2.2:a* prod/api/2=192.0.2.3:a prod/api/3=192.0.2.4:a
		`},
		{"wanted again where only static ones are", `
			network v subnet=203.0.113.0/28 type=vip
			bind v a=203.0.113.5,203.0.113.6
			bind v a=203.0.113.5
			bind v a=203.0.113.5,pool
			owned v -> a=203.0.113.5 a=203.0.113.6
			network n subnet=192.0.2.0/28,pool static=192.0.2.2
			bind n a=192.0.2.1,192.0.2.2
			bind n a=192.0.2.1
			bind n a=pool,pool
			owned n -> a=192.0.2.1:a a=192.0.2.2
		`},
		{"what the owner had last", `
			network n subnet=192.0.2.0/28,pool
			attach A net=n
			ask A x mac=9
			ask A shop-web-1 mac=1 -> 192.0.2.2
			back A 192.0.2.2
			bind n shop/web/1
			owned n -> shop/web/1=192.0.2.2:a
		`},
		{"what the owner has in hand and has not reserved", `
			network n subnet=192.0.2.0/28,pool
			attach A net=n
			ask A x mac=9
			ask A web mac=1 -> 192.0.2.2
			ask A shop_web_1 mac=2 -> 192.0.2.3
			bind n web shop/web/1
			owned n -> web=192.0.2.2:a* shop/web/1=192.0.2.3:a*
		`},
	})
}

// BO-10: a bind reserves static addresses, then automatic ones. It makes all of them or none.
func TestBO10Order(t *testing.T) {
	ipamtest.RunScripts(t, []ipamtest.Script{
		{"static ones first, however they are listed", `
			network n subnet=192.0.2.0/29,pool
			bind n a b=192.0.2.1 c d=192.0.2.3
			owned n -> b=192.0.2.1 a=192.0.2.2:a d=192.0.2.3 c=192.0.2.4:a
		`},
		{"two that want one address", `
			network n subnet=192.0.2.0/29,pool
			bind n a=192.0.2.1 b=192.0.2.1 ! inuse; =AlreadyInUse; 192.0.2.1; a
			owned n -> 
		`},
		{"nothing is left of a bind that is refused in its last part", `
			network n subnet=192.0.2.0/29,pool
			reserve n a 192.0.2.1
			bind n a=192.0.2.2 b c=192.0.2.9 ! invalid; =OutsideSubnet; 192.0.2.9
			bind n a=192.0.2.2 b c d e f g ! exhausted; =NotEnoughCapacity
			owned n -> a=192.0.2.1
		`},
		{"no such network, no such owner", `
			network n subnet=192.0.2.0/29,pool
			bind n a a@back ! notfound; back
			bind n a -x ! invalid; -x
			owned n -> 
		`},
	})
}

// BO-13: a replaced address is kept with the new one until its owner runs with the new one.
func TestBO13Both(t *testing.T) {
	ipamtest.RunScripts(t, []ipamtest.Script{
		{"old and new are the owner's", `
			network n subnet=192.0.2.0/28,pool
			attach A net=n
			reserve n a 192.0.2.5
			ask A a mac=1 -> 192.0.2.5
			reserve n a 192.0.2.6 replace -> 192.0.2.6
			owned n -> a=192.0.2.5*! a=192.0.2.6
			reserve n b 192.0.2.5 ! inuse; =AlreadyInUse; 192.0.2.5
			reserve n b 192.0.2.6 ! inuse; =AlreadyInUse; 192.0.2.6; a
			back A 192.0.2.5
			reserve n b 192.0.2.5 ! inuse; =AlreadyInUse; 192.0.2.5; a
			ask A x mac=9 ip=192.0.2.5 ! inuse; =AlreadyInUse; a
			end a replaced
			owned n -> a=192.0.2.5! a=192.0.2.6
			ask A a mac=1 ip=192.0.2.5 -> 192.0.2.5
			end a replaced
			owned n -> a=192.0.2.5*! a=192.0.2.6
			back A 192.0.2.5
			ask A a mac=1 -> 192.0.2.6
			owned n -> a=192.0.2.5! a=192.0.2.6*
			end a replaced
			owned n -> a=192.0.2.6*
			reserve n b 192.0.2.5 -> 192.0.2.5
		`},
		{"after a failed deploy both stay, and the next one releases the old", `
			network n subnet=192.0.2.0/28,pool
			attach A net=n
			bind n a=192.0.2.5
			ask A a mac=1 -> 192.0.2.5
			bind n a=192.0.2.6
			end a replaced
			owned n -> a=192.0.2.5*! a=192.0.2.6
			restart
			bind n a=192.0.2.6
			owned n -> a=192.0.2.5*! a=192.0.2.6
			back A 192.0.2.5
			ask A a mac=2 -> 192.0.2.6
			end a replaced
			owned n -> a=192.0.2.6*
		`},
		{"who has the old one in hand beside the new one keeps it", `
			network n subnet=192.0.2.0/28,pool
			attach A net=n
			reserve n a 192.0.2.5
			ask A a mac=1 -> 192.0.2.5
			reserve n a 192.0.2.6 replace
			ask A a mac=2 -> 192.0.2.6
			owned n -> a=192.0.2.5*! a=192.0.2.6*
			end a replaced
			owned n -> a=192.0.2.6*
			reserve n b 192.0.2.5 ! inuse; =AlreadyInUse; 192.0.2.5; a
			back A 192.0.2.5
			reserve n b 192.0.2.5 -> 192.0.2.5
		`},
		{"back before anything ran with the new one", `
			network n subnet=192.0.2.0/28,pool
			attach A net=n
			reserve n a 192.0.2.5
			ask A a mac=1 -> 192.0.2.5
			reserve n a 192.0.2.6 replace -> 192.0.2.6
			reserve n a 192.0.2.5 replace -> 192.0.2.5
			owned n -> a=192.0.2.5* a=192.0.2.6!
			end a replaced
			owned n -> a=192.0.2.5*
			reserve n b 192.0.2.6 -> 192.0.2.6
		`},
		{"on and on: all that was replaced is held", `
			network n subnet=192.0.2.0/28,pool
			attach A net=n
			reserve n a 192.0.2.5
			reserve n a 192.0.2.6 replace
			reserve n a 192.0.2.7 replace
			owned n -> a=192.0.2.5! a=192.0.2.6! a=192.0.2.7
			reserve n a 192.0.2.6 replace
			owned n -> a=192.0.2.5! a=192.0.2.6 a=192.0.2.7!
			ask A a mac=1 -> 192.0.2.6
			end a replaced
			owned n -> a=192.0.2.6*
		`},
		{"another pool", `
			network n subnet=192.0.2.0/28
			pool n 192.0.2.4+2 name=web
			pool n 192.0.2.8+2 name=db
			attach A net=n
			reserve n a web -> 192.0.2.4
			reserve n a web replace -> 192.0.2.4
			owned n -> a=192.0.2.4:a
			reserve n a db replace -> 192.0.2.8
			owned n -> a=192.0.2.4:a! a=192.0.2.8:a
			ask A a mac=1 -> 192.0.2.8
			end a replaced
			owned n -> a=192.0.2.8:a*
		`},
		{"one of several addresses", `
			network n subnet=192.0.2.0/28,pool+2001:db8::/64
			attach A net=n
			attach B net=n six
			reserve n a 192.0.2.5,2001:db8::5
			ask A a mac=1 -> 192.0.2.5
			ask B a mac=1 -> 2001:db8::5
			reserve n a 192.0.2.5,2001:db8::6 replace -> 192.0.2.5 2001:db8::6
			owned n -> a=192.0.2.5* a=2001:db8::5*! a=2001:db8::6
			end a replaced
			owned n -> a=192.0.2.5* a=2001:db8::5*! a=2001:db8::6
			back B 2001:db8::5
			ask B a mac=1 -> 2001:db8::6
			end a replaced
			owned n -> a=192.0.2.5* a=2001:db8::6*
		`},
		{"two addresses of an owner change places, or one takes the other's", `
			network n subnet=192.0.2.0/28,pool
			reserve n a 192.0.2.5,192.0.2.6
			reserve n a 192.0.2.6,192.0.2.5 ! inuse; =AlreadyExists; a
			reserve n a 192.0.2.6,192.0.2.5 replace -> 192.0.2.6 192.0.2.5
			reserve n a 192.0.2.6,192.0.2.5 -> 192.0.2.6 192.0.2.5
			owned n -> a=192.0.2.5 a=192.0.2.6
			reserve n a 192.0.2.5 replace -> 192.0.2.5
			owned n -> a=192.0.2.5 a=192.0.2.6!
			bind n a=192.0.2.7,192.0.2.5,192.0.2.6
			owned n -> a=192.0.2.5 a=192.0.2.6 a=192.0.2.7
			reserve n a 192.0.2.8,192.0.2.7 replace -> 192.0.2.8 192.0.2.7
			owned n -> a=192.0.2.5! a=192.0.2.6 a=192.0.2.7 a=192.0.2.8
		`},
		{"one that was replaced is wanted in another place", `
			network n subnet=192.0.2.0/28,pool
			reserve n a 192.0.2.5,192.0.2.6
			bind n a=192.0.2.5
			owned n -> a=192.0.2.5 a=192.0.2.6!
			reserve n a 192.0.2.6,pool replace -> 192.0.2.6 192.0.2.1
			owned n -> a=192.0.2.1:a a=192.0.2.5! a=192.0.2.6
			reserve n a 192.0.2.6,pool -> 192.0.2.6 192.0.2.1
		`},
		{"ends with its owner", `
			network n subnet=192.0.2.0/28,pool
			reserve n a 192.0.2.5
			reserve n a 192.0.2.6 replace
			end a
			owned n -> 
			take n x 0:ip0=192.0.2.5,ip1=192.0.2.6
		`},
		{"ends alone; without the new one the old one is wanted again", `
			network n subnet=192.0.2.0/28,pool
			reserve n a 192.0.2.5
			reserve n a 192.0.2.6 replace
			unreserve n a 192.0.2.5
			owned n -> a=192.0.2.6
			reserve n a 192.0.2.7 replace
			unreserve n a 192.0.2.7
			owned n -> a=192.0.2.6
			reserve n a 192.0.2.6 -> 192.0.2.6
			reserve n a 192.0.2.3 replace
			reserve n a 192.0.2.4 replace
			unreserve n a 192.0.2.4
			owned n -> a=192.0.2.3 a=192.0.2.6!
			unreserve n a 192.0.2.3
			owned n -> a=192.0.2.6
			reserve n a 192.0.2.7 ! inuse; =AlreadyExists; 192.0.2.6
		`},
		{"of all owners under a path", `
			network n subnet=192.0.2.0/28,pool
			attach A net=n
			bind n s/web/1=192.0.2.1 s/web/2=192.0.2.2 s/db/1=192.0.2.3
			bind n s/web/1=192.0.2.4 s/web/2=192.0.2.5 s/db/1=192.0.2.6
			ask A s-web-1 mac=1 -> 192.0.2.4
			ask A s-db-1 mac=2 -> 192.0.2.6
			end s/web under replaced
			owned n -> s/web/2=192.0.2.2! s/db/1=192.0.2.3! s/web/1=192.0.2.4* s/web/2=192.0.2.5 s/db/1=192.0.2.6*
			end s under replaced
			owned n -> s/web/2=192.0.2.2! s/web/1=192.0.2.4* s/web/2=192.0.2.5 s/db/1=192.0.2.6*
		`},
		{"taken by hand", `
			network n subnet=192.0.2.0/28,pool
			reserve n a 192.0.2.5
			reserve n a 192.0.2.6 replace
			take n a pool -> 192.0.2.6
			end a replaced
			owned n -> a=192.0.2.6*
		`},
	})
}

// BO-14: another gateway or other tags, such as those for resolvers, change no address.
func TestBO14Gateway(t *testing.T) {
	ipamtest.RunScripts(t, []ipamtest.Script{{"", `
			network n subnet=192.0.2.0/28,gw=192.0.2.1,pool tag.dns=192.0.2.14
			attach A net=n
			bind n a b=192.0.2.9
			ask A a mac=1 -> 192.0.2.2
			ask A x mac=3 -> 192.0.2.3
			take n printer 192.0.2.7
			network.set n tag.dns=192.0.2.12
			has A a mac=1 -> 192.0.2.2
			detach A
			subnet.set n 192.0.2.0/28 gw=192.0.2.14
			owned n -> a=192.0.2.2:a b=192.0.2.9
			bind n a b=192.0.2.9
			owned n -> a=192.0.2.2:a b=192.0.2.9
			show n taken -> printer:0.0=192.0.2.7
			attach A net=n -> 192.0.2.0/28 192.0.2.14
			ask A new mac=4 -> 192.0.2.1
			ask A a mac=1 -> 192.0.2.2
			ask A x mac=3 -> 192.0.2.3
			ask A b mac=2 -> 192.0.2.9
			detach A
			subnet.set n 192.0.2.0/28 gw=192.0.2.9 ! inuse; 192.0.2.9; b
			subnet.set n 192.0.2.0/28 gw=none
			owned n -> a=192.0.2.2:a b=192.0.2.9
		`}})
}

// A network that Docker made is planned from its first reservation on, also if one bind makes several.
func TestBO9DockerMade(t *testing.T) {
	r := ipamtest.New(t)
	r.Run(`attach A cidr=192.0.2.0/28`)
	n := strings.Fields(r.Describe([]string{"networks"}))[0]
	r.Run("bind " + n + " a b c=192.0.2.9\ndetach A\nowned " + n +
		" -> a=192.0.2.1:a b=192.0.2.2:a c=192.0.2.9\nshow " + n + " counts -> held 0 reserved 3 docker 0 planned true")
}

// BO-13: a replica that starts next to its predecessor gets another address: the wish names the one that it must not
// be. The same request gives the same address again. A pool without a second free address refuses it and changes
// nothing.
func TestBO13Another(t *testing.T) {
	ipamtest.RunScripts(t, []ipamtest.Script{
		{"start-first: both run, and the second one stays", `
			network n subnet=192.0.2.0/28,pool
			attach A net=n
			reserve n shop/web/1 pool -> 192.0.2.1
			ask A shop-web-1 mac=1 -> 192.0.2.1
			reserve n shop/web/1 pool replace not=192.0.2.1 -> 192.0.2.2
			reserve n shop/web/1 pool replace not=192.0.2.1 -> 192.0.2.2
			reserve n shop/web/1 pool replace -> 192.0.2.2
			owned n -> shop/web/1=192.0.2.1:a*! shop/web/1=192.0.2.2:a
			ask A 0123456789ab_shop-web-1 mac=2 -> 192.0.2.2
			back A 192.0.2.1
			end shop/web/1 replaced
			owned n -> shop/web/1=192.0.2.2:a*
			reserve n shop/web/1 pool replace not=192.0.2.2 -> 192.0.2.1
		`},
		{"back again before it ran", `
			network n subnet=192.0.2.0/28,pool
			reserve n a pool -> 192.0.2.1
			reserve n a pool replace not=192.0.2.1 -> 192.0.2.2
			reserve n a pool replace not=192.0.2.2 -> 192.0.2.1
			owned n -> a=192.0.2.1:a a=192.0.2.2:a!
		`},
		{"what its container has, and nobody reserved, is not it", `
			network n subnet=192.0.2.0/29,pool
			attach A net=n
			ask A a mac=1 -> 192.0.2.1
			reserve n a pool replace not=192.0.2.1 -> 192.0.2.2
			reserve n b pool not=192.0.2.3 -> 192.0.2.4
			reserve n c pool -> 192.0.2.3
		`},
		{"a pool that has one alone", `
			network n subnet=192.0.2.0/30,pool
			reserve n a pool -> 192.0.2.1
			reserve n b pool -> 192.0.2.2
			reserve n a pool replace not=192.0.2.1 ! exhausted; =NotEnoughCapacity
			owned n -> a=192.0.2.1:a b=192.0.2.2:a
		`},
		{"an address that is to be another one", `
			network n subnet=192.0.2.0/28,pool
			reserve n a 192.0.2.5 not=192.0.2.5 ! invalid; give only one of the two
		`},
	})
}

// BO-13: a replaced address is not chosen for its owner in another way.
func TestBO13ReplacedIsNotPicked(t *testing.T) {
	ipamtest.RunScripts(t, []ipamtest.Script{{"", `
			network n subnet=192.0.2.0/24,pool
			reserve n web 192.0.2.77
			attach A net=n
			reserve n web 192.0.2.78 replace -> 192.0.2.78
			ask A web mac=1 -> 192.0.2.78
			take n web pool -> 192.0.2.1
			owned n -> web=192.0.2.77! web=192.0.2.78*
		`}})
}
