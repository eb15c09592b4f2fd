package edit_test

import (
	"testing"

	"berth/internal/ipam/ipamtest"
)

// GA-24: ending the reservation of one address of an interface is refused if it leaves a gap, as a release is. A
// replaced address takes the slot again.
func TestGA24ReservationGap(t *testing.T) {
	ipamtest.RunScripts(t, []ipamtest.Script{
		{"ip0 of two", `
			network net1 subnet=192.0.2.0/28,pool
			reserve net1 web 192.0.2.4,192.0.2.5
			unreserve net1 web 192.0.2.4 ! invalid; interface 0 of web would have ip1 and no ip0
			unreserve net1 web 192.0.2.5
			unreserve net1 web 192.0.2.4
			reserve net1 web 192.0.2.4,192.0.2.5
			unreserve net1 web
			unreserve net1 web ! notfound
		`},
	})
}

// GA-10: an exclusion warns of those who hold or own its addresses, and of nobody else.
func TestGA10ExclusionWarns(t *testing.T) {
	ipamtest.RunScripts(t, []ipamtest.Script{{"", `
		network net1 subnet=192.0.2.0/26,gw=192.0.2.1,pool
		reserve net1 web 192.0.2.5
		take net1 rtr 192.0.2.6 -> 192.0.2.6
		reserve net1 db 192.0.2.7
		attach A net=net1
		ask A db mac=1 -> 192.0.2.7
		ask A gone mac=2 -> 192.0.2.2
		back A 192.0.2.2
		take net1 beyond 192.0.2.20 -> 192.0.2.20
		exclude net1 192.0.2.0-192.0.2.5 -> 192.0.2.5 is reserved for web. The owner keeps it; once the owner gives it up, nobody gets it
		exclude net1 192.0.2.6 -> 192.0.2.6 is held by rtr (0:ip0, by berth address take). The holder keeps it; once the holder gives it up, nobody gets it
		exclude net1 192.0.2.7-192.0.2.19 -> 192.0.2.7 is held by db (MAC 02:00:00:00:00:01) on host h1 and reserved for db. They keep it; once they give it up, nobody gets it
		exclude net1 192.0.2.30-192.0.2.40 -> 192.0.2.0/26
		take net1 many 0:ip0=192.0.2.41,ip1=192.0.2.42,ip2=192.0.2.43,ip3=192.0.2.44,ip4=192.0.2.45,ip5=192.0.2.46
		take net1 many 1:ip0=192.0.2.47,ip1=192.0.2.48,ip2=192.0.2.49,ip3=192.0.2.50,ip4=192.0.2.51,ip5=192.0.2.52
		exclude net1 192.0.2.41-192.0.2.60 -> ...nobody gets it; 2 more addresses of the range stay held or reserved
	`}})
}

// GA-9, GA-10: a gateway cannot be set to an excluded address or into a static band. An existing one stays.
func TestGA9GatewayOntoExclusion(t *testing.T) {
	ipamtest.RunScripts(t, []ipamtest.Script{{"", `
		network net1 subnet=192.0.2.0/26,pool static=192.0.2.10-192.0.2.19
		exclude net1 192.0.2.1-192.0.2.3 note=printers
		subnet.set net1 192.0.2.0/26 gw=192.0.2.2 ! inuse; is excluded by 192.0.2.1-192.0.2.3 (printers)
		subnet.set net1 192.0.2.0/26 gw=192.0.2.10 ! inuse; lies in 192.0.2.10-192.0.2.19, a static band
		subnet.set net1 192.0.2.0/26 gw=192.0.2.5
		exclude net1 192.0.2.4-192.0.2.6
		# the gateway that it has
		subnet.set net1 192.0.2.0/26 gw=192.0.2.5
	`}})
}

// GA-10: an engine's own gateway (`--gateway`, `--ipam-opt gateway`) cannot be in a static band either, be it the
// subnet's or one of several. One that exists when the band is made stays as long as its Docker network.
func TestGA10GatewayIntoBand(t *testing.T) {
	ipamtest.RunScripts(t, []ipamtest.Script{{"", `
		network net1 subnet=192.0.2.0/26,pool
		network net2 subnet=198.51.100.0/26,pool
		network net3 subnet=203.0.113.0/26,gw=203.0.113.1,pool
		attach D net=net3
		attach A net=net1
		attach C net=net2
		gateway C ip=198.51.100.10 -> 198.51.100.10
		network.set net1 static=192.0.2.10-192.0.2.19
		network.set net2 static=198.51.100.10-198.51.100.19
		network.set net3 static=203.0.113.10-203.0.113.19
		gateway A ip=192.0.2.10 ! inuse; =IPReserved; the gateway 192.0.2.10 lies in 192.0.2.10-192.0.2.19, a static band of the subnet 192.0.2.0/26; network modify --static
		attach B net=net1 cidr=192.0.2.0/26 gw=192.0.2.11 ! inuse; a static band of the subnet
		gateway A ip=192.0.2.5 -> 192.0.2.5
		attach B net=net1 cidr=192.0.2.0/26
		gateway B ip=192.0.2.12 ! inuse; a static band of the subnet
		gateway C ip=198.51.100.10 -> 198.51.100.10
		gateway D ip=203.0.113.10 -> 203.0.113.10
	`}})
}
