package edit_test

import (
	"errors"
	"net/netip"
	"strings"
	"testing"

	"berth/internal/ipam"
	"berth/internal/ipam/ipamtest"
)

// TestAllRefused: a dry run tells of all edits that would be refused, each with its holder, and of each place that has
// too few addresses once: wanted, free, and who goes without (BD-2, BO-7). What is right has its results. Nothing is
// written, and what a refused edit has begun is in the way of none after the dry run.
func TestAllRefused(t *testing.T) {
	r := ipamtest.New(t)
	r.Run(`network net1 subnet=192.0.2.0/24
pool net1 192.0.2.10+3
subnet net1 198.51.100.0/24
pool net1 198.51.100.10+1
reserve net1 mail 192.0.2.99`)
	wish := func(texts ...string) (all []ipam.Wish) {
		for i, text := range texts {
			w := ipam.Wish{Slot: i, Subnet: text}
			if addr, err := netip.ParseAddr(text); err == nil {
				w = ipam.Wish{Slot: i, Address: addr}
			}
			all = append(all, w)
		}
		return all
	}
	var edits []ipam.Edit
	for _, one := range []struct {
		owner  string
		wishes []ipam.Wish
	}{
		{"shop/a/1", wish("192.0.2.99")},
		{"shop/b/1", wish("203.0.113.7")},
		{"shop/c/1", wish("192.0.2.0/24")},
		{"shop/d/1", wish("192.0.2.0/24", "192.0.2.99")},
		{"shop/e/1", wish("192.0.2.0/24")},
		{"shop/e/2", wish("192.0.2.0/24")},
		{"shop/e/3", wish("192.0.2.0/24", "198.51.100.0/24")},
		{"shop/e/4", wish("198.51.100.0/24")},
	} {
		edits = append(edits, &ipam.AddReservation{Network: "net1", Owner: one.owner, Wishes: one.wishes})
	}
	try := ipam.EditOptions{DryRun: true, Refused: true}
	for range 2 { // the first one has left nothing
		out, err := r.S.Edit(ctx, try, edits...)
		fine(t, err)
		want := []struct {
			index int
			code  ipam.Code
			words string
		}{
			{0, ipam.AlreadyInUse, "mail"}, {1, ipam.OutsideSubnet, "no subnet of network net1 holds 203.0.113.7"},
			{3, ipam.AlreadyInUse, "mail"},
			{6, ipam.NotEnoughCapacity, "(4 wanted, 3 free), so that nothing is given for shop/e/3"},
			{7, ipam.NotEnoughCapacity, "(2 wanted, 1 free), so that nothing is given for shop/e/4"},
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
	r.Run(`reserve net1 other/1 = 192.0.2.10`)
	if _, err := r.S.Edit(ctx, ipam.EditOptions{Refused: true}, edits...); !errors.Is(err, ipam.ErrInvalid) ||
		!strings.Contains(err.Error(), "only a dry run reports all refusals") {
		t.Errorf("edits that are to be made: %v", err)
	}
	many := make([]ipam.Edit, ipam.MaxTried+1)
	for i := range many {
		many[i] = edits[2]
	}
	if _, err := r.S.Edit(ctx, try, many[:ipam.MaxTried]...); err != nil {
		t.Errorf("as many as one dry run tries: %v", err)
	}
	if _, err := r.S.Edit(ctx, try, many...); !errors.Is(err, ipam.ErrInvalid) {
		t.Errorf("more than one dry run tries: %v", err)
	}
	if _, err := r.S.Edit(ctx, ipam.EditOptions{}, many[:ipam.MaxEdits+1]...); !errors.Is(err, ipam.ErrInvalid) {
		t.Errorf("more than one request makes: %v", err)
	}
}
