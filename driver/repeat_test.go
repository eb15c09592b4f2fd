package driver

import (
	"testing"
)

// TestRepetition: an address that an endpoint has is given to no second one, whatever MAC or name it says. Without a
// witness a lease from before the daemon's start is in doubt, and the next start of its endpoint, which is known by the
// MAC and, where one is sent, the name, has it again: once. An address alone identifies nobody (LN-3, LN-9, GA-22,
// invariant 3).
func TestRepetition(t *testing.T) {
	for _, row := range []struct {
		name          string
		first, second opts
		addr, again   string // asked for
		same          bool
	}{
		{name: "MAC", first: mac(1), second: mac(1), same: true},
		{name: "other MAC", first: mac(1), second: mac(2)},
		{name: "MAC written otherwise", first: mac(10), second: opts{optMAC: "02-42-00-00-00-0A"}, same: true},
		{name: "name and MAC", first: named("web", 1), second: named("web", 1), same: true},
		{name: "name with a slash", first: named("web", 1), second: named("/web", 1), same: true},
		{name: "same MAC, other name", first: named("web", 1), second: named("db", 1)},
		{name: "same name, other MAC", first: named("web", 1), second: named("web", 2)},
		{name: "name sent once only", first: named("web", 1), second: mac(1), same: true},
		{name: "name without a MAC", first: opts{optName: "web"}, second: opts{optName: "web"}},
		{name: "nothing sent", first: nil, second: nil},
		{name: "MAC and address", first: mac(1), second: mac(1), addr: "10.0.0.77", again: "10.0.0.77", same: true},
		{name: "MAC, address the first time only", first: mac(1), second: mac(1), addr: "10.0.0.77", same: true},
	} {
		t.Run(row.name, func(t *testing.T) {
			b := newBench(t)
			p := b.pool("local", "10.0.0.0/24", "", nil).PoolID
			first := b.take(p, row.addr, row.first)
			another := func(when string) {
				t.Helper()
				got, refused := b.tryTake(p, row.again, row.second)
				if got == first || (refused == "") != (row.again == "") {
					t.Errorf("%s: first %s, then %s %s", when, first, got, refused)
				}
				if refused == "" {
					b.give(p, got)
				}
			}
			another("at once")
			another("at once")
			b.reopen()
			if row.same {
				if second := b.take(p, row.again, row.second); second != first {
					t.Errorf("after a restart: first %s, then %s", first, second)
				}
			}
			another("when it has it again")
			b.check()
		})
	}
}

// TestConflict: an explicit address that somebody has is refused, and the error names the holder, whoever asks but the
// holder itself (LN-9, GA-22, C17, BO-5).
func TestConflict(t *testing.T) {
	const addr = "10.0.0.77"
	for _, row := range []struct {
		name   string
		holder opts
		asker  opts
		want   []string
	}{
		{"by MAC", mac(1), mac(2), []string{addr, macText(1)}},
		{"by name", named("web", 1), named("db", 2), []string{addr, "web", macText(1)}},
		{"same name, other MAC", named("web", 1), named("web", 2), []string{addr, "web", macText(1)}},
		{"same MAC, other name", named("web", 1), named("db", 1), []string{addr, "web"}},
		{"without a MAC", mac(1), nil, []string{addr, macText(1)}},
		{"auxiliary, then an endpoint", nil, mac(1), []string{addr, "auxiliary"}},
		{"auxiliary twice", nil, nil, []string{addr, "auxiliary"}},
		{"auxiliary, then the gateway", nil, gatewayType, []string{addr, "auxiliary"}},
		{"an endpoint, then the gateway", mac(1), gatewayType, []string{addr, macText(1)}},
		{"the gateway, then an endpoint", gatewayType, mac(1), []string{addr, "gateway"}},
		{"the gateway, then auxiliary", gatewayType, nil, []string{addr, "gateway"}},
	} {
		t.Run(row.name, func(t *testing.T) {
			b := newBench(t)
			p := b.pool("local", "10.0.0.0/24", "", nil).PoolID
			b.take(p, addr, row.holder)
			for range 3 {
				_, refused := b.tryTake(p, addr, row.asker)
				wantText(t, refused, append(row.want, "held by")...)
			}
			b.reopen()
			_, refused := b.tryTake(p, addr, row.asker)
			wantText(t, refused, row.want...)
			b.check()
		})
	}
}

// TestRepetitionOverPools: the same MAC on two attachments of one subnet is two endpoints, and after a restart each of
// them has its own again.
func TestRepetitionOverPools(t *testing.T) {
	b := newBench(t)
	first := b.pool("local", "10.0.0.0/24", "", nil).PoolID
	second := b.pool("local", "10.0.0.0/24", "", nil).PoolID
	one, two := b.take(first, "", mac(1)), b.take(second, "", mac(1))
	if one == two {
		t.Fatalf("%s was given twice", one)
	}
	for range 2 {
		b.reopen()
		_, refused := b.tryTake(second, one, mac(1))
		wantText(t, refused, one, "held by")
		if again := b.take(first, "", mac(1)); again != one {
			t.Errorf("through the first pool: %s, then %s", one, again)
		}
		if again := b.take(second, "", mac(1)); again != two {
			t.Errorf("through the second pool: %s, then %s", two, again)
		}
	}
}

// TestRepeatedGateway: the subnet's gateway asked for again is the same; it belongs to the subnet, so that every
// attachment may ask for it and none can give it away (LN-11, LN-14).
func TestRepeatedGateway(t *testing.T) {
	b := newBench(t)
	first := b.pool("local", "10.0.0.0/24", "", nil).PoolID
	second := b.pool("local", "10.0.0.0/24", "", nil).PoolID
	gateway := b.take(first, "", gatewayType)
	for _, p := range []string{first, second} {
		for _, addr := range []string{"", gateway} {
			if got := b.take(p, addr, gatewayType); got != gateway {
				t.Errorf("asked for %q, got %s instead of %s", addr, got, gateway)
			}
		}
		b.give(p, gateway)
	}
	b.drop(first)
	if _, refused := b.tryTake(second, gateway, mac(1)); refused == "" {
		t.Error("the gateway was given to an endpoint after a release")
	}
	own := b.take(second, "10.0.0.9", gatewayType)
	if again := b.take(second, "10.0.0.9", gatewayType); again != own {
		t.Errorf("an attachment's own gateway %s moved to %s", own, again)
	}
	b.check()
}

// TestMemory: an endpoint that comes back gets the address back that it had, by its MAC and by its name, though others
// came between, and after a restart of the daemon too (BO-2, LN-3).
func TestMemory(t *testing.T) {
	for _, row := range []struct {
		name         string
		before, then opts
		addr         string // asked for
		back         bool
		sticky       string
	}{
		{name: "by MAC", before: mac(1), then: mac(1), back: true},
		{name: "by name, with another MAC", before: named("web", 1), then: named("web", 2), back: true},
		{name: "explicit, by name", before: named("web", 1), then: named("web", 2), addr: "10.0.0.77", back: true},
		{name: "outside the range, by MAC", before: mac(1), then: mac(1), addr: "10.0.0.5", back: true},
		{name: "a stranger", before: named("web", 1), then: named("db", 2)},
		{name: "forgotten by sticky=off", before: named("web", 1), then: named("web", 1), sticky: "off"},
		{name: "kept by sticky=on", before: named("web", 1), then: named("web", 1), sticky: "on", back: true},
	} {
		for _, restart := range []bool{false, true} {
			t.Run(row.name, func(t *testing.T) {
				b := newBench(t)
				o := opts{}
				if row.sticky != "" {
					o["sticky"] = row.sticky
				}
				p := b.pool("local", "10.0.0.0/24", "10.0.0.64/26", o).PoolID
				had := b.take(p, row.addr, row.before)
				b.give(p, had)
				if restart {
					b.reopen()
				}
				for n := 100; n < 110; n++ {
					if got := b.take(p, "", mac(n)); got == had {
						t.Fatalf("%s was lent to another", had)
					}
				}
				if got := b.take(p, "", row.then); (got == had) != row.back {
					t.Errorf("it had %s and gets %s", had, got)
				}
				b.check()
			})
		}
	}
}

// TestMemoryIsNoClaim: where nothing else is free, a remembered address goes to the next one, the one released longest
// ago first.
func TestMemoryIsNoClaim(t *testing.T) {
	b := newBench(t)
	p := b.pool("local", "10.0.0.0/29", "", nil).PoolID
	var had []string
	for n := range 6 {
		had = append(had, b.take(p, "", mac(n)))
	}
	for _, n := range []int{3, 1, 5} {
		b.give(p, had[n])
	}
	for i, n := range []int{3, 1, 5} {
		if i == 1 {
			b.reopen()
		}
		if got := b.take(p, "", mac(100+n)); got != had[n] {
			t.Errorf("got %s; %s was released longest ago", got, had[n])
		}
	}
	b.check()
}
