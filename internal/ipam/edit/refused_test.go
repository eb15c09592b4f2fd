package edit_test

import (
	"strings"
	"testing"

	"berth/internal/ipam"
	"berth/internal/ipam/ipamtest"
)

// TestAllRefused: a dry run lists all edits that would be refused, each with the holder. Each place with too few
// addresses is listed once: wanted, free, and who gets none (BD-2, BO-7). The other edits have results. Nothing is
// written, and a refused edit affects nothing after the dry run.
func TestAllRefused(t *testing.T) {
	r := ipamtest.New(t)
	r.Run(`network net1 subnet=192.0.2.0/24
pool net1 192.0.2.10+3
subnet net1 198.51.100.0/24
pool net1 198.51.100.10+1
reserve net1 mail 192.0.2.99`)
	edits := ipamtest.Edits(t, strings.ReplaceAll(`
		reserve net1 shop/a/1 192.0.2.99
		reserve net1 shop/b/1 203.0.113.7
		OF "shop/c/1", "wishes": [{"subnet": "192.0.2.0/24"}]}
		OF "shop/d/1", "wishes": [{"subnet": "192.0.2.0/24"}, {"slot": 1, "address": "192.0.2.99"}]}
		OF "shop/e/1", "wishes": [{"subnet": "192.0.2.0/24"}]}
		OF "shop/e/2", "wishes": [{"subnet": "192.0.2.0/24"}]}
		OF "shop/e/3", "wishes": [{"subnet": "192.0.2.0/24"}, {"slot": 1, "subnet": "198.51.100.0/24"}]}
		OF "shop/e/4", "wishes": [{"subnet": "198.51.100.0/24"}]}
	`, "OF", `edit reservation.add {"network": "net1", "owner":`))
	try := ipam.EditOptions{DryRun: true, Refused: true}
	for range 2 { // the first dry run has left nothing
		out, err := r.S.Edit(ctx, try, edits...)
		fine(t, err)
		want := []struct {
			index int
			code  ipam.Code
			words string
		}{
			{0, ipam.AlreadyInUse, "mail"}, {1, ipam.OutsideSubnet, "no subnet of network net1 holds 203.0.113.7"},
			{3, ipam.AlreadyInUse, "mail"},
			{6, ipam.NotEnoughCapacity, "(4 wanted, 3 free), so none is left for shop/e/3"},
			{7, ipam.NotEnoughCapacity, "(2 wanted, 1 free), so none is left for shop/e/4"},
		}
		if len(out.Refused) != len(want) {
			t.Fatalf("refused are %d, want %d: %v", len(out.Refused), len(want), out.Refused)
		}
		for i, w := range want {
			got := out.Refused[i]
			if got.Index != w.index || got.Reason != w.code || !strings.Contains(got.Detail, w.words) {
				t.Errorf("refusal %d is %+v, want %+v", i, got, w)
			}
		}
		if len(out.Results) != len(edits) || len(out.Results[2].Addresses) != 1 || len(out.Results[0].Addresses) != 0 {
			t.Errorf("the results are %v", out.Results)
		}
	}
	r.Run(`reserve net1 other/1 -> 192.0.2.10`)
	_ = refused(r, "edits that are to be made", "invalid; only a dry run reports all refusals",
		ipam.EditOptions{Refused: true}, edits...)
	many := make([]ipam.Edit, ipam.MaxTried+1)
	for i := range many {
		many[i] = edits[2]
	}
	if _, err := r.S.Edit(ctx, try, many[:ipam.MaxTried]...); err != nil {
		t.Errorf("as many as one dry run tries: %v", err)
	}
	_ = refused(r, "more than one dry run tries", "invalid", try, many...)
}
