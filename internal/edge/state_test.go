package edge_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"berth/internal/edge"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func addr(s string) netip.Addr { return netip.MustParseAddr(s) }

func whole() edge.State {
	return edge.State{
		Ranges: []edge.Range{
			{From: addr("2001:db8::100"), To: addr("2001:db8::1ff"), Announce: "eth0", OnCut: edge.Keep},
			{From: addr("192.0.2.10"), To: addr("192.0.2.100"), Announce: "eth0", OnCut: edge.Withdraw,
				TTL: 5 * time.Second},
			{From: addr("192.0.2.101"), To: addr("192.0.2.101"), OnCut: edge.Keep},
		},
		Mappings: []edge.Mapping{
			{Elastic: addr("192.0.2.10"), Guest: addr("172.30.1.2"), Subnet: netip.MustParsePrefix("172.30.1.0/24")},
			{Elastic: addr("192.0.2.101"), Guest: addr("172.30.1.3"), Subnet: netip.MustParsePrefix("172.30.1.0/24"),
				EgressOnly: true},
			{Elastic: addr("2001:db8::100"), Guest: addr("fd00::2"), Subnet: netip.MustParsePrefix("fd00::/64"),
				Staged: true},
		},
		Until: 12,
	}
}

func TestCheck(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(*edge.State)
		want   string // "" if the state is valid
	}{
		{"a whole state", func(*edge.State) {}, ""},
		{"an empty state", func(s *edge.State) { *s = edge.State{} }, ""},
		{"overlap", func(s *edge.State) { s.Ranges[2].From = addr("192.0.2.100") }, "overlap"},
		{"two families", func(s *edge.State) { s.Ranges[2].To = addr("2001:db8::1") }, "two families"},
		{"backwards", func(s *edge.State) { s.Ranges[2].To = addr("192.0.2.1") }, "ends before it begins"},
		{"no end", func(s *edge.State) { s.Ranges[2].To = netip.Addr{} }, "not an IPv4 or IPv6 address"},
		{"on a cut", func(s *edge.State) { s.Ranges[2].OnCut = "" }, "neither"},
		{"a negative TTL", func(s *edge.State) { s.Ranges[1].TTL = -1 }, "must not be negative"},
		{"a device with a quote", func(s *edge.State) { s.Ranges[1].Announce = `eth0" drop` }, "no name of a device"},
		{"a device with a line", func(s *edge.State) { s.Ranges[1].Announce = "eth0\n}" }, "no name of a device"},
		{"a device that is a path", func(s *edge.State) { s.Ranges[1].Announce = "../all" }, "no name of a device"},
		{"no range", func(s *edge.State) { s.Mappings[0].Elastic = addr("192.0.2.9") }, "lies in no range"},
		{"elastic twice", func(s *edge.State) { s.Mappings[1].Elastic = s.Mappings[0].Elastic }, "mapped twice"},
		{"guest twice", func(s *edge.State) { s.Mappings[1].Guest = s.Mappings[0].Guest }, "a guest has one"},
		{"guest of another family", func(s *edge.State) { s.Mappings[1].Guest = addr("fd00::9") }, "of two families"},
		{"guest elsewhere", func(s *edge.State) { s.Mappings[1].Guest = addr("172.30.2.3") }, "outside its subnet"},
		{"a zone", func(s *edge.State) { s.Mappings[2].Guest = addr("fe80::1%eth0") }, "without a zone"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := whole()
			c.change(&s)
			err := s.Check()
			if c.want == "" && err != nil {
				t.Fatalf("refused: %v", err)
			}
			if c.want != "" && !strings.Contains(fmt.Sprint(err), c.want) {
				t.Fatalf("got %v, want a text with %q", err, c.want)
			}
		})
	}
}

// TestJSON: a program reads the same state that was written.
func TestJSON(t *testing.T) {
	b, err := json.Marshal(whole())
	if err != nil {
		t.Fatal(err)
	}
	var back edge.State
	if err := json.Unmarshal(b, &back); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(whole(), back, cmpopts.EquateComparable(netip.Addr{}, netip.Prefix{})); d != "" {
		t.Error(d)
	}
}

func TestTimeout(t *testing.T) {
	r := edge.Range{TTL: 5 * time.Second}
	now := edge.BootTime(time.Hour)
	for _, c := range []struct {
		ttl, left, want time.Duration
	}{
		{5 * time.Second, 3 * time.Second, 3 * time.Second},
		{5 * time.Second, time.Minute, 5 * time.Second},
		{0, time.Minute, time.Minute},
		{5 * time.Second, -time.Second, -time.Second},
	} {
		r.TTL = c.ttl
		if got := r.Timeout(now, now.Add(c.left)); got != c.want {
			t.Errorf("TTL %s, %s left: %s, want %s", c.ttl, c.left, got, c.want)
		}
	}
	r.Sooner = 4 * time.Second
	if got := r.Timeout(now, now.Add(6*time.Second)); got != 2*time.Second {
		t.Errorf("four seconds before Until, which is in six: %s", got)
	}
	if got := r.Timeout(now, 0); got > 0 {
		t.Errorf("a state without Until may answer for %s", got)
	}
}

func TestFailures(t *testing.T) {
	one := &edge.Failure{Address: addr("192.0.2.10"), Err: errors.New("no such device")}
	failed, only := edge.Failures(errors.Join(one, errors.New("more")))
	if len(failed) != 1 || only {
		t.Errorf("of one address and an error of its own: %v %v", failed, only)
	}
	failed, only = edge.Failures(errors.Join(errors.Join(one)))
	if failed[one.Address] != one.Err || !only {
		t.Errorf("of one address: %v %v", failed, only)
	}
	if failed, only = edge.Failures(nil); len(failed) != 0 || !only {
		t.Errorf("of no error: %v %v", failed, only)
	}
}

// The clock advances by at least the time that passes.
func TestMoment(t *testing.T) {
	a, err := edge.Now()
	if err != nil {
		t.Fatal(err)
	}
	time.Sleep(time.Millisecond)
	b, err := edge.Now()
	if err != nil {
		t.Fatal(err)
	}
	if d := b.Sub(a); d < time.Millisecond || a.Add(d) != b {
		t.Errorf("a sleep of 1 ms took %s", d)
	}
}
