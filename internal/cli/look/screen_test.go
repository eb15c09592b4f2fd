package look

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"berth/internal/ipam"
)

func at(minutes int) time.Time { return time.Date(2026, 1, 31, 12, minutes, 0, 0, time.UTC) }

// TestPicture: the fullest networks and those who have the most addresses come first, as many as have room; events
// count in the periods in which they were; and a screen cuts what it has no room for.
func TestPicture(t *testing.T) {
	pic := picture{at: at(59)}
	pic.status.Host, pic.status.Writable, pic.status.Reason = "alpha", false, "the disk is full"
	for i, leased := range []uint64{3, 0, 10, 9} {
		pic.networks = append(pic.networks, ipam.NetworkInfo{Name: fmt.Sprint("net", i),
			Use: ipam.SubnetUse(netip.MustParsePrefix("10.0.0.0/24"), []ipam.PoolUse{{Pool: "p",
				StateCounts: ipam.StateCounts{Leased: leased, Free: ipam.NewCount(int64(10 - leased))}}})})
	}
	pic.networks = append(pic.networks, ipam.NetworkInfo{Name: "without pools"})
	lease := func(l ipam.LeaseInfo) { pic.leases = append(pic.leases, l) }
	lease(ipam.LeaseInfo{Kind: ipam.Gateway, Name: "gateway", Network: "net0"})
	lease(ipam.LeaseInfo{Kind: ipam.Automatic, Name: "lone\x1b[31m", Network: "net0"})
	for i := range 3 {
		lease(ipam.LeaseInfo{Kind: ipam.Automatic, Name: fmt.Sprint("shop-web-", i), Owner: "shop/web/1", Network: "net2"})
	}
	lease(ipam.LeaseInfo{Kind: ipam.Static, Network: "net0", Name: "x", SeenBy: &ipam.SeenBy{Project: "shop"}})
	lease(ipam.LeaseInfo{Kind: ipam.External, Network: "net0", Name: "printer", Address: netip.MustParseAddr("10.0.0.1")})
	for _, minute := range []int{1, 50, 58, 59} {
		pic.events.Events = append(pic.events.Events, ipam.Event{Verb: ipam.LeaseTaken, Time: at(minute).Add(-time.Second)})
	}
	pic.events.Events = append(pic.events.Events, ipam.Event{Verb: ipam.LeaseReleased, Time: at(59)})
	bar := func(u ipam.Use) string { p, _ := u.Percent(); return fmt.Sprint(p, "%") }
	want := `No writes are taken: the disk is full

NETWORK  USE   FREE  HELD
net2     100%  0     10
net3     90%   1     9

WHO           ADDRESSES  NETWORKS
shop          4          net0,net2
lone?[31m     1          net0

EVENTS         1 MIN  10 MIN  1 HOUR
lease.take     1      3       4
lease.release  1      1       1`
	lines := pic.lines(bar, 2)
	got := strings.Join(lines[1:], "\n")
	if strings.Join(strings.Fields(got), " ") != strings.Join(strings.Fields(want), " ") ||
		!strings.HasPrefix(lines[0], "Berth on alpha at ") {
		t.Errorf("%s\n%s\nand not\n%s", lines[0], got, want)
	}
	if all := strings.Join(pic.lines(bar, 9), "\n"); !strings.Contains(all, "net1 ") || strings.Contains(all, "without") ||
		!strings.Contains(all, "printer") {
		t.Errorf("of all:\n%s", all)
	}
	pic.events.More = true
	if got := pic.counts(ipam.LeaseTaken); !slices.Equal(got, []any{"1", "3", "4+"}) {
		t.Errorf("with more events than are listed: %v", got)
	}
	cut := cutTo(lines, 12, 4)
	if len(cut) != 4 || slices.ContainsFunc(cut, func(line string) bool { return len([]rune(line)) > 12 }) {
		t.Errorf("on a screen of 12 x 4: %q", cut)
	}
}
