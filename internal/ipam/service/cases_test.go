package service_test

import (
	"context"
	"fmt"
	"maps"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"berth/internal/alloc"
	"berth/internal/ipam"
	"berth/internal/ipam/ipamtest"
)

var ctx = context.Background()

// aCase is a row of testdata/cases.tsv: a case of another allocator, and how Berth treats it.
type aCase struct{ id, source, setup, action, expected, here string }

// elsewhere reports whether the case is tested later, or concerns no part of Berth.
func (c aCase) elsewhere() bool {
	return strings.HasPrefix(c.here, "later") || strings.HasPrefix(c.here, "not here")
}

// casesInGo are cases, or parts of them, that scripts cannot write.
var casesInGo = map[string]func(*testing.T){"C19": testCase19, "C67": testCase67, "C68": testCase68}

// Each case of other allocators runs by its steps (testdata/casesteps.tsv) or in Go, or the table says why not.
func TestCases(t *testing.T) {
	steps := map[string]string{}
	for _, row := range rowsOf(t, "casesteps.tsv", 3) {
		steps[row[0]] = row[2]
	}
	var elsewhere []string
	for _, row := range rowsOf(t, "cases.tsv", 6) {
		c := aCase{row[0], row[1], row[2], row[3], row[4], row[5]}
		script, inGo := steps[c.id], casesInGo[c.id]
		delete(steps, c.id)
		if c.elsewhere() {
			elsewhere = append(elsewhere, c.id)
			if script != "" || inGo != nil {
				t.Errorf("%s is run, and said to be %s", c.id, c.here)
			}
			continue
		}
		t.Run(c.id, func(t *testing.T) {
			if script == "" && inGo == nil {
				t.Fatalf("%+v is run by nothing", c)
			}
			c.names(t, script)
			if script != "" {
				runCase(t, script)
			}
			if inGo != nil {
				inGo(t)
			}
		})
	}
	if len(steps) > 0 {
		t.Errorf("there are steps for no case: %q", slices.Sorted(maps.Keys(steps)))
	}
	if want := strings.Fields("C20 C25 C26 C27 C55 C57 C58"); !slices.Equal(elsewhere, want) {
		t.Errorf("taken elsewhere are %q, want %q", elsewhere, want)
	}
}

// rowsOf reads a table of testdata without its head and comments.
func rowsOf(t *testing.T, name string, columns int) (rows [][]string) {
	t.Helper()
	for line := range strings.Lines(scriptFile(t, name)) {
		row := strings.Split(strings.TrimRight(line, "\n"), "\t")
		if strings.HasPrefix(line, "#") || row[0] == "id" {
			continue
		}
		if len(row) != columns {
			t.Fatalf("%s: %d columns: %q", name, len(row), line)
		}
		rows = append(rows, row)
	}
	return rows
}

// names checks that the steps expect the same code as the case.
func (c aCase) names(t *testing.T, steps string) {
	t.Helper()
	if strings.Contains(c.here, "releasing what is free succeeds") {
		return
	}
	for word, code := range map[string]string{"AlreadyInUse": "AlreadyInUse", "IpOutsideSubnet": "OutsideSubnet",
		"StaticIpOutOfRange": "StaticOutOfRange", "IpReserved": "IPReserved", "WrongType": "WrongType",
		"already reserved by": "AlreadyInUse"} {
		if strings.Contains(c.expected, word) && !strings.Contains(steps, "="+code) {
			t.Errorf("%s expects %q, and its steps have no =%s", c.id, c.expected, code)
		}
	}
}

func runCase(t *testing.T, script string) {
	t.Helper()
	r := ipamtest.New(t)
	var steps []string
	for step := range strings.SplitSeq(script, " ; ") {
		if word, text, _ := strings.Cut(step, " "); strings.HasPrefix(word, "bad") {
			bad(t, word, text)
			continue
		}
		steps = append(steps, step)
	}
	r.Run(strings.Join(steps, "\n"))
}

// bad checks that Berth refuses a text as a range, wish or subnet.
func bad(t *testing.T, what, text string) {
	t.Helper()
	var err error
	switch what {
	case "badrange":
		err = new(ipam.Range).UnmarshalText([]byte(text))
	case "badwish":
		_, err = ipam.ParseInterface(text)
	case "badprefix":
		if _, err = alloc.ParsePrefix(text); err != nil {
			return // a kind of package alloc
		}
	}
	if ipamtest.KindOf(err) != "invalid" {
		t.Errorf("%s %s: %v", what, text, err)
	}
}

// testCase19: when many race for addresses, each gets one until none is left.
func testCase19(t *testing.T) {
	for range 5 {
		s := ipamtest.NewService(t, time.Now)
		_, err := s.Edit(ctx, ipam.EditOptions{},
			ipamtest.Edits(t, "network n subnet=192.168.1.0/29,gw=192.168.1.1,pool")...)
		fine(t, err)
		var wg sync.WaitGroup
		got, none := make([]string, 8), make([]error, 8)
		for i := range got {
			wg.Go(func() {
				out, err := s.Edit(ctx, ipam.EditOptions{},
					&ipam.AddReservation{Network: "n", Owner: fmt.Sprintf("inst%d", i)})
				if none[i] = err; err == nil {
					got[i] = ipamtest.Joined(out.Results[0].Addresses)
				}
			})
		}
		wg.Wait()
		refused := 0
		for _, err := range none {
			if ipam.CodeOf(err) == ipam.NotEnoughCapacity {
				refused++
			}
		}
		slices.Sort(got)
		if given := strings.Join(slices.Compact(got[3:]), " "); refused != 3 ||
			given != "192.168.1.2 192.168.1.3 192.168.1.4 192.168.1.5 192.168.1.6" {
			t.Errorf("given %q, refused %q", got, none)
		}
	}
}

// testCase67: a request without a space, and one without an id.
func testCase67(t *testing.T) {
	r := ipamtest.New(t)
	if _, err := r.S.RequestPool(ctx,
		ipam.PoolRequest{CIDR: netip.MustParsePrefix("10.0.0.0/24")}); ipamtest.KindOf(err) != "invalid" {
		t.Errorf("no space: %v", err)
	}
	if _, err := r.S.RequestAddress(ctx, ipam.AddressRequest{MAC: ipamtest.MAC(1)}); ipamtest.KindOf(err) !=
		"notfound" {
		t.Errorf("no id: %v", err)
	}
}

// testCase68: n addresses are taken; which one is the last.
func testCase68(t *testing.T) {
	for _, tc := range []struct {
		cidr string
		n    int
		last string
	}{{"192.168.59.0/24", 254, "192.168.59.254"}, {"192.168.0.0/16", 256, "192.168.1.0"},
		{"192.168.128.0/18", 1023, "192.168.131.255"}} {
		r := ipamtest.New(t)
		r.Line("network n subnet=" + tc.cidr + ",pool")
		last := ""
		for taken := 0; taken < tc.n; {
			var edits []ipam.Edit
			for range min(128, tc.n-taken) {
				taken++
				edits = append(edits, &ipam.TakeAddress{Network: "n", Owner: fmt.Sprintf("vm%d", taken)})
			}
			out := r.Edit(edits...)
			last = ipamtest.Joined(out.Results[len(edits)-1].Addresses)
		}
		if last != tc.last {
			t.Errorf("%s: the last of %d is %s, want %s", tc.cidr, tc.n, last, tc.last)
		}
	}
}

// scriptFile reads a file of testdata.
func scriptFile(t testing.TB, name string) string {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join("testdata", name))
	fine(t, err)
	return string(raw)
}

// fine ends a test on an error.
func fine(t rapid.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
