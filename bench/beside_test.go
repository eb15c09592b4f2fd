package bench

import (
	"context"
	"fmt"
	"io"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/sirupsen/logrus"

	"berth/internal/docker"
	"berth/internal/ipam"
	"berth/internal/neighbours"
)

// BenchmarkBeside compares requests of a service that does additional work with those of a plain service.
func BenchmarkBeside(b *testing.B) {
	for _, one := range []struct {
		name    string
		callers []int
		open    func(b *testing.B, dir string, more bool) call
	}{
		{"rules", []int{1, 16}, withRules}, {"witness", []int{1, 16}, withWitness}, {"probes", []int{1, 16}, withProbes},
		{"elastic", []int{1, 16}, withElastic}, {"hanging", []int{64}, withHanging},
	} {
		b.Run(one.name, func(b *testing.B) {
			eachMedium(b, func(b *testing.B, dir string) {
				with, without := one.open(b, newDir(b, dir), true), one.open(b, newDir(b, dir), false)
				compareBy(b, timeRatio, one.callers, with, without)
			})
		})
	}
}

// withRules has eight owner rules on the network, the last of which matches. One address is reserved, so the
// service looks up the owner of each name.
func withRules(b *testing.B, dir string, more bool) call {
	rules := ""
	if more {
		for i := range 7 {
			rules += fmt.Sprintf("{pattern: other%d-*, owner: other/*}, ", i)
		}
		rules += "{pattern: shop-web-*, owner: shop/web/*, pool: web}"
	}
	return planned(b, openService(b, dir, ipam.Known{}), "front", "networks: [{name: front, owner_rules: ["+rules+`],
  subnets: [{cidr: 10.0.0.0/8, pools: [{range: 10.0.0.0/8, name: web}]}],
  reservations: [{owner: shop/db/1, address: 10.255.0.1}]}]`).named
}

// withWitness has a witness that knows 8 containers that have just become idle, and 1,000 stopped ones. Every
// hundredth stopped one requests an address in its configuration.
func withWitness(b *testing.B, dir string, more bool) call {
	roster := docker.NewRoster(nil)
	now := time.Now()
	roster.Hear(&ipam.EngineNews{At: now, Begins: true})
	view := &ipam.EngineView{Taken: now, Networks: []ipam.EngineNetwork{{ID: "n", Name: "front", Driver: "berth",
		Subnets: []ipam.EngineSubnet{{CIDR: wide.CIDR}}}}}
	for i := range 1008 {
		c := ipam.EngineContainer{ID: fmt.Sprint(i), Name: fmt.Sprint("c", i), State: "exited",
			Endpoints: []ipam.EngineEndpoint{{Network: "n"}}}
		if i%100 == 99 {
			c.Endpoints[0].Wanted = []netip.Addr{netip.AddrFrom4([4]byte{10, 0, 1, byte(i / 100)})}
		}
		view.Containers = append(view.Containers, c)
	}
	roster.Show(view)
	for _, c := range view.Containers[:8] {
		roster.Hear(&ipam.EngineNews{At: now, Event: &ipam.EngineEvent{Action: "die", Container: c}})
	}
	known := ipam.Known{}
	if more {
		known = roster.Known()
	}
	return poolOf(b, openService(b, dir, known), wide).nameless
}

// withProbes probes the addresses that are next in turn. Each answer takes 200 ms. One address of 256 is in use,
// and is then excluded.
func withProbes(b *testing.B, dir string, more bool) call {
	probe := ""
	if more {
		probe = "probe: eth0, "
	}
	t := planned(b, openService(b, dir, ipam.Known{}), "front",
		"networks: [{name: front, "+probe+"subnets: [{cidr: 10.0.0.0/8, pool: true}]}]")
	quiet := logrus.New()
	quiet.SetOutput(io.Discard)
	ask := func(ctx context.Context, ask ipam.LANAsk) (got ipam.LANAnswer, err error) {
		wait(ctx, 200*time.Millisecond)
		for _, addr := range ask.Addresses {
			if addr.As4()[3] == 77 {
				got.Answered = append(got.Answered, ipam.LANNeighbour{Address: addr, MAC: ipam.MAC{2, 5: 77}})
			}
		}
		return got, ctx.Err()
	}
	p := neighbours.New(neighbours.Config{Host: "bench", ToProbe: t.ToProbe, Edit: t.Edit, Ask: ask,
		Log: logrus.NewEntry(quiet)})
	inBackground(b, func(ctx context.Context) { _ = p.Run(ctx) })
	return t.nameless
}

// withElastic has 10,000 reservations, each with an elastic address, and a listening edge.
func withElastic(b *testing.B, dir string, more bool) call {
	const mapped = 10_000
	var reserved, elastic strings.Builder
	guest, address := netip.MustParseAddr("10.200.0.0"), netip.MustParseAddr("198.18.0.0")
	for i := range mapped {
		guest, address = guest.Next(), address.Next()
		fmt.Fprintf(&reserved, "  - {owner: shop/web/%d, address: %s}\n", i, guest)
		fmt.Fprintf(&elastic, "  - {address: %s, instance: shop/web/%d, network: front, guest: %s}\n", address, i, guest)
	}
	document := "networks:\n- name: front\n  elastic: on\n  subnets: [{cidr: 10.0.0.0/8, pool: true}]\n  reservations:\n" +
		reserved.String()
	if more {
		document += "elastic:\n  ranges: [{range: 198.18.0.0/15}]\n  addresses:\n" + elastic.String()
	}
	t := planned(b, openService(b, dir, ipam.Known{}), "front", document)
	if more {
		knows := make(chan int, 1)
		inBackground(b, func(ctx context.Context) {
			for news := range t.EdgeNews(ctx, false) {
				if news.Whole {
					knows <- len(news.Set)
				}
			}
		})
		if n := <-knows; n != mapped {
			b.Fatalf("the edge received %d addresses", n)
		}
	}
	return t.coming
}

// withHanging has a caller on another network whose requests wait for a silent engine.
func withHanging(b *testing.B, dir string, more bool) call {
	s := openService(b, dir, ipam.Known{Ask: func(ctx context.Context, _ ipam.Question) ipam.Hint {
		wait(ctx, 130*time.Millisecond)
		return ipam.Hint{}
	}})
	if more {
		other := poolOf(b, s, ipam.PoolRequest{Space: ipam.LocalSpace, CIDR: netip.MustParsePrefix("172.16.0.0/12")})
		inBackground(b, func(ctx context.Context) {
			for ctx.Err() == nil && other.nameless(0) == nil {
			}
		})
	}
	return poolOf(b, s, wide).named
}

func wait(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// inBackground runs a function until the benchmark ends, and then waits for it.
func inBackground(b *testing.B, run func(context.Context)) {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		run(ctx)
	}()
	b.Cleanup(func() { cancel(); <-ended })
}
