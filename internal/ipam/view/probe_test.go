package view_test

import (
	"testing"

	"berth/internal/ipam"
	"berth/internal/ipam/ipamtest"
)

// TestToProbe lists the next addresses of a probed network that nobody ever had, in the order of giving.
func TestToProbe(t *testing.T) {
	r := ipamtest.New(t)
	r.Run(`
		network net1 subnet=192.0.2.0/28,gw=192.0.2.1,name=a+2001:db8::/64,name=six,pool
		network net2 subnet=198.51.100.0/24,pool
		pool net1 192.0.2.8-192.0.2.15
		pool net1 192.0.2.0-192.0.2.3
		take net1 x 192.0.2.2
		reserve net1 y 192.0.2.9
		exclude net1 192.0.2.11-192.0.2.12
		take net1 z 192.0.2.8
		release net1 z
	`)
	probed := func(most int) string {
		t.Helper()
		all, err := r.S.ToProbe(ctx, most)
		if err != nil || len(all) > 1 {
			t.Fatal(all, err)
		}
		if len(all) == 0 {
			return ""
		}
		return all[0].Name + " " + all[0].Parent + " " + ipamtest.Joined(all[0].Addresses)
	}
	if got := probed(10); got != "" {
		t.Errorf("nothing is to be probed, and it is %s", got)
	}
	parent := "eth0"
	r.Edit(&ipam.ModifyNetwork{Network: "net1", Probe: &parent})
	for most, want := range map[int]string{
		1: "net1 eth0 192.0.2.10 2001:db8::1",
		3: "net1 eth0 192.0.2.10 192.0.2.13 192.0.2.14 2001:db8::1 2001:db8::2 2001:db8::3",
	} {
		if got := probed(most); got != want {
			t.Errorf("%d of each family: got %s, want %s", most, got, want)
		}
	}
	if got := probed(5); got != "net1 eth0 192.0.2.10 192.0.2.13 192.0.2.14 192.0.2.3 2001:db8::1 2001:db8::2 2001:db8::3 "+
		"2001:db8::4 2001:db8::5" {
		t.Errorf("all there are: %s", got)
	}
}
