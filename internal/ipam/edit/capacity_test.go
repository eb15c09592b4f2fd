package edit_test

import (
	"errors"
	"strings"
	"testing"

	"berth/internal/ipam"
	"berth/internal/ipam/ipamtest"
)

// BO-7: a refusal counts what the whole request wants and what was free before it, and names the owners who get
// nothing. It counts over several edits, over several addresses of an owner, and over both. Nothing is changed.
func TestBO7WholeRequest(t *testing.T) {
	const plan = `
		network n subnet=192.0.2.0/29,pool
		network m subnet=198.51.100.0/28
		pool m 198.51.100.4 name=web
		pool m 198.51.100.5+4 name=rest
		network full subnet=203.0.113.0/30,pool
		bind full p q
		reserve n old
		take n had 0:ip0=pool,ip1=pool
		network d subnet=198.51.100.64/29,pool
		attach D net=d
		ask D runs mac=1
	`
	for row := range ipamtest.Rows(4, `
		# edits | which of them is refused, of several | what is said | who is not among those that get nothing
		reserve n s/web/1 + reserve n s/web/2 + reserve n s/web/3 + reserve n s/web/4 + reserve n s/web/5 | at=3; | 5 wanted, 3 free; s/web/4, s/web/5; all 6 of the pool 192.0.2.0/29 | s/web/3
		# slots of a reservation, slots taken, and of all kinds
		reserve n box pool,pool,pool,pool,pool | | 5 wanted, 3 free; box (ip3, ip4)
		take n vm 0:ip0=pool,ip1=pool,ip2=pool,ip3=pool | | 4 wanted, 3 free; vm (ip3)
		take n vm 0:ip0=pool,ip1=pool + reserve n box pool,pool + bind n s/db/1 s/db/2 | at=1; | 6 wanted, 3 free; box (ip1), s/db/1, s/db/2 | vm
		# one by address
		reserve n a 192.0.2.6 + reserve n b + reserve n c + reserve n d | at=3; | 4 wanted, 3 free; for d: | for a
		# what is there counts not, nor what is reserved for who takes it, nor what a container runs with
		reserve n old + reserve n a + reserve n b + reserve n c + reserve n d | at=4; | 4 wanted, 3 free; for d: | old
		take n old pool + take n a pool + take n b pool + take n c pool + take n d pool | at=4; | 4 wanted, 3 free; for d: | old
		reserve d runs + reserve d a + reserve d b + reserve d c + reserve d d + reserve d e + reserve d f | at=6; | 6 wanted, 5 free; for f: | runs
		# of another network, and of a named pool
		reserve m a pool + reserve n a pool,pool,pool + reserve n b + reserve m b pool | at=2; | network n; 4 wanted, 3 free; for b: | for a
		reserve m a web + reserve m b web + reserve m c rest | at=1; | 2 wanted, 1 free; for b: | c,
		reserve full x | | no address is free; 1 wanted, 0 free | x
	`) {
		t.Run(row[0], func(t *testing.T) {
			r := ipamtest.New(t)
			r.Run(plan)
			r.Line(row[0] + " ! exhausted; =NotEnoughCapacity; " + row[1] + row[2])
			_, err := r.Step(strings.Fields(row[0]))
			_, rest, _ := strings.Cut(err.Error(), "nothing is given for")
			if row[3] != "" && strings.Contains(rest, row[3]) {
				t.Errorf("%v: it says %q", err, row[3])
			}
			if several := errors.As(err, new(*ipam.EditError)); several != (row[1] != "") {
				t.Errorf("%v: it is said of one of several: %t", err, several)
			}
		})
	}
}
