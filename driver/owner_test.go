package driver

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
)

// reserve reserves an address in front for an owner.
func (b *bench) reserve(owner, addr string) {
	b.t.Helper()
	b.edit("reservation.add",
		fmt.Sprintf(`{"network":"front","owner":%q,"wishes":[{"slot":0,"address":%q}]}`, owner, addr))
}

// wants takes an address for a name, and checks which one it is.
func (b *bench) wants(pool, name string, n int, addr string) {
	b.t.Helper()
	if got := b.take(pool, "", named(name, n)); got != addr {
		b.t.Errorf("%s is given %s, not %s", name, got, addr)
	}
}

// TestOwnerManyAtOnce tests concurrent requests: each owner gets its own address, and nobody else does (GA-22, BO-2).
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
			if !strings.HasPrefix(refused, "no address is free in ") {
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
