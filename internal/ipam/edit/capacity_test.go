package edit_test

import (
	"errors"
	"maps"
	"strings"
	"testing"

	"berth/internal/ipam"
	"berth/internal/ipam/ipamtest"
)

// BO-7: a refusal counts what the whole request wants, and what was free before it, and names who goes without: over
// several edits of one request, several addresses of one owner, and both together. Nothing of the request is made.
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
	for name, row := range map[string]struct {
		edits string
		at    int // which of several is said to be refused; -1: there is one
		says  string
		not   string
	}{
		"edits": {`reserve n s/web/1
			reserve n s/web/2
			reserve n s/web/3
			reserve n s/web/4
			reserve n s/web/5`, 3,
			"5 wanted, 3 free; s/web/4, s/web/5; all 6 of the pool 192.0.2.0/29", "s/web/3"},
		"slots of a reservation": {`reserve n box pool,pool,pool,pool,pool`, -1,
			"5 wanted, 3 free; box (ip3, ip4)", ""},
		"slots taken": {`take n vm 0:ip0=pool,ip1=pool,ip2=pool,ip3=pool`, -1,
			"4 wanted, 3 free; vm (ip3)", ""},
		"of all kinds": {`take n vm 0:ip0=pool,ip1=pool
			reserve n box pool,pool
			bind n s/db/1 s/db/2`, 1,
			"6 wanted, 3 free; box (ip1), s/db/1, s/db/2", "vm"},
		"one by address": {`reserve n a 192.0.2.6
			reserve n b
			reserve n c
			reserve n d`, 3, "4 wanted, 3 free; for d:", "for a"},
		"what is there counts not": {`reserve n old
			reserve n a
			reserve n b
			reserve n c
			reserve n d`, 4, "4 wanted, 3 free; for d:", "old"},
		"what is reserved for who takes it counts not": {`take n old pool
			take n a pool
			take n b pool
			take n c pool
			take n d pool`, 4, "4 wanted, 3 free; for d:", "old"},
		"what a container runs with counts not": {`reserve d runs
			reserve d a
			reserve d b
			reserve d c
			reserve d d
			reserve d e
			reserve d f`, 6, "6 wanted, 5 free; for f:", "runs"},
		"of another network": {`reserve m a pool
			reserve n a pool,pool,pool
			reserve n b
			reserve m b pool`, 2, "network n; 4 wanted, 3 free; for b:", "for a"},
		"of a named pool": {`reserve m a web
			reserve m b web
			reserve m c rest`, 1, "2 wanted, 1 free; for b:", "c,"},
		"one": {`reserve full x`, -1, "no address is free; 1 wanted, 0 free", "x"},
	} {
		t.Run(name, func(t *testing.T) {
			r := ipamtest.New(t)
			r.Run(plan)
			before := ipamtest.Dump(t, r.Store)
			_, err := r.S.Edit(ctx, ipam.EditOptions{}, ipamtest.Edits(t, row.edits)...)
			if !errors.Is(err, ipam.ErrExhausted) || ipam.CodeOf(err) != ipam.NotEnoughCapacity {
				t.Fatal(err)
			}
			for _, text := range strings.Split(row.says, "; ") {
				if !strings.Contains(err.Error(), text) {
					t.Errorf("%v: it does not say %q", err, text)
				}
			}
			if _, rest, _ := strings.Cut(err.Error(), "nothing is given for"); row.not != "" &&
				strings.Contains(rest, row.not) {
				t.Errorf("%v: it says %q", err, row.not)
			}
			var one *ipam.EditError
			if several := errors.As(err, &one); several != (row.at >= 0) || several && one.Index != row.at {
				t.Errorf("%v: it is said of %+v, want edit %d", err, one, row.at)
			}
			if !maps.Equal(before, ipamtest.Dump(t, r.Store)) {
				t.Error("something of the request is there")
			}
		})
	}
}
