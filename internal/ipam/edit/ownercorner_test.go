package edit_test

import (
	"fmt"
	"testing"
	"time"

	"berth/internal/ipam"
	"berth/internal/ipam/ipamtest"
)

// A wish for a family, or for a subnet, is met by an address of that one only; another one is replaced.
func TestOwnerWishes(t *testing.T) {
	r := ipamtest.New(t)
	r.Run(`
		network n subnet=192.0.2.0/28,pool,name=lan+198.51.100.0/28,pool,name=dmz+2001:db8::/64,pool
		reserve n a -> 192.0.2.1
	`)
	reserve := func(owner string, wishes ...ipam.Wish) string {
		t.Helper()
		out, err := r.S.Edit(ctx, ipam.EditOptions{},
			&ipam.AddReservation{Network: "n", Owner: owner, Wishes: wishes, Replace: true})
		if err != nil {
			return string(ipam.CodeOf(err))
		}
		return ipamtest.Joined(out.Results[0].Addresses)
	}
	for _, row := range []struct {
		owner  string
		wishes []ipam.Wish
		want   string
	}{
		{"a", []ipam.Wish{{Family: 4}}, "192.0.2.1"},
		{"a", []ipam.Wish{{Subnet: "lan"}}, "192.0.2.1"},
		{"a", []ipam.Wish{{Subnet: "dmz"}}, "198.51.100.1"},
		{"a", []ipam.Wish{{Family: 4}}, "198.51.100.1"},
		{"a", []ipam.Wish{{Subnet: "192.0.2.0/28"}}, "192.0.2.1"}, // that which was replaced
		{"b", []ipam.Wish{{Slot: 0, Family: 6}, {Slot: 1, Subnet: "dmz"}}, "2001:db8::1 198.51.100.2"},
		{"b", []ipam.Wish{{Slot: 0, Family: 4, Subnet: "dmz"}, {Slot: 1, Family: 6}}, "198.51.100.3 2001:db8::2"},
		{"c", []ipam.Wish{{Subnet: "attic"}}, string(ipam.OutsideSubnet)},
		{"c", []ipam.Wish{{Subnet: "lan", Family: 6}}, string(ipam.OutsideSubnet)},
		{"c", []ipam.Wish{{Family: 5}}, ""},
	} {
		if got := reserve(row.owner, row.wishes...); got != row.want {
			t.Errorf("%s %+v: %s, want %s", row.owner, row.wishes, got, row.want)
		}
	}
	r.Run("owned n a -> a=192.0.2.1:a a=198.51.100.1:a!")
}

// What makes no sense in any state is refused.
func TestOwnerEditsRefused(t *testing.T) {
	r := ipamtest.New(t)
	r.Run(`
		network n subnet=192.0.2.0/28,pool
		network d subnet=198.51.100.0/28 type=dynamic
		end -x ! invalid; -x
		end a//b ! invalid; a//b
		end /a under ! invalid; /a
		reserve n a/ ! invalid; a/
		bind n ! invalid; 0
	`)
	var many []ipam.AddReservation
	for i := range ipam.MaxEdits + 1 {
		many = append(many, ipam.AddReservation{Network: "d", Owner: fmt.Sprintf("job/%d", i)})
	}
	for _, e := range []ipam.Edit{
		&ipam.AddReservation{Network: "n", Owner: "a", WantedTerms: ipam.WantedTerms{For: -ipam.Duration(time.Second)}},
		&ipam.BindReservations{Wanted: many},
	} {
		if _, err := r.S.Edit(ctx, ipam.EditOptions{}, e); ipamtest.KindOf(err) != "invalid" {
			t.Errorf("%T: %v", e, err)
		}
	}
	r.Edit(&ipam.BindReservations{Wanted: many[1:]})
	if got := len(r.Reservations(ipam.AddressFilter{Network: "d"})); got != ipam.MaxEdits {
		t.Errorf("%d owners are known in the dynamic network", got)
	}
}

// A network keeps so many rules, and no more.
func TestOwnerRulesAreBounded(t *testing.T) {
	r := ipamtest.New(t)
	r.Run("network n subnet=192.0.2.0/28,pool")
	var rules []ipam.OwnerRule
	for i := range 64 {
		rules = append(rules, ipam.OwnerRule{Pattern: fmt.Sprintf("x%d-*", i), Pool: "web"})
	}
	r.Edit(&ipam.ModifyNetwork{Network: "n", OwnerRules: rules})
	r.Run(`
		network.set n rule=one-more=pool:web ! invalid; 64
		network.set n rule=x7-*=pool:db
		network.set n rule=x7-*
		network.set n rule=one-more=pool:web
	`)
	if got := len(r.Show("n").OwnerRules); got != 64 {
		t.Errorf("%d rules", got)
	}
}
