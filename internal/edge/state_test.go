package edge_test

import (
	"encoding/json"
	"errors"
	"net/netip"
	"strings"
	"testing"
	"time"

	"berth/internal/edge"
	"berth/internal/ipam/ipamtest"
)

func addr(s string) netip.Addr { return netip.MustParseAddr(s) }

// whole is a state with everything, in JSON.
var whole = strings.NewReplacer("\n", "", "\t", "").Replace(`
	{"ranges":[
		{"from":"2001:db8::100","to":"2001:db8::1ff","announce":"eth0","on_cut":"keep"},
		{"from":"192.0.2.10","to":"192.0.2.100","announce":"eth0","on_cut":"withdraw","ttl":5000000000},
		{"from":"192.0.2.101","to":"192.0.2.101","on_cut":"keep","sooner":7}],
	"mappings":[
		{"elastic":"192.0.2.10","guest":"172.30.1.2","subnet":"172.30.1.0/24"},
		{"elastic":"192.0.2.101","guest":"172.30.1.3","subnet":"172.30.1.0/24","egress_only":true},
		{"elastic":"2001:db8::100","guest":"fd00::2","subnet":"fd00::/64","staged":true}],
	"until":12}`)

// TestCheck: a row has a text of the whole state, what it becomes, and the refusal.
func TestCheck(t *testing.T) {
	for c := range ipamtest.Rows(4, `
		a whole state
		overlap | "from":"192.0.2.101" | "from":"192.0.2.100" | overlap
		two families | "to":"192.0.2.101" | "to":"2001:db8::1" | one IPv4 end and one IPv6 end
		backwards | "to":"192.0.2.101" | "to":"192.0.2.1" | ends before it begins
		no end | "to":"192.0.2.101" | "to":"" | must be IPv4 or IPv6 addresses
		on a cut | "on_cut":"keep","sooner" | "on_cut":"","sooner" | must be "withdraw" or "keep"
		a negative TTL | 5000000000 | -1 | must not be negative
		a device with a quote | eth0","on_cut":"withdraw | eth0\"drop","on_cut":"withdraw | not the name of a network device
		a device with a line | eth0","on_cut":"withdraw | eth0\n}","on_cut":"withdraw | not the name of a network device
		a device that is a path | eth0","on_cut":"withdraw | ../all","on_cut":"withdraw | not the name of a network device
		no range | "elastic":"192.0.2.10" | "elastic":"192.0.2.9" | lies in no range
		elastic twice | "elastic":"192.0.2.101" | "elastic":"192.0.2.10" | mapped twice
		guest twice | 172.30.1.3 | 172.30.1.2 | a guest can have only one
		guest of another family | 172.30.1.3 | fd00::9 | both IPv4 or both IPv6
		guest elsewhere | 172.30.1.3 | 172.30.2.3 | outside its subnet
		a zone | fd00::2 | fe80::1%eth0 | without a zone
	`) {
		var s edge.State
		text := strings.Replace(whole, c[1], c[2], 1)
		if err := json.Unmarshal([]byte(text), &s); err != nil || (text == whole) != (c[1] == "") {
			t.Fatalf("%s: %v: %s", c[0], err, text)
		}
		if err := s.Check(); (err == nil) != (c[3] == "") || err != nil && !strings.Contains(err.Error(), c[3]) {
			t.Errorf("%s: got %v, want a text with %q", c[0], err, c[3])
		}
	}
	if err := (edge.State{}).Check(); err != nil {
		t.Errorf("an empty state is refused: %v", err)
	}
}

// TestJSON: a program reads the same state that was written.
func TestJSON(t *testing.T) {
	var s edge.State
	d := json.NewDecoder(strings.NewReader(whole))
	d.DisallowUnknownFields()
	if err := d.Decode(&s); err != nil {
		t.Fatal(err)
	}
	if b, err := json.Marshal(s); err != nil || string(b) != whole {
		t.Errorf("%s\nis written as\n%s (%v)", whole, b, err)
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
