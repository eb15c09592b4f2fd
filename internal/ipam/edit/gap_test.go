package edit_test

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"berth/internal/ipam"
	"berth/internal/ipam/ipamtest"
)

// GA-24: to end the reservation of one address of an interface is refused where it would leave a gap, as giving one
// back is; what it was to replace takes its slot again.
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

// GA-10: an exclusion of addresses that somebody has or owns says who keeps them, and of no others.
func TestGA10ExclusionWarns(t *testing.T) {
	r := ipamtest.New(t)
	r.Line("network net1 subnet=192.0.2.0/26,gw=192.0.2.1,pool")
	r.Line("reserve net1 web 192.0.2.5")
	r.Line("take net1 rtr 192.0.2.6 -> 192.0.2.6")
	r.Line("reserve net1 db 192.0.2.7")
	r.Line("attach A net=net1")
	r.Line("ask A db mac=1 -> 192.0.2.7")
	r.Line("ask A gone mac=2 -> 192.0.2.2")
	r.Line("back A 192.0.2.2")
	r.Line("take net1 beyond 192.0.2.20 -> 192.0.2.20")
	exclude := func(text string) []string {
		t.Helper()
		out, err := r.S.Edit(ctx, ipam.EditOptions{}, &ipam.AddExclusion{Network: "net1", Range: r.Ranged(text)})
		fine(t, err)
		return out.Results[0].Warnings
	}
	for i, want := range []string{"192.0.2.5 is reserved for web, who keeps it", "192.0.2.6 is held by rtr",
		"192.0.2.7 is held by db"} {
		if i > 0 {
			r.Line("include net1 192.0.2.0-192.0.2.19")
		}
		if got := exclude("192.0.2.0-192.0.2.19"); len(got) != 3 || !strings.HasPrefix(got[i], want) {
			t.Errorf("it warns %q, want %q", got, want)
		}
	}
	if got := exclude("192.0.2.30-192.0.2.40"); len(got) != 0 {
		t.Errorf("of free addresses it warns %q", got)
	}
	for i := 41; i < 53; i++ {
		r.Line(fmt.Sprintf("take net1 many-%d 192.0.2.%d -> 192.0.2.%d", i, i, i))
	}
	if got := exclude("192.0.2.41-192.0.2.60"); len(got) != 11 ||
		got[10] != "2 more of its addresses are held or reserved, and stay so" {
		t.Errorf("of many it warns %q", got)
	}
}

// GA-9, GA-10: a gateway is set neither onto an exclusion nor into a static band; one that is there stays.
func TestGA9GatewayOntoExclusion(t *testing.T) {
	r := ipamtest.New(t)
	r.Line("network net1 subnet=192.0.2.0/26,pool")
	r.Line("exclude net1 192.0.2.1-192.0.2.3 note=printers")
	band := []ipam.Range{r.Ranged("192.0.2.10-192.0.2.19")}
	set := func(gateway string) error {
		a := netip.MustParseAddr(gateway)
		_, err := r.S.Edit(ctx, ipam.EditOptions{},
			&ipam.ModifySubnet{Network: "net1", Subnet: "192.0.2.0/26", Gateway: &a})
		return err
	}
	r.Edit(&ipam.ModifyNetwork{Network: "net1", Static: &band})
	for gateway, says := range map[string]string{"192.0.2.2": "is excluded with 192.0.2.1-192.0.2.3 (printers)",
		"192.0.2.10": "lies in the static band 192.0.2.10-192.0.2.19"} {
		if err := set(gateway); !errors.Is(err, ipam.ErrInUse) || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v", gateway, err)
		}
	}
	if err := set("192.0.2.5"); err != nil {
		t.Error(err)
	}
	r.Line("exclude net1 192.0.2.4-192.0.2.6")
	if err := set("192.0.2.5"); err != nil {
		t.Errorf("the gateway that it has: %v", err)
	}
}

// GA-10: an engine's own gateway (`--gateway`, `--ipam-opt gateway`) is not set into a static band either, be it the
// subnet's or one of several; what it has when the band is laid stays, for as long as its Docker network.
func TestGA10GatewayIntoBand(t *testing.T) {
	r := ipamtest.New(t)
	r.Run(`
		network net1 subnet=192.0.2.0/26,pool
		network net2 subnet=198.51.100.0/26,pool
		network net3 subnet=203.0.113.0/26,gw=203.0.113.1,pool
		attach D net=net3
		attach A net=net1
		attach C net=net2
		gateway C ip=198.51.100.10 -> 198.51.100.10
	`)
	for name, band := range map[string]string{"net1": "192.0.2.10-192.0.2.19", "net2": "198.51.100.10-198.51.100.19",
		"net3": "203.0.113.10-203.0.113.19"} {
		bands := []ipam.Range{r.Ranged(band)}
		r.Edit(&ipam.ModifyNetwork{Network: name, Static: &bands})
	}
	r.Run(`
		gateway A ip=192.0.2.10 ! inuse; =IPReserved; the gateway 192.0.2.10 lies in the static band 192.0.2.10-192.0.2.19 of the subnet 192.0.2.0/26; network modify --static
		attach B net=net1 cidr=192.0.2.0/26 gw=192.0.2.11 ! inuse; lies in the static band
		gateway A ip=192.0.2.5 -> 192.0.2.5
		attach B net=net1 cidr=192.0.2.0/26
		gateway B ip=192.0.2.12 ! inuse; lies in the static band
		gateway C ip=198.51.100.10 -> 198.51.100.10
		gateway D ip=203.0.113.10 -> 203.0.113.10
	`)
}
