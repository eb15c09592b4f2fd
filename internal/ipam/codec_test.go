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
		want := &Lease{ID: rapid.Uint64().Draw(t, "lease"), Address: drawAddr(t),
			Kind:       Kind(rapid.IntRange(1, 4).Draw(t, "kind")),
			Attachment: drawID(t), MAC: MAC(rapid.SliceOfN(rapid.Byte(), 6, 6).Draw(t, "mac")),
			Name: rapid.String().Draw(t, "name"), Host: rapid.String().Draw(t, "host"),
			Since: drawTime(t, "since"), Released: drawTime(t, "released"), Until: drawTime(t, "until"),
			Container: ShortContainer(rapid.String().Draw(t, "container")),
			Guessed:   rapid.Bool().Draw(t, "guessed")}
		if rapid.Bool().Draw(t, "reserved") {
			want.Slot = Slot{1, 2}
			want.Reservation = &Reservation{ID: 7, Owner: "web", Kind: Static,
				Terms: Terms{Replaced: rapid.Bool().Draw(t, "replaced"), Until: drawTime(t, "end"),
					Note: rapid.String().Draw(t, "note")}}
		}
		raw := EncodeLease(nil, want)
		got, err := DecodeLease(want.Address, raw)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got, comparePlain); diff != "" {
			t.Fatal(diff)
		}
		cut := rapid.IntRange(0, len(raw)-1).Draw(t, "cut")
		if _, err := DecodeLease(want.Address, raw[:cut]); !errors.Is(err, ErrDamaged) {
			t.Fatalf("cut to %d of %d bytes: %v", cut, len(raw), err)
		}
	})
}

func TestEventCodec(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		addr := drawAddr(t)
		id := rapid.Uint64Range(0, 1<<52).Draw(t, "event")
		want := &Event{ID: id, Time: EventTime(id), Verb: Verb(rapid.IntRange(1, 10).Draw(t, "verb")),
			Actor:   rapid.String().Draw(t, "actor"),
			Space:   rapid.String().Draw(t, "space"),
			Subnet:  netip.PrefixFrom(addr, rapid.IntRange(0, addr.BitLen()).Draw(t, "bits")),
			Address: addr, Lease: rapid.Uint64().Draw(t, "lease"), Attachment: drawID(t),
			Name: rapid.String().Draw(t, "name"), Host: rapid.String().Draw(t, "host"),
			Detail: rapid.String().Draw(t, "detail")}
		got, err := DecodeEvent(id, EncodeEvent(nil, want))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got, comparePlain); diff != "" {
			t.Fatal(diff)
		}
	})
}

func TestEventWithoutAddress(t *testing.T) {
	want := &Event{ID: 7, Time: EventTime(7), Verb: SpaceCreated, Space: "lab"}
	got, err := DecodeEvent(7, EncodeEvent(nil, want))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got, comparePlain); diff != "" {
		t.Fatal(diff)
	}
}

// A record of another version is refused, not misread, and so is one with a flag that is not known.
func TestNewerRecords(t *testing.T) {
	a := netip.MustParseAddr("10.0.0.2")
	lease := EncodeLease(nil, &Lease{Kind: Static, Slot: Slot{1, 0}})
	lease[0]++
	if _, err := DecodeLease(a, lease); !errors.Is(err, ErrDamaged) || !strings.Contains(err.Error(), "version 2") {
		t.Errorf("lease: %v", err)
	}
	lease[0], lease[1] = leaseVersion, containerFlag<<1
	if _, err := DecodeLease(a, lease); !errors.Is(err, ErrDamaged) {
		t.Errorf("lease with a flag that is not known: %v", err)
	}
	event := EncodeEvent(nil, &Event{Verb: LeaseTaken, Network: "n"})
	event[0]++
	if _, err := DecodeEvent(1, event); !errors.Is(err, ErrDamaged) {
		t.Errorf("event: %v", err)
	}
	subnet, err := EncodeJSON(&Subnet{})
	if err != nil {
		t.Fatal(err)
	}
	subnet[0]++
	if err := DecodeJSON("subnet x", subnet, new(Subnet)); !errors.Is(err, ErrDamaged) {
		t.Errorf("subnet: %v", err)
	}
}

func FuzzDecodeLease(f *testing.F) {
	f.Add(EncodeLease(nil, &Lease{ID: 1, Kind: Static, Name: "web", Host: "h", Since: EventTime(5)}))
	f.Add(EncodeLease(nil, &Lease{Reservation: &Reservation{ID: 1, Owner: "web", Kind: Static,
		Terms: Terms{Note: strings.Repeat("é", MaxNote)}}}))
	f.Fuzz(func(t *testing.T, raw []byte) {
		l, err := DecodeLease(netip.MustParseAddr("10.0.0.2"), raw)
		if err != nil {
			if !errors.Is(err, ErrDamaged) {
				t.Fatal(err)
			}
			return
		}
		again, err := DecodeLease(l.Address, EncodeLease(nil, l))
		if err != nil || cmp.Diff(l, again, comparePlain) != "" {
			t.Fatalf("%+v became %+v, %v", l, again, err)
		}
	})
}

func FuzzDecodeEvents(f *testing.F) {
	taken := EncodeEvent(nil, &Event{Verb: LeaseTaken, Subnet: netip.MustParsePrefix("10.0.0.0/8"), Lease: 1,
		Address: netip.MustParseAddr("10.0.0.2")})
	f.Add(taken)
	pair, _ := EncodePair(nil, taken, &Event{Verb: LeaseReleased, Subnet: netip.MustParsePrefix("10.0.0.0/8"), Lease: 1,
		Address: netip.MustParseAddr("10.0.0.2")})
	f.Add(pair)
	f.Fuzz(func(t *testing.T, raw []byte) {
		taken, e, err := DecodeEvents(2, raw)
		if err != nil {
			if !errors.Is(err, ErrDamaged) {
				t.Fatal(err)
			}
			return
		}
		if addr, ok := EventAddress(raw); !ok || addr != e.Address {
			t.Fatalf("the address is %v (%t), and of the event %v", addr, ok, e.Address)
		}
		if id := TakenIn(raw); (taken != nil) != (id != 0) || taken != nil && taken.ID != id {
			t.Fatalf("the taking is %d, and of the event %+v", id, taken)
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
		"": false, "pool": false, "none": false, "all": false, "10.0.0.1": false, "::1": false, "-a": false,
		"a b": false,
		"a/b": false, "é": false, strings.Repeat("x", 64): false, "1": true,
	} {
		if err := CheckName("space", name); (err == nil) != ok {
			t.Errorf("%q: %v", name, err)
		}
	}
}

// A taking and its release are read out of one record as they were written apart, and nothing of the taking is lost: one
// that says more than the release has no part in it.
func TestEventPair(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		addr := drawAddr(t)
		lease := rapid.Uint64Range(1, 1<<52).Draw(t, "lease")
		id := lease + rapid.Uint64Range(1, 1<<40).Draw(t, "lasted")
		release := &Event{ID: id, Time: EventTime(id), Verb: LeaseReleased, Actor: rapid.String().Draw(t, "ended by"),
			Space: rapid.String().Draw(t, "space"), Subnet: netip.PrefixFrom(addr, addr.BitLen()), Address: addr,
			Lease: lease, Attachment: drawID(t), MAC: MAC(rapid.SliceOfN(rapid.Byte(), 6, 6).Draw(t, "mac")),
			Name: rapid.String().Draw(t, "name"), Host: rapid.String().Draw(t, "host"),
			Detail: rapid.String().Draw(t, "reason"), Network: rapid.String().Draw(t, "network"), NetworkID: drawID(t)}
		taken := *release
		taken.ID, taken.Time, taken.Verb = lease, EventTime(lease), LeaseTaken
		taken.Actor, taken.Detail = rapid.String().Draw(t, "begun by"), rapid.String().Draw(t, "kind")
		record, paired := EncodePair(nil, EncodeEvent(nil, &taken), release)
		if !paired {
			t.Fatal("they are not put together")
		}
		gotTaken, got, err := DecodeEvents(id, record)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]*Event{&taken, release}, []*Event{gotTaken, got}, comparePlain); diff != "" {
			t.Fatal(diff)
		}
		if a, ok := EventAddress(record); !ok || a != addr || TakenIn(record) != lease {
			t.Fatalf("it is of %v (%t) and lease %d", a, ok, TakenIn(record))
		}
		cut := rapid.IntRange(0, len(record)-1).Draw(t, "cut")
		if _, _, err := DecodeEvents(id, record[:cut]); !errors.Is(err, ErrDamaged) && cut != len(record)-16 {
			t.Fatalf("cut to %d of %d bytes: %v", cut, len(record), err)
		}
		if _, _, err := DecodeEvents(lease, record); !errors.Is(err, ErrDamaged) {
			t.Fatalf("an end that is no later than its beginning: %v", err)
		}
		for what, change := range map[string]func(*Event){
			"another verb":  func(e *Event) { e.Verb = HeadroomClaimed },
			"another name":  func(e *Event) { e.Name += "x" },
			"another lease": func(e *Event) { e.Lease++ },
			"facts":         func(e *Event) { e.After = []byte(`{"note":"x"}`) },
		} {
			other := taken
			change(&other)
			if _, paired := EncodePair(nil, EncodeEvent(nil, &other), release); paired {
				t.Errorf("%s is lost", what)
			}
		}
		if _, paired := EncodePair(nil, nil, release); paired {
			t.Error("a taking that is not there has a part")
		}
	})
}
