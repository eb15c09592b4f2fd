package rollout

import (
	"maps"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"berth/internal/deploy"
	"berth/internal/deploy/scene"
)

// frontNetwork is the network of the tests as the files describe it and as the engine has it, which is the same.
func frontNetwork() NetworkState {
	return NetworkState{There: true,
		Wants: deploy.Definition{Network: "shop_front", Services: []string{"db", "web"}, Driver: "bridge",
			Options: map[string]string{"mtu": "1400"}, IPAM: "berth", IPAMOptions: map[string]string{"network": "front"},
			Pools: []deploy.Pool{{Subnet: "10.0.0.1/24"}, {Gateway: "fd00::1"}}},
		Has: scene.Network{ID: "n1", Name: "shop_front", Project: "shop", Driver: "bridge",
			Options: map[string]string{"mtu": "1400", "com.docker.network.enable_ipv4": "true"}, IPAM: "berth",
			IPAMOptions: map[string]string{"network": "front"},
			Pools: []scene.Pool{{Subnet: netip.MustParsePrefix("10.0.0.0/24"),
				Gateway: netip.MustParseAddr("10.0.0.1")}},
			On: []scene.Guest{{ID: "web1", Name: "shop-web-1", Project: "shop"},
				{ID: "web2", Name: "shop-web-2", Project: "shop"}}}}
}

// TestDrawNetwork: a network that the files describe otherwise is made anew, and with it all of the project's
// containers on it; not where somebody else is on it, and not where Compose would leave it as it is.
func TestDrawNetwork(t *testing.T) {
	yes := true
	const anew = "keep:shop/db/1 recreate:shop/web/1 recreate:shop/web/2"
	const kept = "keep:shop/db/1 keep:shop/web/1 keep:shop/web/2"
	for what, c := range map[string]struct {
		change  func(n *NetworkState)
		want    string // the steps, or the refusal
		because string
	}{
		"the same":   {func(*NetworkState) {}, kept, ""},
		"not there":  {func(n *NetworkState) { n.There, n.Has = false, scene.Network{} }, kept, ""},
		"somebody's": {func(n *NetworkState) { n.Has.Project, n.Wants.Driver = "", "macvlan" }, kept, ""},
		"another's":  {func(n *NetworkState) { n.Has.Project, n.Wants.Driver = "blog", "macvlan" }, kept, ""},
		"its driver": {func(n *NetworkState) { n.Wants.Driver = "macvlan" }, anew, "its driver changes bridge -> macvlan"},
		"its IPAM": {func(n *NetworkState) { n.Wants.IPAM = "default" }, anew,
			"its IPAM driver changes berth -> default"},
		"internal":     {func(n *NetworkState) { n.Wants.Internal = true }, anew, "its internal changes false -> true"},
		"IPv6":         {func(n *NetworkState) { n.Wants.IPv6 = &yes }, anew, "its enable_ipv6 changes false -> true"},
		"IPv6, unsaid": {func(n *NetworkState) { n.Has.IPv6 = true }, kept, ""},
		"an option":    {func(n *NetworkState) { n.Wants.Options = nil }, anew, "its option mtu changes 1400 -> none"},
		"an option of the IPAM": {func(n *NetworkState) { n.Wants.IPAMOptions["network"] = "back" }, anew,
			"its IPAM option network changes front -> back"},
		"options that Compose dropped": {func(n *NetworkState) { n.Has.IPAMOptions = nil }, kept, ""},
		"a label": {func(n *NetworkState) { n.Has.Hashed, n.Wants.Labels = true, map[string]string{"a": "b"} }, anew,
			"its label a changes none -> b"},
		"a label, of 1.29": {func(n *NetworkState) { n.Wants.Labels = map[string]string{"a": "b"} }, kept, ""},
		"its subnet": {func(n *NetworkState) { n.Wants.Pools[0].Subnet = "10.0.1.0/24" }, anew,
			"its subnet changes 10.0.0.0/24 -> 10.0.1.0/24"},
		"a subnet besides": {func(n *NetworkState) { n.Wants.Pools[1].Subnet = "fd00::/64" }, anew,
			"its subnet changes none -> fd00::/64"},
		"no subnet said": {func(n *NetworkState) { n.Wants.Pools = nil }, kept, ""},
		"its range": {func(n *NetworkState) { n.Wants.Pools[0].Range = "10.0.0.64/26" }, anew,
			"the ip_range of its subnet 10.0.0.0/24 changes none -> 10.0.0.64/26"},
		"its gateway": {func(n *NetworkState) { n.Wants.Pools[0].Gateway = "10.0.0.254" }, anew,
			"the gateway of its subnet 10.0.0.0/24 changes 10.0.0.1 -> 10.0.0.254"},
		"its gateway, as it is": {func(n *NetworkState) { n.Wants.Pools[0].Gateway = "10.0.0.1" }, kept, ""},
		"somebody else is on it": {func(n *NetworkState) {
			n.Wants.Internal = true
			n.Has.On = append(n.Has.On, scene.Guest{ID: "x", Name: "probe"})
		}, "the container probe is on it, which is not of this project", ""},
		"a service is on it that was not": {func(n *NetworkState) { n.Wants.Network = "shop_back" },
			"recreate:shop/db/1 recreate:shop/web/1 recreate:shop/web/2", "it is not on the network shop_back"},
	} {
		t.Run(what, func(t *testing.T) {
			in := wanted()
			in.Containers = asWanted()
			n := frontNetwork()
			c.change(&n)
			in.Networks = []NetworkState{n}
			p, err := Draw(in)
			switch {
			case err != nil && !strings.Contains(err.Error(), c.want):
				t.Fatalf("refused: %v", err)
			case err != nil:
				return
			case steps(p) != c.want:
				t.Errorf("the plan is %q, and was to be %q", steps(p), c.want)
			}
			if why := p.Services[1].Instances[0].Why; c.because == "" && len(p.Networks) > 0 ||
				c.because != "" && !strings.Contains(strings.Join(why, "; "), c.because) {
				t.Errorf("networks are recreated: %+v, and the container because of %v", p.Networks, why)
			}
		})
	}
}

// TestRunSameAddresses: what is made anew because of another name server, or of another gateway of its network, has the
// addresses that it had (BO-14).
func TestRunSameAddresses(t *testing.T) {
	s := newShop(t)
	gateway := func(addr string) {
		s.onNetwork("10.0.0.0/24")
		s.network.Pools[0].Gateway, s.small.gate = addr, addr
	}
	gateway("10.0.0.1")
	s.must(s.deploys())
	has := func() map[string]string {
		all := map[string]string{}
		for _, b := range s.small.all {
			all[b.title()] = b.Addresses["front"]
		}
		return all
	}
	before := has()
	if len(before) != 4 || before["web/1"] != s.reserved["shop/web/1"].String() {
		t.Fatalf("they are made with %v", before)
	}
	for what, c := range map[string]struct {
		change func()
		anew   bool // the network
	}{
		"dns":     {func() { s.hashes["web"], s.hashes["db"] = "w2", "d2" }, false},
		"gateway": {func() { gateway("10.0.0.254") }, true},
	} {
		c.change()
		s.small.takes()
		s.must(s.deploys())
		asked := s.small.takes()
		if !slices.Contains(asked, "make web/2") || slices.Contains(asked, "no network 10.0.0.0/24") != c.anew {
			t.Errorf("%s: it was asked for %q", what, asked)
		}
		if slices.Contains(asked, "release shop/web/1") || slices.Contains(asked, "release shop/db/1") {
			t.Errorf("%s: what is reserved was released: %q", what, asked)
		}
		if now := has(); !maps.Equal(now, before) {
			t.Errorf("%s: they had %v, and have %v", what, before, now)
		}
		if s.plan().Changes() {
			t.Errorf("%s: the next deploy does something again", what)
		}
	}
}

// A network is made anew with the whole of its project alone.
func TestTaskNetwork(t *testing.T) {
	for _, c := range []struct {
		task Task
		want string
	}{
		{Task{Do: Recreate}, "recreate:shop/db/1 recreate:shop/web/1 recreate:shop/web/2"},
		{Task{Do: Stop}, "stop:shop/db/1 stop:shop/web/1 stop:shop/web/2"},
		{Task{Do: Start}, "for that the project is deployed as a whole"},
		{Task{Recreate, "db", 1}, "for that the project is deployed as a whole"},
	} {
		in := wanted()
		in.Containers, in.Task = asWanted(), c.task
		n := frontNetwork()
		n.Wants.Internal = true
		in.Networks = []NetworkState{n}
		p, err := Draw(in)
		if err == nil && steps(p) != c.want || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v, %v", c.task, p, err)
		}
		if err == nil && len(p.Networks) > 0 != (c.task.Do == Recreate) {
			t.Errorf("%+v makes %v anew", c.task, p.Networks)
		}
	}
}

// TestMovedNetworks: what was agreed upon says which networks are made anew.
func TestMovedNetworks(t *testing.T) {
	draw := func(change func(n *NetworkState)) *Plan {
		in := wanted()
		in.Containers = asWanted()
		n := frontNetwork()
		change(&n)
		in.Networks = []NetworkState{n}
		p, err := Draw(in)
		fine(t, err)
		return p
	}
	same, internal := draw(func(*NetworkState) {}), draw(func(n *NetworkState) { n.Wants.Internal = true })
	for _, c := range []struct {
		before, now *Plan
		want        string
	}{
		{same, same, ""}, {internal, internal, ""},
		{same, internal, "the network shop_front is recreated now: its internal changes false -> true"},
		{internal, same, "the network shop_front is not recreated any more"},
	} {
		if got, _, _ := strings.Cut(strings.Join(c.before.Moved(c.now), "; "), "; what becomes"); got != c.want {
			t.Errorf("moved is %q, and was to be %q", got, c.want)
		}
	}
}

// TestDrawNetworkLasting: a network is not made anew under a container of the project that the plan leaves as it is.
func TestDrawNetworkLasting(t *testing.T) {
	const anew = "recreate:shop/web/1 recreate:shop/web/2"
	probe := container("web", 1, "w1", "sha256:ee", "10.0.0.30")
	probe.ID, probe.Name, probe.OneOff = "probe", "shop-web-run-1", true
	ended := probe
	ended.State, ended.Name = "exited", "shop-web-run-2"
	made := probe
	made.State = "created"
	surplus := container("web", 5, "w1", "sha256:ee", "10.0.0.15")
	worker := container("migrate", 1, "m1", "sha256:ee", "10.0.0.16")
	successor := beside(container("web", 1, "w1", "sha256:ee", "10.0.0.11"), "w1", "10.0.0.11")
	for what, c := range map[string]struct {
		more   scene.Container
		change func(in *Inputs, n *NetworkState)
		want   string // the steps, or the refusal
	}{
		"of compose run": {probe, nil, "the network shop_front is recreated: its internal changes false -> true, and " +
			"the container shop-web-run-1 is on it, which is left as it is; remove it, or take it off the network"},
		"of compose run, made":  {made, nil, "the container shop-web-run-1 is on it, which is left as it is"},
		"of compose run, ended": {ended, nil, "delete:shop-web-run-2 keep:shop/db/1 " + anew},
		"more than wanted":      {surplus, nil, "delete:shop/web/5 keep:shop/db/1 " + anew},
		"more than wanted, which a task leaves": {surplus, func(in *Inputs, _ *NetworkState) { in.Task.Do = Recreate },
			"the container shop-web-5 is on it, which is left as it is"},
		"a worker that is at it": {worker, nil, "the container shop-migrate-1 is on it, which is left as it is"},
		"a worker that was made otherwise": {worker, func(in *Inputs, _ *NetworkState) { in.Hashes["migrate"] = "m2" },
			"keep:shop/db/1 " + anew + " run:shop/migrate/1"},
		"a successor alone": {successor, func(in *Inputs, n *NetworkState) {
			in.Services[1].Update.StartFirst = true
			in.Containers[1].On, n.Has.On = nil, nil
		}, "delete:shop/web/1 keep:shop/db/1 recreate:shop/web/1 keep:shop/web/2"},
	} {
		t.Run(what, func(t *testing.T) {
			in := wanted()
			if c.more.Service == "migrate" {
				in.Services = append(in.Services, deploy.Service{Name: "migrate", Image: "web:1", Worker: true,
					Instances: []deploy.Instance{{Owner: "shop/migrate/1", Number: 1}}})
				in.Hashes["migrate"] = "m1"
			}
			in.Containers = append(asWanted(), c.more)
			n := frontNetwork()
			n.Wants.Internal = true
			if c.change != nil {
				c.change(&in, &n)
			}
			n.Has.On = append(n.Has.On, scene.Guest{ID: c.more.ID, Name: c.more.Name, Project: "shop"})
			in.Networks = []NetworkState{n}
			p, err := Draw(in)
			if err == nil && steps(p) != c.want || err != nil && !strings.Contains(err.Error(), c.want) {
				t.Errorf("the plan is %s, %v; it was to be %q", steps(p), err, c.want)
			}
		})
	}
}
