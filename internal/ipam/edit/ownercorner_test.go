package edit_test

import (
	"fmt"
	"strings"
	"testing"

	"berth/internal/ipam"
	"berth/internal/ipam/ipamtest"
)

// Only an address of the wished family or subnet satisfies such a wish. Any other address is replaced.
func TestOwnerWishes(t *testing.T) {
	r := ipamtest.New(t)
	r.Line("network n subnet=192.0.2.0/28,pool,name=lan+198.51.100.0/28,pool,name=dmz+2001:db8::/64,pool")
	r.Line("reserve n a -> 192.0.2.1")
	for row := range ipamtest.Rows(3, `
		a | {"family": 4} | -> 192.0.2.1
		a | {"subnet": "lan"} | -> 192.0.2.1
		a | {"subnet": "dmz"} | -> 198.51.100.1
		a | {"family": 4} | -> 198.51.100.1
		# that which was replaced
		a | {"subnet": "192.0.2.0/28"} | -> 192.0.2.1
		b | {"family": 6}, {"slot": 1, "subnet": "dmz"} | -> 2001:db8::1 198.51.100.2
		b | {"family": 4, "subnet": "dmz"}, {"slot": 1, "family": 6} | -> 198.51.100.3 2001:db8::2
		c | {"subnet": "attic"} | ! notfound|invalid; =OutsideSubnet
		c | {"subnet": "lan", "family": 6} | ! notfound|invalid; =OutsideSubnet
		c | {"family": 5} | ! invalid
	`) {
		r.Line(fmt.Sprintf(`edit reservation.add {"network": "n", "owner": %q, "replace": true, "wishes": [%s]} %s`,
			row[0], row[1], row[2]))
	}
	r.Run("owned n a -> a=192.0.2.1:a a=198.51.100.1:a!")
}

// Edits that make no sense in any state are refused.
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
		reserve n a for=-1s ! invalid
	`)
	many := ""
	for i := range ipam.MaxEdits {
		many += fmt.Sprintf(" job/%d", i)
	}
	r.Line("bind d one-more" + many + " ! invalid")
	r.Line("bind d" + many)
	if got := len(r.Reservations(ipam.AddressFilter{Network: "d"})); got != ipam.MaxEdits {
		t.Errorf("%d owners are known in the dynamic network", got)
	}
}

// A network keeps at most 64 rules.
func TestOwnerRulesAreBounded(t *testing.T) {
	r := ipamtest.New(t)
	var rules []string
	for i := range 64 {
		rules = append(rules, fmt.Sprintf("x%d-*=pool:web", i))
	}
	r.Run(`
		network n subnet=192.0.2.0/28,pool
		network.set n rule=` + strings.Join(rules, "+") + `
		network.set n rule=one-more=pool:web ! invalid; 64
		network.set n rule=x7-*=pool:db
		network.set n rule=x7-*
		network.set n rule=one-more=pool:web
	`)
	if got := len(r.Show("n").OwnerRules); got != 64 {
		t.Errorf("%d rules", got)
	}
}
