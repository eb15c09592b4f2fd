package driver

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"berth/internal/ipam"
)

// street plans a network with a gateway, a pool of four addresses and another one named web, and attaches a Docker
// network to it.
func street(t *testing.T) (b *bench, pool string) {
	t.Helper()
	b = newBench(t)
	b.edit("network.create", `{"name":"front","subnets":[{"cidr":"10.0.0.0/24","gateway":"10.0.0.254"}]}`)
	b.edit("pool.add", `{"network":"front","range":"10.0.0.10+4"}`)
	b.edit("pool.add", `{"network":"front","range":"10.0.0.20+4","name":"web"}`)
	return b, b.planned("", nil).PoolID
}

// reserve reserves an address in front for an owner.
func (b *bench) reserve(owner, addr string) {
	b.t.Helper()
	b.edit("reservation.add",
		fmt.Sprintf(`{"network":"front","owner":%q,"wishes":[{"slot":0,"address":%q}]}`, owner, addr))
}

const inUse = string(ipam.AlreadyInUse)

// TestOwnerNames: whom the name of an endpoint means, in the ways in which Docker and both lines of Compose write it.
// Any other name is a stranger's, who is given no reserved address (BO-2).
func TestOwnerNames(t *testing.T) {
	for _, row := range []struct {
		owner, name string
		it          bool
	}{
		{"web", "web", true},
		{"web", "/web", true},
		{"web", "web-1", false},
		{"web", "Web", false},
		{"shop/web/1", "shop-web-1", true},
		{"shop/web/1", "shop_web_1", true},
		{"shop/web/1", "0123456789ab_shop-web-1", true},
		{"shop/web/1", "0123456789ab_shop_web_1", true},
		{"shop/web/1", "shop/web/1", true},
		{"shop/web/1", "shop-web-10", false},
		{"shop/web/1", "shop-web-2", false},
		{"shop/web/1", "shop-web", false},
		{"shop/web/1", "shop-web-01", false},
		{"shop/web/1", "web-1", false},
		{"shop/web/1", "my-shop-web-1", false},
		{"shop/web/1", "shop-web-1-1", false},
		{"shop/web/1", "0123456789AB_shop-web-1", false}, // no id of a container
		{"shop/web/1", "0123456789a_shop-web-1", false},
		{"shop/web/1", "0123456789abc_shop-web-1", false},
		{"shop/web/1", "x0123456789ab_shop-web-1", false},
		{"my-shop/web/1", "my-shop-web-1", true},
		{"my-shop/web/1", "my-shop_web_1", true},
		{"shop/web-front/12", "shop-web-front-12", true},
		{"shop/web-front/12", "shop_web-front_12", true},
		{"my_shop/web/1", "my_shop-web-1", true},
		{"my_shop/web/1", "my_shop_web_1", true},
		{"web", "0123456789ab_web", true},
		{"shop/web/run/1", "shop-web-run-1", false},
	} {
		t.Run(row.owner+" "+row.name, func(t *testing.T) {
			b, p := street(t)
			b.reserve(row.owner, "10.0.0.99")
			got := b.take(p, "", named(row.name, 1))
			if (got == "10.0.0.99") != row.it {
				t.Errorf("%s is given %s", row.name, got)
			}
			b.give(p, got)
			_, refused := b.tryTake(p, "10.0.0.99", named(row.name, 1))
			if row.it != (refused == "") {
				t.Errorf("%s asks for it: %s", row.name, refused)
			} else if !row.it {
				wantText(t, refused, inUse, "10.0.0.99", row.owner)
			}
			b.check()
		})
	}
}

// TestOwnerOrder: the name goes before the MAC, and both before whatever the address says (BO-2).
func TestOwnerOrder(t *testing.T) {
	b, p := street(t)
	b.reserve("web", "10.0.0.91")
	b.reserve("shop/web/1", "10.0.0.92")
	b.reserve(macText(7), "10.0.0.93")
	b.reserve("shop-db-1", "10.0.0.94")
	b.reserve("shop/db/1", "10.0.0.95")
	for _, row := range []struct{ addr, name, want string }{
		{"", "web", "10.0.0.91"},
		{"", "shop-web-1", "10.0.0.92"},
		{"", "nobody", "10.0.0.93"},
		{"", "shop-db-1", "10.0.0.94"}, // itself, before what Compose may mean by it
		{"", "shop_db_1", "10.0.0.95"},
		{"10.0.0.93", "web", "10.0.0.93"},
		{"10.0.0.95", "shop-db-1", "10.0.0.95"},
		{"10.0.0.91", "", "10.0.0.91"}, // one who sends no name is whom the address says
		{"10.0.0.91", "nobody", ""},
		{"10.0.0.94", "shop_db_1", ""},
	} {
		o := mac(7)
		if row.name != "" {
			o = named(row.name, 7)
		}
		got, refused := b.tryTake(p, row.addr, o)
		if got != row.want {
			t.Errorf("%+v: %s %s", row, got, refused)
		}
		if got == "" {
			wantText(t, refused, inUse, row.addr)
			continue
		}
		b.give(p, got)
	}
	b.check()
}

// TestOwnerRecreated: a replica that Compose recreates keeps its address, whatever name it has for a moment, and nobody
// is lent it between (BO-2).
func TestOwnerRecreated(t *testing.T) {
	const now, then = "shop-web-1", "0123456789ab_shop-web-1"
	for _, row := range []struct {
		name  string
		steps func(b *bench, p string)
	}{
		{"Compose 2: made under another name, the old one removed, renamed, started", func(b *bench, p string) {
			b.wants(p, now, 1, "10.0.0.99")
			b.give(p, "10.0.0.99")
			b.wants(p, "sharp_knuth", 8, "10.0.0.10")
			b.wants(p, now, 2, "10.0.0.99")
		}},
		{"started under the other name when the old one has stopped", func(b *bench, p string) {
			b.wants(p, now, 1, "10.0.0.99")
			b.give(p, "10.0.0.99")
			b.wants(p, then, 2, "10.0.0.99")
			b.give(p, "10.0.0.99")
			b.wants(p, now, 2, "10.0.0.99")
		}},
		{"started under the other name while the old one runs", func(b *bench, p string) {
			b.wants(p, now, 1, "10.0.0.99")
			_, refused := b.tryTake(p, "", named(then, 2))
			wantText(b.t, refused, inUse, "10.0.0.99", now, macText(1))
			b.holds("10.0.0.99", named(now, 1))
			b.give(p, "10.0.0.99")
			b.wants(p, then, 2, "10.0.0.99")
		}},
		{"Compose 1: the old one stopped and renamed, the new one started, the old one removed",
			func(b *bench, p string) {
				b.wants(p, "shop_web_1", 1, "10.0.0.99")
				b.give(p, "10.0.0.99")
				b.wants(p, "shop_web_1", 2, "10.0.0.99")
				_, refused := b.tryTake(p, "", named("0123456789ab_shop_web_1", 1)) // somebody starts the old one again
				wantText(b.t, refused, inUse, "10.0.0.99", "shop_web_1", macText(2))
			}},
		{"from Compose 1 to Compose 2", func(b *bench, p string) {
			b.wants(p, "shop_web_1", 1, "10.0.0.99")
			b.give(p, "10.0.0.99")
			b.wants(p, now, 2, "10.0.0.99")
		}},
		{"down and up, with another Docker network", func(b *bench, p string) {
			b.wants(p, now, 1, "10.0.0.99")
			b.give(p, "10.0.0.99")
			b.give(p, "10.0.0.254")
			b.drop(p)
			b.reopen()
			p = b.planned("", nil).PoolID
			b.wants(p, "sharp_knuth", 8, "10.0.0.10")
			b.wants(p, now, 2, "10.0.0.99")
		}},
		{"scaled to three and back: each replica has its own", func(b *bench, p string) {
			b.reserve("shop/web/2", "10.0.0.98")
			b.reserve("shop/web/3", "10.0.0.97")
			b.wants(p, "shop-web-3", 3, "10.0.0.97")
			b.wants(p, "shop-web-2", 2, "10.0.0.98")
			b.wants(p, now, 1, "10.0.0.99")
			b.give(p, "10.0.0.97")
			b.give(p, "10.0.0.98")
			b.wants(p, "shop-web-4", 4, "10.0.0.10")
			b.wants(p, "shop-web-2", 5, "10.0.0.98")
		}},
	} {
		t.Run(row.name, func(t *testing.T) {
			b, p := street(t)
			b.reserve("shop/web/1", "10.0.0.99")
			row.steps(b, p)
			b.check()
		})
	}
}

// wants takes an address for a name, which must be this one.
func (b *bench) wants(pool, name string, n int, addr string) {
	b.t.Helper()
	if got := b.take(pool, "", named(name, n)); got != addr {
		b.t.Errorf("%s is given %s, not %s", name, got, addr)
	}
}

// TestOwnerRecreatedUnreserved: what nobody reserved is remembered by the name, so that a replica that is recreated has
// its address again where nobody took it.
func TestOwnerRecreatedUnreserved(t *testing.T) {
	for _, names := range [][2]string{
		{"shop-web-1", "shop-web-1"}, {"shop_web_1", "shop_web_1"}, {"shop_web_1", "shop-web-1"},
		{"0123456789ab_shop-web-1", "shop-web-1"}, {"shop-web-1", "0123456789ab_shop-web-1"},
	} {
		b, p := street(t)
		b.wants(p, "first", 1, "10.0.0.10")
		b.wants(p, names[0], 2, "10.0.0.11")
		b.give(p, "10.0.0.10")
		b.give(p, "10.0.0.11")
		b.wants(p, names[1], 3, "10.0.0.11")
		b.check()
	}
}

// TestOwnerRenamed: `docker rename web old; docker run --name web` while old lives: another address, or, where the name
// has one reserved, a refusal that names the user.
func TestOwnerRenamed(t *testing.T) {
	b, p := street(t)
	b.wants(p, "web", 1, "10.0.0.10")
	b.wants(p, "web", 2, "10.0.0.11")
	b.holds("10.0.0.10", named("web", 1)) // and old has its own
	b.give(p, "10.0.0.10")
	b.wants(p, "old", 1, "10.0.0.10") // restarted under its new name, it is known by its MAC
	b.check()

	b, p = street(t)
	b.reserve("web", "10.0.0.99")
	b.wants(p, "web", 1, "10.0.0.99")
	for range 2 {
		_, refused := b.tryTake(p, "", named("web", 2))
		wantText(t, refused, inUse, "10.0.0.99", "web", macText(1), "alpha")
	}
	b.give(p, "10.0.0.99")
	b.wants(p, "web", 2, "10.0.0.99")
	b.wants(p, "old", 1, "10.0.0.10")
	b.check()
}

// TestOwnerRandomNames: names that Docker draws use up nothing: what they had is remembered softly, and what is
// reserved is given to none of them (BO-2, BO-7).
func TestOwnerRandomNames(t *testing.T) {
	b, p := street(t)
	b.reserve("shop/web/1", "10.0.0.11")
	b.reserve("shop/db/1", "10.0.0.22")
	for round := range 20 {
		var all []string
		for n := range 6 {
			all = append(all, b.take(p, "", named(fmt.Sprintf("sharp_knuth%d", round*10+n), round*10+n+1)))
		}
		if slices.Contains(all, "10.0.0.11") || slices.Contains(all, "10.0.0.22") {
			t.Fatalf("round %d was given %v", round, all)
		}
		_, refused := b.tryTake(p, "", named("one_more", 5000))
		wantText(t, refused, string(ipam.NotEnoughCapacity))
		for _, addr := range all {
			b.give(p, addr)
		}
	}
	b.wants(p, "shop-web-1", 9001, "10.0.0.11")
	b.wants(p, "shop-db-1", 9002, "10.0.0.22")
	b.check()
}

// TestOwnerRules: rules say by the name of an endpoint which pool it takes from, and which owner it is.
func TestOwnerRules(t *testing.T) {
	type ask struct{ name, want string }
	for _, row := range []struct {
		name, rules string
		options     opts
		asks        []ask
	}{
		{"a pool by a name", `{"pattern":"web-*","pool":"web"}`, nil,
			[]ask{{"web-a", "10.0.0.20"}, {"db-a", "10.0.0.10"}, {"web", "10.0.0.11"}, {"web-b", "10.0.0.21"},
				{"web-c", "10.0.0.22"}, {"web-d", "10.0.0.23"}, {"web-e", ""}, {"db-b", "10.0.0.12"}}},
		{"a pool by an owner's path", `{"pattern":"shop/web/*","pool":"web"}`, nil,
			[]ask{{"shop-web-1", "10.0.0.20"}, {"shop_web_2", "10.0.0.21"}, {"shop-db-1", "10.0.0.10"},
				{"0123456789ab_shop-web-3", "10.0.0.22"}}},
		{"an owner", `{"pattern":"prod-*-n*","owner":"prod/*/*"}`, nil,
			[]ask{{"prod-api-n1", "10.0.0.99"}, {"prod-api-n2", "10.0.0.10"}, {"prod/api/1", ""}}},
		{"an owner and a pool", `{"pattern":"api*","owner":"prod/api/*","pool":"web"}`, nil,
			[]ask{{"api1", "10.0.0.99"}, {"api2", "10.0.0.20"}, {"other", "10.0.0.10"}}},
		{"a pool by the owner that a rule makes",
			`{"pattern":"api*","owner":"prod/api/*"},{"pattern":"prod/*","pool":"web"}`, nil,
			[]ask{{"api1", "10.0.0.99"}, {"api2", "10.0.0.20"}, {"other", "10.0.0.10"}, {"prod/api/3", "10.0.0.21"}}},
		{"its own pool before that of the owner it makes",
			`{"pattern":"api*","owner":"prod/api/*","pool":"web"},{"pattern":"prod/*","pool":"rest"}`, nil,
			[]ask{{"api2", "10.0.0.20"}, {"prod/api/3", "10.0.0.30"}}},
		{"the first that matches", `{"pattern":"web-a*","pool":"web"},{"pattern":"web-*","owner":"prod/api/1"}`, nil,
			[]ask{{"web-ax", "10.0.0.20"}, {"web-b", "10.0.0.99"}, {"web-c", ""}}},
		{"one pool of the Docker network's own",
			`{"pattern":"web-*","pool":"web"},{"pattern":"api","owner":"prod/api/1"}`, opts{"pool": "rest"},
			[]ask{{"web-a", "10.0.0.30"}, {"api", "10.0.0.99"}, {"db", "10.0.0.31"}, {"web-b", ""}}},
		{"a pool that is nowhere binds nobody", `{"pattern":"*","pool":"nowhere"}`, nil, []ask{{"web", "10.0.0.10"}}},
		{"an owner that cannot be binds nobody", `{"pattern":"web*","owner":"prod/*"}`, nil,
			[]ask{{"web", "10.0.0.10"}, {"web/", "10.0.0.11"}, {"web//", "10.0.0.12"}}},
	} {
		t.Run(row.name, func(t *testing.T) {
			b, p := street(t)
			b.edit("pool.add", `{"network":"front","range":"10.0.0.30+2","name":"rest"}`)
			b.drop(p)
			b.edit("network.modify", `{"network":"front","owner_rules":[`+row.rules+`]}`)
			b.reserve("prod/api/1", "10.0.0.99")
			b.reopen()
			p = b.planned("", row.options).PoolID
			for n, one := range row.asks {
				got, refused := b.tryTake(p, "", named(one.name, n+1))
				if got != one.want {
					t.Errorf("%s is given %q, not %q: %s", one.name, got, one.want, refused)
				}
				if got == "" && !strings.HasPrefix(refused, "NetworkReservation") {
					t.Errorf("%s: %s", one.name, refused)
				}
			}
			b.check()
		})
	}
}

// TestOwnerRulesDualStack: a rule binds the families that have a pool of its name, and no other (LN-8).
func TestOwnerRulesDualStack(t *testing.T) {
	b := newBench(t)
	b.edit("network.create", `{"name":"front","subnets":[{"cidr":"10.0.0.0/24","gateway":"10.0.0.254"},{"cidr":"fd00::/64","gateway":"fd00::ffff"}],
		"owner_rules":[{"pattern":"web-*","pool":"web"},{"pattern":"six-*","pool":"six"}]}`)
	b.edit("pool.add", `{"network":"front","range":"10.0.0.10+4"}`)
	b.edit("pool.add", `{"network":"front","range":"10.0.0.20+1","name":"web"}`)
	b.edit("pool.add", `{"network":"front","range":"fd00::10+4"}`)
	b.edit("pool.add", `{"network":"front","range":"fd00::20+1","name":"six"}`)
	four, six := b.planned("10.0.0.0/24", nil).PoolID, b.planned("fd00::/64", nil).PoolID
	for n, row := range [][3]string{
		{"web-1", "10.0.0.20", "fd00::10"},
		{"six-1", "10.0.0.10", "fd00::20"},
		{"web-2", "", "fd00::11"}, // its pool is full, and it is given none of another
		{"six-2", "10.0.0.11", ""},
		{"db", "10.0.0.12", "fd00::12"},
	} {
		got4, refused4 := b.tryTake(four, "", named(row[0], n+1))
		got6, refused6 := b.tryTake(six, "", named(row[0], n+1))
		if got4 != row[1] || got6 != row[2] {
			t.Errorf("%s is given %q and %q: %s %s", row[0], got4, got6, refused4, refused6)
		}
	}
	b.check()
}

// TestOwnerManyAtOnce: however many ask at once, those who own something get it, and the others nothing of theirs
// (GA-22, BO-2).
func TestOwnerManyAtOnce(t *testing.T) {
	const strangers, owners, size = 64, 16, 48
	b := newBench(t)
	b.edit("network.create", `{"name":"front","subnets":[{"cidr":"10.0.0.0/24","gateway":"10.0.0.254"}]}`)
	b.edit("pool.add", fmt.Sprintf(`{"network":"front","range":"10.0.0.1+%d"}`, size))
	own := map[string]string{}
	for n := range owners {
		addr := fmt.Sprintf("10.0.0.%d", 3*n+2)
		b.reserve(fmt.Sprintf("shop/web/%d", n+1), addr)
		own[fmt.Sprintf("shop-web-%d", n+1)] = addr
	}
	p := b.planned("", nil).PoolID
	var wg sync.WaitGroup
	var mu sync.Mutex
	given := map[string]string{} // by address
	refusals := 0
	ask := func(name string, n int) {
		got, refused := b.tryTake(p, "", named(name, n))
		mu.Lock()
		defer mu.Unlock()
		if refused != "" {
			if !strings.HasPrefix(refused, string(ipam.NotEnoughCapacity)) {
				t.Errorf("%s: %s", name, refused)
			}
			refusals++
			return
		}
		if other := given[got]; other != "" {
			t.Errorf("%s was given to %s and %s", got, other, name)
		}
		given[got] = name
	}
	for n := range strangers {
		wg.Go(func() { ask(fmt.Sprintf("sharp_knuth%d", n), n+1) })
		if n < owners/2 {
			wg.Go(func() { ask(fmt.Sprintf("shop-web-%d", n+1), n+1000) })
		}
	}
	wg.Wait()
	if want := strangers - (size - owners); refusals != want {
		t.Errorf("%d were refused, not %d", refusals, want)
	}
	for n := range owners {
		name := fmt.Sprintf("shop-web-%d", n+1)
		if holder := given[own[name]]; n < owners/2 && holder != name || n >= owners/2 && holder != "" {
			t.Errorf("%s of %s was given to %q", own[name], name, holder)
		}
	}
	for n := owners / 2; n < owners; n++ {
		name := fmt.Sprintf("shop-web-%d", n+1)
		b.wants(p, name, n+1000, own[name])
	}
	if _, err := b.service.Network(context.Background(), "front"); err != nil {
		t.Fatal(err)
	}
	b.check()
}
