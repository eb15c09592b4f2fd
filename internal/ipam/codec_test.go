package ipam

import (
	"errors"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"
)

var comparePlain = cmp.Options{
	cmpopts.EquateComparable(netip.Addr{}, netip.Prefix{}),
}

func drawTime(t *rapid.T, label string) time.Time {
	us := rapid.Int64Range(0, 1<<52).Draw(t, label)
	if us == 0 {
		return time.Time{}
	}
	return time.UnixMicro(us).UTC()
}

func drawAddr(t *rapid.T) netip.Addr {
	if rapid.Bool().Draw(t, "is6") {
		return netip.AddrFrom16([16]byte(rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, "addr")))
	}
	return netip.AddrFrom4([4]byte(rapid.SliceOfN(rapid.Byte(), 4, 4).Draw(t, "addr")))
}

func drawID(t *rapid.T) ID { return ID(rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, "id")) }

func TestLeaseCodec(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := &Lease{ID: rapid.Uint64().Draw(t, "lease"), Address: drawAddr(t), Kind: Kind(rapid.IntRange(1, 4).Draw(t, "kind")),
			Attachment: drawID(t), MAC: MAC(rapid.SliceOfN(rapid.Byte(), 6, 6).Draw(t, "mac")),
			Name: rapid.String().Draw(t, "name"), Host: rapid.String().Draw(t, "host"),
			Since: drawTime(t, "since"), Released: drawTime(t, "released"), Until: drawTime(t, "until")}
		raw := encodeLease(nil, want)
		got, err := decodeLease(want.Address, raw)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got, comparePlain); diff != "" {
			t.Fatal(diff)
		}
		cut := rapid.IntRange(0, len(raw)-1).Draw(t, "cut")
		if _, err := decodeLease(want.Address, raw[:cut]); !errors.Is(err, ErrDamaged) {
			t.Fatalf("cut to %d of %d bytes: %v", cut, len(raw), err)
		}
	})
}

func TestEventCodec(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		addr := drawAddr(t)
		id := rapid.Uint64Range(0, 1<<52).Draw(t, "event")
		want := &Event{ID: id, Time: eventTime(id), Verb: Verb(rapid.IntRange(1, 10).Draw(t, "verb")), Actor: rapid.String().Draw(t, "actor"),
			Space: rapid.String().Draw(t, "space"), Subnet: netip.PrefixFrom(addr, rapid.IntRange(0, addr.BitLen()).Draw(t, "bits")),
			Address: addr, Lease: rapid.Uint64().Draw(t, "lease"), Attachment: drawID(t),
			Name: rapid.String().Draw(t, "name"), Host: rapid.String().Draw(t, "host"), Detail: rapid.String().Draw(t, "detail")}
		got, err := decodeEvent(id, encodeEvent(nil, want))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got, comparePlain); diff != "" {
			t.Fatal(diff)
		}
	})
}

func TestEventWithoutAddress(t *testing.T) {
	want := &Event{ID: 7, Time: eventTime(7), Verb: SpaceCreated, Space: "lab"}
	got, err := decodeEvent(7, encodeEvent(nil, want))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got, comparePlain); diff != "" {
		t.Fatal(diff)
	}
}

// A record of a later version is refused, not misread.
func TestNewerRecords(t *testing.T) {
	a := netip.MustParseAddr("10.0.0.2")
	lease := encodeLease(nil, &Lease{Kind: Static, Slot: Slot{1, 0}})
	lease[0] = leaseVersionEnds + 1
	if _, err := decodeLease(a, lease); !errors.Is(err, ErrDamaged) || !strings.Contains(err.Error(), "version 4") {
		t.Errorf("lease: %v", err)
	}
	event := encodeEvent(nil, &Event{Verb: LeaseTaken, Network: "n"})
	event[0]++
	if _, err := decodeEvent(1, event); !errors.Is(err, ErrDamaged) {
		t.Errorf("event: %v", err)
	}
	subnet, err := encodeJSON(&Subnet{})
	if err != nil {
		t.Fatal(err)
	}
	subnet[0]++
	if err := decodeJSON("subnet x", subnet, new(Subnet)); !errors.Is(err, ErrDamaged) {
		t.Errorf("subnet: %v", err)
	}
}

func FuzzDecodeLease(f *testing.F) {
	f.Add(encodeLease(nil, &Lease{ID: 1, Kind: Static, Name: "web", Host: "h", Since: eventTime(5)}))
	f.Fuzz(func(t *testing.T, raw []byte) {
		l, err := decodeLease(netip.MustParseAddr("10.0.0.2"), raw)
		if err != nil {
			if !errors.Is(err, ErrDamaged) {
				t.Fatal(err)
			}
			return
		}
		again, err := decodeLease(l.Address, encodeLease(nil, l))
		if err != nil || cmp.Diff(l, again, comparePlain) != "" {
			t.Fatalf("%+v became %+v, %v", l, again, err)
		}
	})
}

func FuzzDecodeEvent(f *testing.F) {
	f.Add(encodeEvent(nil, &Event{Verb: LeaseTaken, Subnet: netip.MustParsePrefix("10.0.0.0/8"), Address: netip.MustParseAddr("10.0.0.2")}))
	f.Fuzz(func(t *testing.T, raw []byte) {
		if _, err := decodeEvent(1, raw); err != nil && !errors.Is(err, ErrDamaged) {
			t.Fatal(err)
		}
	})
}

func FuzzParseID(f *testing.F) {
	f.Add(NewID().String())
	f.Add("")
	f.Fuzz(func(t *testing.T, s string) {
		id, err := ParseID(s)
		if err == nil && !strings.EqualFold(id.String(), s) {
			t.Fatalf("%q became %s", s, id)
		}
	})
}

func FuzzParseMAC(f *testing.F) {
	f.Add("02:42:0a:00:00:02")
	f.Fuzz(func(t *testing.T, s string) {
		m, err := ParseMAC(s)
		if err != nil || m == (MAC{}) {
			return
		}
		if again, err := ParseMAC(m.String()); err != nil || again != m {
			t.Fatalf("%q became %s, %v", s, again, err)
		}
	})
}

func TestCheckName(t *testing.T) {
	for name, ok := range map[string]bool{
		"a": true, "lab.1": true, "A_b-c": true, strings.Repeat("x", 63): true,
		"": false, "pool": false, "none": false, "all": false, "10.0.0.1": false, "::1": false, "-a": false, "a b": false,
		"a/b": false, "é": false, strings.Repeat("x", 64): false, "1": true,
	} {
		if err := CheckName("space", name); (err == nil) != ok {
			t.Errorf("%q: %v", name, err)
		}
	}
}
