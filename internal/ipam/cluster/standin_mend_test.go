package cluster

import (
	"context"
	"slices"
	"testing"
	"time"

	"berth/internal/allocator"
	"berth/internal/ipam"
	"berth/internal/ipam/ledger"
	"berth/internal/ipam/service"
	"berth/internal/ipam/stores"
	"berth/store"
	"berth/store/mem"
)

// standsIn makes a container stand in for another, and returns the record.
func standsIn(t *testing.T, s *service.Service, name, of string) ipam.StandIn {
	t.Helper()
	in := ipam.StandIn{Name: name, ID: "id-" + name, For: of, Host: s.Ledger.Host(), Since: time.Now().UTC()}
	if err := s.Ledger.Update(t.Context(),
		func(c *ledger.Change) error { return allocator.WriteStandIn(c, &in) }); err != nil {
		t.Fatal(err)
	}
	return in
}

func standInsAre(t *testing.T, s *service.Service, want ...ipam.StandIn) {
	t.Helper()
	all, err := s.StandIns(t.Context())
	if err != nil || !slices.Equal(all, want) {
		t.Errorf("there stand in %+v (%v), want %+v", all, err, want)
	}
	err = s.Ledger.View(t.Context(), func(tx store.Tx) error {
		for _, in := range want {
			if raw, err := tx.Get(allocator.StandInForKey(in.For, in.Host)); err != nil || raw == nil {
				t.Errorf("nobody is known to stand in for %s (%v)", in.For, err)
			}
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// A container that stood in after the snapshot does so after the mend, each on its host.
func TestStandInsAreMended(t *testing.T) {
	r, _, _ := twoHosts(t, 0)
	r.plays(`
		a,b: stands shop-web-4 shop-web-2
		a,b: remembered
		back
		a,b: distrusts
	` + mended + `
		a,b: standing
	`)
}

// A stand-in is copied to the store that gets its space, and a second copy changes nothing.
func TestStandInsAreCopied(t *testing.T) {
	own, common := mem.New(), mem.New()
	from, err := service.Open(t.Context(), service.Config{Store: own, Host: "a", Copying: true})
	fine(t, err)
	member := &ipam.Member{Host: ipam.ID{1}, Session: ipam.NewID(), Mark: sharedMark}
	to, err := service.Open(t.Context(), service.Config{Store: common.Join(), Host: "a", Member: member})
	fine(t, err)
	want := standsIn(t, from, "shop-web-4", "shop-web-2")
	for _, space := range []string{ipam.GlobalSpace, "lab"} {
		if _, err := from.Edit(t.Context(), ipam.EditOptions{},
			&ipam.CreateNetwork{Name: "in-" + space, Space: space}); err != nil {
			t.Fatal(err)
		}
		if _, err := stores.CopySpaces(context.Background(), from.Ledger, to.Ledger,
			ipam.CopyOptions{Spaces: []string{space}}); err != nil {
			t.Fatal(err)
		}
		standInsAre(t, to, want)
	}
}

// A restarted daemon says since when the store is not trusted, not since when it runs itself.
func TestDoubtedSince(t *testing.T) {
	r, a, _ := twoHosts(t, 0)
	r.plays(`
		back
		a: distrusts
	`)
	a.comes("it is written down", func() bool { return !a.doubtedSince(a.State().Err, time.Time{}).IsZero() })
	since := a.State().Since
	for range 2 {
		r.plays(`
			a: kill
			a: start
			a: distrusts
		`)
		if got := a.State().Since; !got.Equal(since) {
			t.Errorf("since %s, and after a restart since %s", since, got)
		}
	}
	r.plays("b: distrusts\n" + mended + `
		back
		a: distrusts
	`)
	a.comes("it is another time", func() bool { return a.State().Since.After(since) })
}
