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

func drawAhead(t *rapid.T) time.Duration {
	return time.Duration(rapid.Uint32().Draw(t, "ahead")) * time.Microsecond
}

func TestLeaseCodec(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := &Lease{ID: rapid.Uint64().Draw(t, "lease"), Address: drawAddr(t),
			Kind:       Kind(rapid.IntRange(1, 4).Draw(t, "kind")),
			Attachment: drawID(t), MAC: MAC(rapid.SliceOfN(rapid.Byte(), 6, 6).Draw(t, "mac")),
			Name: rapid.String().Draw(t, "name"), Host: rapid.String().Draw(t, "host"),
			Since: drawTime(t, "since"), Released: drawTime(t, "released"), QuarantineUntil: drawTime(t, "until"),
			Container: ShortContainer(rapid.String().Draw(t, "container")),
			Guessed:   rapid.Bool().Draw(t, "guessed"), Ahead: drawAhead(t)}
		if rapid.Bool().Draw(t, "reserved") {
			want.Slot = Slot{1, 2}
			want.Reservation = &Reservation{ID: 7, Owner: "web", Kind: Static, Ahead: drawAhead(t),
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
		ahead := rapid.Just(uint64(0))
		if id > 0 {
			ahead = rapid.OneOf(ahead, rapid.Uint64Range(1, id))
		}
		want := &Event{ID: id, Time: EventTime(id - ahead.Draw(t, "ahead")),
			Verb:    Verb(rapid.IntRange(1, 10).Draw(t, "verb")),
			Actor:   rapid.String().Draw(t, "actor"),
			Space:   rapid.String().Draw(t, "space"),
			Subnet:  netip.PrefixFrom(addr, rapid.IntRange(0, addr.BitLen()).Draw(t, "bits")),
			Address: addr, Lease: rapid.Uint64().Draw(t, "lease"), Attachment: drawID(t),
			Name: rapid.String().Draw(t, "name"), Host: rapid.String().Draw(t, "host"),
			Detail: rapid.String().Draw(t, "detail")}
		raw := EncodeEvent(nil, want)
		got, err := DecodeEvent(id, raw)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got, comparePlain); diff != "" {
			t.Fatal(diff)
		}
		if at, ok := EventAddress(raw); !ok || at != addr || !EventTime(id-EventsAhead(raw)).Equal(want.Time) {
			t.Fatalf("of the bytes alone it is about %s, %t, and %d ahead", at, ok, EventsAhead(raw))
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

// A record of another version, or with an unknown flag, is refused, not misread.
func TestNewerRecords(t *testing.T) {
	a := netip.MustParseAddr("10.0.0.2")
	lease := EncodeLease(nil, &Lease{Kind: Static, Slot: Slot{1, 0}})
	lease[0]++
	if _, err := DecodeLease(a, lease); !errors.Is(err, ErrDamaged) || !strings.Contains(err.Error(), "version 2") {
		t.Errorf("lease: %v", err)
	}
	lease[0], lease[1] = leaseVersion, aheadFlag<<1
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
		Terms: Terms{Note: strings.Repeat("é", maxNote)}}}))
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
	release := &Event{Verb: LeaseReleased, Subnet: netip.MustParsePrefix("10.0.0.0/8"), Lease: 1,
		Address: netip.MustParseAddr("10.0.0.2")}
	taken := EncodeEvent(nil, release.taking("", ""))
	f.Add(taken)
	one, _ := EncodeThrowAway(nil, taken, 2, release)
	f.Add(one)
	two, _ := JoinThrowAway(one, 2, one, 3)
	f.Add(two)
	f.Fuzz(func(t *testing.T, raw []byte) {
		const last = 1000
		all, err := DecodeEvents(last, raw)
		if err != nil {
			if !errors.Is(err, ErrDamaged) {
				t.Fatal(err)
			}
			return
		}
		if len(all) != RecordEvents(raw) || all[len(all)-1].ID != last {
			t.Fatalf("%d events of %d, the last %d", len(all), RecordEvents(raw), all[len(all)-1].ID)
		}
		for i := range all[1:] {
			if all[i].ID >= all[i+1].ID {
				t.Fatalf("%d comes before %d", all[i].ID, all[i+1].ID)
			}
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

// Takes and releases that share a record are read as if they were written apart, and lose nothing. An event that
// says more than the others keeps its own record.
func TestThrowAwayCodec(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var want []Event
		var record []byte
		addr, id := drawAddr(t), rapid.Uint64Range(1, 1<<50).Draw(t, "begin")
		same := Event{Verb: LeaseReleased, Actor: rapid.String().Draw(t, "ended by"),
			Space: rapid.String().Draw(t, "space"), Subnet: netip.PrefixFrom(addr, addr.BitLen()), Attachment: drawID(t),
			Host: rapid.String().Draw(t, "host"), Detail: rapid.String().Draw(t, "reason"),
			Network: rapid.String().Draw(t, "network"), NetworkID: drawID(t)}
		actor, detail := rapid.String().Draw(t, "begun by"), rapid.String().Draw(t, "kind")
		ahead := rapid.SampledFrom([]uint64{0, id}).Draw(t, "ahead")
		for range rapid.IntRange(1, 30).Draw(t, "leases") {
			release := same
			release.Lease = id + rapid.Uint64Range(1, 1<<30).Draw(t, "later")
			release.ID = release.Lease + rapid.Uint64Range(1, 1<<40).Draw(t, "lasted")
			release.Time = EventTime(release.ID - ahead)
			release.Address, release.Name = drawAddr(t), rapid.String().Draw(t, "name")
			release.MAC = MAC(rapid.SliceOfN(rapid.Byte(), 6, 6).Draw(t, "mac"))
			taken := release.taking(actor, detail)
			one, is := EncodeThrowAway(nil, EncodeEvent(nil, taken), release.ID, &release)
			if !is {
				t.Fatal("it keeps two records")
			}
			if record == nil {
				record = one
			} else if joined, fits := JoinThrowAway(record, id, one, taken.ID); fits {
				if record = joined; len(record) > maxThrowAway {
					t.Fatalf("%d bytes", len(record))
				}
			} else {
				if len(record)+len(one) < maxThrowAway {
					t.Fatalf("%d and %d bytes do not fit together", len(record), len(one))
				}
				record, want = one, nil
			}
			want, id = append(want, *taken, release), release.ID
		}
		got, err := DecodeEvents(id, record)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got, comparePlain); diff != "" || RecordEvents(record) != len(want) ||
			EventsAhead(record) != ahead {
			t.Fatalf("of %d events:\n%s", RecordEvents(record), diff)
		}
		cut := rapid.IntRange(0, len(record)-1).Draw(t, "cut")
		if _, err := DecodeEvents(id, record[:cut]); !errors.Is(err, ErrDamaged) {
			t.Fatalf("cut to %d of %d bytes: %v", cut, len(record), err)
		}
		if _, err := DecodeEvents(id-want[0].ID, record); !errors.Is(err, ErrDamaged) {
			t.Fatalf("what began before all time: %v", err)
		}
	})
}

func TestNoThrowAway(t *testing.T) {
	release := &Event{ID: 9, Verb: LeaseReleased, Lease: 7, Name: "web", Address: netip.MustParseAddr("10.0.0.2")}
	for what, change := range map[string]func(*Event){
		"another verb":  func(e *Event) { e.Verb = HeadroomClaimed },
		"another name":  func(e *Event) { e.Name += "x" },
		"another lease": func(e *Event) { e.Lease++ },
		"facts":         func(e *Event) { e.After = []byte(`{"note":"x"}`) },
	} {
		taken := release.taking("engine", "automatic")
		change(taken)
		if _, is := EncodeThrowAway(nil, EncodeEvent(nil, taken), 9, release); is {
			t.Errorf("%s is lost", what)
		}
	}
	if _, is := EncodeThrowAway(nil, nil, 9, release); is {
		t.Error("a taking that is not there is told")
	}
	one := func(change func(*Event)) []byte {
		e := *release
		change(&e)
		record, _ := EncodeThrowAway(nil, EncodeEvent(nil, e.taking("engine", "automatic")), 9, &e)
		return record
	}
	plain := one(func(*Event) {})
	for what, change := range map[string]func(*Event){
		"another space":   func(e *Event) { e.Space = "lab" },
		"another host":    func(e *Event) { e.Host = "b" },
		"another network": func(e *Event) { e.NetworkID = ID{1} },
	} {
		if _, fits := JoinThrowAway(plain, 6, one(change), 7); fits {
			t.Errorf("%s is lost", what)
		}
	}
	if _, fits := JoinThrowAway(EncodeEvent(nil, release), 6, plain, 7); fits {
		t.Error("a lease joins an event")
	}
}
