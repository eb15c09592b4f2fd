package edit_test

import (
	"testing"

	"berth/internal/ipam"
	"berth/internal/ipam/ipamtest"
)

// BO-8: the type of a network says who chooses its addresses.
func TestBO8Types(t *testing.T) {
	ipamtest.RunScripts(t, []ipamtest.Script{
		{"manual: static or automatic", `
			network n subnet=192.0.2.0/28,pool type=manual
			network m subnet=198.51.100.0/28,pool
			reserve n a 192.0.2.5 -> 192.0.2.5
			reserve n b -> 192.0.2.1
			reserve n c 192.0.2.6 automatic -> 192.0.2.6
			owned n -> b=192.0.2.1:a a=192.0.2.5 c=192.0.2.6:a
		`},
		{"dynamic: what somebody else chose is recorded, and a static wish is refused", `
			network d subnet=192.0.2.0/28,gw=192.0.2.1,pool type=dynamic
			reserve d a 192.0.2.5 ! invalid; =WrongType; d; dynamic
			reserve d a 192.0.2.5 force ! invalid; =WrongType; d; dynamic
			bind d a=192.0.2.5 ! invalid; =WrongType; d; dynamic
			reserve d a 192.0.2.5 automatic -> 192.0.2.5
			reserve d a 192.0.2.5 automatic -> 192.0.2.5
			reserve d a -> 192.0.2.5
			reserve d a 192.0.2.6 automatic ! inuse; =AlreadyExists; 192.0.2.5
			reserve d b 192.0.2.5 automatic ! inuse; =AlreadyInUse; a
			reserve d b 192.0.9.5 automatic ! invalid; =OutsideSubnet; 192.0.9.5
			owned d -> a=192.0.2.5:a
			take d x pool ! invalid; =IPMissing; d
			take d x 192.0.2.6 -> 192.0.2.6
			take d y 192.0.2.6 ! inuse; =AlreadyInUse; x
		`},
		{"dynamic: an owner is recorded whose address nobody knows", `
			network d subnet=192.0.2.0/28,gw=192.0.2.1,pool type=dynamic
			reserve d a
			reserve d a
			bind d a b
			show d counts -> held 1 reserved 0 docker 0 planned true
			unreserve d a
			unreserve d a ! notfound; =IPMissing; a
			reserve d b
			owned d b -> b=invalid IP:a
			reserve d b 192.0.2.5 automatic -> 192.0.2.5
			owned d b -> b=192.0.2.5:a
			unreserve d b
			unreserve d b ! notfound; =IPMissing; b
		`},
		{"dynamic: what is recorded for an owner is the owner's", `
			network d subnet=192.0.2.0/28 type=dynamic
			attach D net=d
			reserve d web 192.0.2.5 automatic
			ask D web mac=1 -> 192.0.2.5
			ask D db mac=2 ip=192.0.2.5 ! inuse; =AlreadyInUse; web
			back D 192.0.2.5
			ask D db mac=2 ip=192.0.2.5 ! inuse; =AlreadyInUse; web
			reserve d web 192.0.2.6 automatic replace -> 192.0.2.6
			ask D web mac=1 -> 192.0.2.6
			end web replaced
			ask D db mac=2 ip=192.0.2.5 -> 192.0.2.5
		`},
		{"dynamic: Docker is told an address, or none", `
			network d subnet=192.0.2.0/28,gw=192.0.2.1,pool type=dynamic
			attach D net=d -> 192.0.2.0/28 192.0.2.1
			ask D web mac=1 ! invalid; =IPMissing; d
			ask D web mac=1 ip=192.0.2.9 -> 192.0.2.9
			has D web mac=1 -> 192.0.2.9
			ask D db mac=2 ip=192.0.2.9 ! inuse; =AlreadyInUse; web
			back D 192.0.2.9
			ask D web mac=1 ! invalid; =IPMissing; d
			ask D db mac=2 ip=192.0.2.9 -> 192.0.2.9
		`},
		{"dynamic: whoever is recorded lends nobody anything", `
			network d subnet=192.0.2.0/28,pool type=dynamic
			attach D net=d
			reserve d shop/web/1
			reserve d shop/web/2
			reserve d blog/web/1
			ask D shop-web-1 mac=1 ! invalid; =IPMissing; d
			ask D shop-web-1 mac=1 ip=192.0.2.9 -> 192.0.2.9
			end shop under
			unreserve d shop/web/1 ! notfound; =IPMissing
			unreserve d shop/web/2 ! notfound; =IPMissing
			unreserve d blog/web/1
			has D shop-web-1 mac=1 ip=192.0.2.9 -> 192.0.2.9
		`},
		{"dynamic: an owner goes with its network, and no network with its owners unless by force", `
			network d subnet=192.0.2.0/28 type=dynamic
			reserve d a
			network.rm d ! inuse; a
			network.rm d force
			events 9 reservation.remove -> reservation.remove:invalid IP
			network d subnet=192.0.2.0/28 type=dynamic
			unreserve d a ! notfound; =IPMissing
		`},
		{"vip: static only", `
			network v subnet=203.0.113.0/28,pool type=vip
			reserve v a ! invalid; =WrongType; v; vip
			reserve v a 203.0.113.5 automatic ! invalid; =WrongType; v; vip
			reserve v a 203.0.113.5 -> 203.0.113.5
			reserve v a 203.0.113.5 -> 203.0.113.5
			reserve v b 203.0.113.5 ! inuse; =AlreadyInUse; 203.0.113.5; a
			take v b pool ! invalid; =WrongType; v; vip
			take v b 203.0.113.5 ! inuse; =AlreadyInUse; a
			take v b 203.0.113.6 -> 203.0.113.6
			bind v c ! invalid; =WrongType; v; vip
			owned v -> a=203.0.113.5
		`},
		{"vip: Docker gets what is reserved, or asked for", `
			network v subnet=203.0.113.0/28,gw=203.0.113.1,pool type=vip
			attach V net=v
			ask V b mac=2 ! invalid; =WrongType; v; vip
			ask V b mac=2 ip=203.0.113.6 -> 203.0.113.6
			reserve v a 203.0.113.5
			ask V a mac=1 -> 203.0.113.5
			back V 203.0.113.6
			ask V b mac=2 ! invalid; =WrongType; v; vip
			ask V c mac=3 ip=203.0.113.5 ! inuse; =AlreadyInUse; a
		`},
		{"vip: what a container runs with is reserved for it by address alone", `
			network v subnet=203.0.113.0/28,gw=203.0.113.1,pool type=vip
			attach V net=v
			ask V a mac=1 ip=203.0.113.6 -> 203.0.113.6
			reserve v a ! invalid; =WrongType; v; vip
			reserve v a 203.0.113.6 -> 203.0.113.6
			owned v -> a=203.0.113.6*
		`},
		{"a gateway that nobody named", `
			network v subnet=203.0.113.0/28,pool type=vip
			network d subnet=192.0.2.0/28,pool type=dynamic
			attach V net=v
			attach D net=d
			gateway V ! invalid; =WrongType; v; vip
			gateway D ! invalid; =IPMissing; d; dynamic
			gateway V ip=203.0.113.1 -> 203.0.113.1
			gateway D ip=192.0.2.1 -> 192.0.2.1
		`},
		{"no such type", `
			network n type=static ! invalid; static; manual; dynamic; vip
			network n type=VIP ! invalid; VIP
		`},
	})
}

// BO-8: the type of a network is shown.
func TestBO8Shown(t *testing.T) {
	r := ipamtest.New(t)
	r.Run("network a\nnetwork b type=manual\nnetwork c type=dynamic\nnetwork d type=vip")
	for name, want := range map[string]string{"a": "manual", "b": "manual", "c": "dynamic", "d": "vip"} {
		if got := r.Show(name).Type; got != want {
			t.Errorf("%s is shown as %q", name, got)
		}
	}
}

// BO-10: Berth gives no address of a static band automatically, whoever asks and in whatever way.
func TestBO10Bands(t *testing.T) {
	ipamtest.RunScripts(t, []ipamtest.Script{
		{"nothing automatic", `
			network n subnet=192.0.2.0/29,pool static=192.0.2.1-192.0.2.3
			attach A net=n
			take n a pool -> 192.0.2.4
			reserve n b -> 192.0.2.5
			ask A c mac=1 -> 192.0.2.6
			ask A d mac=2 ! exhausted; =NotEnoughCapacity
			reserve n d 192.0.2.1 -> 192.0.2.1
			take n e 192.0.2.2 -> 192.0.2.2
			ask A f mac=3 ip=192.0.2.3 -> 192.0.2.3
			show n maps -> XXXXXXXX
		`},
		{"not even to one who had it", `
			network n subnet=192.0.2.0/29,pool
			attach A net=n
			ask A a mac=1 -> 192.0.2.1
			ask A b mac=2 ip=192.0.2.2 -> 192.0.2.2
			back A 192.0.2.1
			back A 192.0.2.2
			network.set n static=192.0.2.1-192.0.2.2
			ask A a mac=1 -> 192.0.2.3
			ask A b mac=2 -> 192.0.2.4
			take n a pool -> 192.0.2.5
		`},
		{"what is an owner's stays so", `
			network n subnet=192.0.2.0/29,pool
			attach A net=n
			reserve n a -> 192.0.2.1
			ask A b mac=2 -> 192.0.2.2
			network.set n static=192.0.2.1-192.0.2.4
			has A b mac=2 -> 192.0.2.2
			ask A a mac=1 -> 192.0.2.1
			reserve n a -> 192.0.2.1
			owned n -> a=192.0.2.1:a*
		`},
		{"and is given again when it is no longer one", `
			network n subnet=192.0.2.0/29,pool static=192.0.2.1-192.0.2.4
			take n a pool -> 192.0.2.5
			network.set n static=none
			take n b pool -> 192.0.2.1
			network.set n static=192.0.2.2,192.0.2.4
			take n c pool -> 192.0.2.3
			take n d pool -> 192.0.2.6
			take n e pool ! exhausted; =NotEnoughCapacity
		`},
		{"over both families and several subnets", `
			network n subnet=192.0.2.0/29,pool+2001:db8::/126,pool+198.51.100.0/30,pool static=192.0.2.0-192.0.2.7,2001:db8::1-2001:db8::2,198.51.100.1
			attach A net=n cidr=192.0.2.0/29
			attach B net=n cidr=2001:db8::/126
			ask A a mac=1 ! exhausted; =NotEnoughCapacity
			ask B a mac=1 -> 2001:db8::3
			take n b pool -> 198.51.100.2
			take n c pool ! exhausted; =NotEnoughCapacity
		`},
		{"a range of Docker's own", `
			network n subnet=192.0.2.0/28,pool static=192.0.2.8-192.0.2.9
			attach A net=n cidr=192.0.2.0/28 range=192.0.2.8/30
			ask A a mac=1 -> 192.0.2.10
			ask A b mac=2 -> 192.0.2.11
			ask A c mac=3 ! exhausted; =NotEnoughCapacity
		`},
		{"a gateway that nobody named comes out of none", `
			network n subnet=192.0.2.0/29,pool static=192.0.2.1-192.0.2.2
			attach A net=n
			gateway A -> 192.0.2.3
		`},
		{"what is no band", `
			network n subnet=192.0.2.0/29,pool
			exclude n 192.0.2.6
			network.set n static=192.0.2.5-192.0.2.6 ! overlap; =StaticOutOfRange; 192.0.2.6
			include n 192.0.2.6
			network.set n static=192.0.2.5-192.0.2.6
			network.set n static=none
			network.set n static=198.51.100.1-198.51.100.2 ! invalid; 198.51.100.1
			network.set n static=192.0.2.4-192.0.2.9 ! invalid; 192.0.2.9
			network.set n static=192.0.2.1-192.0.2.4,192.0.2.4-192.0.2.5 ! invalid|overlap; 192.0.2.4
			network m subnet=203.0.113.0/29,pool static=192.0.2.1 ! invalid; 192.0.2.1
			network flat static=192.0.2.1 ! invalid; 192.0.2.1
		`},
	})
}

// BO-10: bands are shown, are not cut off, and go with their subnets.
func TestBO10BandsShown(t *testing.T) {
	r := ipamtest.New(t)
	r.Run(`
		network n subnet=192.0.2.0/28,pool+2001:db8::/64,pool static=2001:db8::8-2001:db8::9,192.0.2.8/30,192.0.2.2
		subnet.set n 192.0.2.0/28 cidr=192.0.2.0/29 ! inuse; 192.0.2.8/30; static
		exclude n 192.0.2.7-192.0.2.8 ! overlap; 192.0.2.8/30; static
	`)
	if got := ipamtest.Joined(r.Show("n").Static); got != "192.0.2.2 192.0.2.8/30 2001:db8::8/127" {
		t.Errorf("the bands are %q", got)
	}
	r.Run(`
		network.set n static=192.0.2.4-192.0.2.5,2001:db8::8-2001:db8::9
		subnet.rm n 2001:db8::/64
	`)
	if got := ipamtest.Joined(r.Show("n").Static); got != "192.0.2.4/31" {
		t.Errorf("after a subnet has gone the bands are %q", got)
	}
	r.Edit(&ipam.ModifyNetwork{Network: "n", Static: &[]ipam.Range{}})
	if got := r.Show("n").Static; len(got) > 0 {
		t.Errorf("taken away, the bands are %v", got)
	}
}
