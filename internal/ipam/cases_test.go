package ipam_test

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"berth/internal/alloc"
	"berth/internal/ipam"
)

// Each case of other allocators that concerns this room, by its id (testdata/cases.tsv).
func TestCases(t *testing.T) {
	var ids []string
	for line := range strings.Lines(scriptFile(t, "cases.tsv")) {
		column := strings.Split(strings.TrimRight(line, "\n"), "\t")
		if strings.HasPrefix(line, "#") || column[0] == "id" {
			continue
		}
		if len(column) != 3 {
			t.Fatalf("%d columns: %q", len(column), line)
		}
		ids = append(ids, column[0])
		t.Run(column[0]+" "+column[1], func(t *testing.T) {
			r := newRoom(t)
			var steps []string
			for step := range strings.SplitSeq(column[2], " ; ") {
				if word, text, _ := strings.Cut(step, " "); strings.HasPrefix(word, "bad") {
					bad(t, word, text)
					continue
				}
				steps = append(steps, step)
			}
			r.run(strings.Join(steps, "\n"))
		})
	}
	ids = append(ids, "C68") // TestCase68
	want := strings.Fields("C01 C02 C03 C04 C05 C17 C18 C19 C21 C22 C23 C24 C28 C29 C31 C32 C33 C48 C49 C50 C51 C52 C53 C54 C65 C66 C67 C68")
	if !slices.Equal(ids, want) {
		t.Errorf("the cases are %q, want %q", ids, want)
	}
}

// bad refuses texts that are no ranges, wishes or subnets.
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
			return // of another room's kind
		}
	}
	if kindOf(err) != "invalid" {
		t.Errorf("%s %s: %v", what, text, err)
	}
}

// C67: what scripts cannot write: no space, and no id.
func TestCase67(t *testing.T) {
	r := newRoom(t)
	if _, err := r.s.RequestPool(ctx, ipam.PoolRequest{CIDR: netip.MustParsePrefix("10.0.0.0/24")}); kindOf(err) != "invalid" {
		t.Errorf("no space: %v", err)
	}
	if _, err := r.s.RequestAddress(ctx, ipam.AddressRequest{MAC: mac(1)}); kindOf(err) != "notfound" {
		t.Errorf("no id: %v", err)
	}
}

// C68: so many takes, and which one is the last.
func TestCase68(t *testing.T) {
	for _, tc := range []struct {
		cidr string
		n    int
		last string
	}{{"192.168.59.0/24", 254, "192.168.59.254"}, {"192.168.0.0/16", 256, "192.168.1.0"}, {"192.168.128.0/18", 1023, "192.168.131.255"}} {
		t.Run(tc.cidr, func(t *testing.T) {
			r := newRoom(t)
			r.edit(&ipam.CreateNetwork{Name: "n", Subnets: []ipam.SubnetSpec{{CIDR: netip.MustParsePrefix(tc.cidr), Pool: true}}})
			last := ""
			for taken := 0; taken < tc.n; {
				var edits []ipam.Edit
				for range min(128, tc.n-taken) {
					taken++
					edits = append(edits, &ipam.TakeAddress{Network: "n", Owner: fmt.Sprintf("vm%d", taken)})
				}
				out := r.edit(edits...)
				last = joined(out.Results[len(edits)-1].Addresses)
			}
			if last != tc.last {
				t.Errorf("the last of %d is %s, want %s", tc.n, last, tc.last)
			}
		})
	}
}
