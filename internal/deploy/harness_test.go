package deploy

import (
	"context"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"testing"

	"berth/internal/ipam"

	"github.com/rogpeppe/go-internal/txtar"
)

// planned returns the planned networks of the tests' files.
func planned() []ipam.NetworkInfo {
	all := []ipam.NetworkInfo{
		{Name: "front", Subnets: subnets("10.8.0.0/24")},
		{Name: "dual", MACPrefix: "aa:00:01", Subnets: subnets("10.9.0.0/24", "fd00:9::/64")},
		{Name: "two", Subnets: subnets("10.10.0.0/24", "10.11.0.0/24")},
		{Name: "wire"},
		{Name: "theirs", Type: "dynamic", Subnets: subnets("10.12.0.0/24")},
		{Name: "lab", Space: "lab", Subnets: subnets("10.8.0.0/24")},
		{Name: "six", Subnets: subnets("fd00:13::/64")},
		{Name: "still", Subnets: subnets("10.14.0.0/24", "fd00:14::/64")},
	}
	for i := range all {
		all[i].ID, all[i].Planned = ipam.ID{15: byte(i + 1)}, true
		if all[i].Space == "" {
			all[i].Space = ipam.LocalSpace
		}
	}
	all[7].Subnets[1].Pools = nil
	all[2].Subnets[0].Pools = []ipam.PoolPlan{{Name: "a"}}
	all[2].Subnets[1].Pools = []ipam.PoolPlan{{Name: "b"}, {Name: "c"}}
	return all
}

func subnets(cidrs ...string) (all []ipam.SubnetPlan) {
	for _, c := range cidrs {
		all = append(all, ipam.SubnetPlan{CIDR: netip.MustParsePrefix(c), Pools: []ipam.PoolPlan{{Name: "web"}}})
	}
	return all
}

// ledger is a minimal daemon: an owner gets the first free address of a subnet from .10 on, and keeps it.
type ledger struct {
	has  map[string]netip.Addr // by network, owner and slot
	used map[netip.Addr]bool
}

func newLedger() *ledger { return &ledger{map[string]netip.Addr{}, map[netip.Addr]bool{}} }

func (l *ledger) edit(edits []ipam.Edit) (results []ipam.Result) {
	for _, e := range edits {
		add := e.(*ipam.AddReservation)
		var r ipam.Result
		for _, w := range add.Wishes {
			key := fmt.Sprintf("%s %s %d", add.Network, add.Owner, w.Slot)
			if _, there := l.has[key]; !there {
				l.has[key] = l.choose(w)
			}
			r.Addresses = append(r.Addresses, l.has[key])
		}
		results = append(results, r)
	}
	return results
}

func (l *ledger) choose(w ipam.Wish) netip.Addr {
	a := w.Address
	if !a.IsValid() {
		a = netip.MustParsePrefix(w.Subnet).Addr()
		for range 10 {
			a = a.Next()
		}
		for l.used[a] {
			a = a.Next()
		}
	}
	l.used[a] = true
	return a
}

// unpack writes the files of an archive in testdata into a directory named like the project.
func unpack(t *testing.T, archive string) (dir string, golden []byte) {
	t.Helper()
	a, err := txtar.ParseFile(filepath.Join("testdata", archive+".txtar"))
	fine(t, err)
	dir = filepath.Join(t.TempDir(), "shop")
	for _, f := range a.Files {
		if f.Name == "want" {
			golden = f.Data
			continue
		}
		write(t, filepath.Join(dir, f.Name), f.Data)
	}
	return dir, golden
}

func write(t *testing.T, name string, data []byte) {
	t.Helper()
	fine(t, os.MkdirAll(filepath.Dir(name), 0o700))
	fine(t, os.WriteFile(name, data, 0o600))
}

// load reads the files of a project with an empty environment.
func load(t *testing.T, from Source) *Project {
	t.Helper()
	p, err := Load(context.Background(), from)
	fine(t, err)
	return p
}

// override returns the override of the files, with addresses from a ledger.
func override(t *testing.T, l *ledger, from Source, m Mapping) []byte {
	t.Helper()
	plan, err := load(t, from).Plan(m, planned())
	fine(t, err)
	fine(t, plan.Grant(l.edit(plan.Edits())))
	text, err := plan.Override()
	fine(t, err)
	return text
}

// fine ends a test on an error.
func fine(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
