package edit_test

import (
	"errors"
	"net/netip"
	"strings"
	"testing"

	"berth/internal/ipam"
	"berth/internal/ipam/service"
	"berth/store/mem"
)

// Two owners that would have one name in DNS are refused together where one request has both; the same owner is no
// other one, and what is refused leaves nothing behind.
func TestNameClashInRequest(t *testing.T) {
	known := ipam.Known{NameHolder: func(_, network, owner string) (name, other string) {
		if owner == "HERE" {
			other = "here"
		}
		if owner == "known" {
			return "", ""
		}
		return strings.ToLower(owner) + "." + network, other
	}}
	store := mem.New()
	s, err := service.Open(ctx, service.Config{Store: store, Host: "alpha", Known: known})
	fine(t, err)
	if _, err := s.Edit(ctx, ipam.EditOptions{}, &ipam.CreateNetwork{Name: "home",
		Subnets: []ipam.SubnetSpec{{CIDR: netip.MustParsePrefix("192.0.2.0/24"), Pool: true}}}); err != nil {
		t.Fatal(err)
	}
	reserve := func(owner string) ipam.Edit { return &ipam.AddReservation{Network: "home", Owner: owner} }
	take := func(owner string) ipam.Edit { return &ipam.TakeAddress{Network: "home", Owner: owner} }
	for _, c := range []struct {
		edits []ipam.Edit
		want  string // of the refusal; empty: there is none
	}{
		{[]ipam.Edit{reserve("tv"), reserve("TV")}, "tv.home is to be the name of tv on network home, and that of TV"},
		{[]ipam.Edit{take("TV"), reserve("tv")}, "tv.home is to be the name of TV on network home, and that of tv"},
		{[]ipam.Edit{reserve("new"), reserve("HERE")}, "here.home is the name of here on network home, and that of HERE"},
		{[]ipam.Edit{take("tv"), take("tv"), reserve("known"), reserve("new")}, ""},
	} {
		_, err := s.Edit(ctx, ipam.EditOptions{}, c.edits...)
		if c.want == "" && err != nil {
			t.Errorf("refused: %v", err)
		} else if c.want != "" && (!errors.Is(err, ipam.ErrInUse) || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%v, want %s", err, c.want)
		}
	}
	// of those that were refused, nothing is remembered
	if _, err := s.Edit(ctx, ipam.EditOptions{}, reserve("TV")); err != nil {
		t.Error(err)
	}
}
