package ipam_test

import (
	"encoding/hex"
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"berth/internal/golden"
	"berth/internal/ipam"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// TestGoldenVerbs: a verb of 1.0 keeps its name, and its number in the records of events.
func TestGoldenVerbs(t *testing.T) {
	var all []string
	for _, name := range ipam.Verbs() {
		var v ipam.Verb
		if err := v.UnmarshalText([]byte(name)); err != nil {
			t.Fatal(err)
		}
		all = append(all, fmt.Sprintf("%03d %s", v, name))
	}
	golden.Names(t, "verbs.txt", all)
}

// TestGoldenLeases: each field of a lease's record is read as 1.0 wrote it. The golden state has no DHCP lease, because
// that needs a server.
func TestGoldenLeases(t *testing.T) {
	at := func(s int) time.Time { return time.Date(2026, 1, 2, 3, 4, s, 5000, time.UTC) }
	mac := ipam.MAC{2, 0, 0, 0, 0, 9}
	leases := []*ipam.Lease{
		{ID: 1767323045000049, Kind: ipam.Automatic, Attachment: ipam.ID{1, 2, 3}, MAC: mac, Name: "web", Host: "h1",
			Container: "0123456789ab", Guessed: true, Since: at(1), Released: at(2), QuarantineUntil: at(3),
			Ahead: 7 * time.Microsecond,
			DHCP: &ipam.DHCPLease{State: ipam.LANUnconfirmed, Why: "no server answers",
				Client: ipam.LANClient{ID: "berth:web", Hostname: "web", MAC: mac}, Server: netip.MustParseAddr("10.9.0.1"),
				ServerID: "0001", Renews: at(4), Rebinds: at(5), Expires: at(6), Returned: true}},
		{ID: 1767323045000050, Kind: ipam.External, Name: "rtr", Host: "h1", Since: at(1), Note: "of the first floor",
			Slot: ipam.Slot{Interface: 1, Number: 2}},
		{Reservation: &ipam.Reservation{ID: 1767323045000051, Owner: "shop/web/1", Kind: ipam.Automatic,
			Slot: ipam.Slot{Interface: 3, Number: 4}, Ahead: 9 * time.Microsecond,
			Terms: ipam.Terms{Replaced: true, Until: at(8), Note: "the door"}}},
	}
	var now strings.Builder
	for _, l := range leases {
		fmt.Fprintf(&now, "%x\n", ipam.EncodeLease(nil, l))
	}
	lines := strings.Fields(string(golden.Bytes(t, "leases.txt", []byte(now.String()))))
	if len(lines) != len(leases) {
		t.Fatalf("%d records for %d leases", len(lines), len(leases))
	}
	for i, line := range lines {
		raw, err := hex.DecodeString(line)
		if err != nil {
			t.Fatal(err)
		}
		got, err := ipam.DecodeLease(netip.Addr{}, raw)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(leases[i], got, cmpopts.EquateComparable(netip.Addr{})); diff != "" {
			t.Errorf("lease %d (-1.0 +now):\n%s", i, diff)
		}
	}
}
