package crash

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"path/filepath"
	"slices"
	"testing"

	"berth/internal/admin/client"
	"berth/internal/docker/dockertest"
	"berth/internal/ipam"
	"berth/test/lab"

	api "github.com/docker/go-plugins-helpers/ipam"
)

var everyPair = flag.Bool("every-pair", false, "TestAbsence tries all pairs, instead of some")

const optName = "com.docker.network.endpoint.name"

// absence is a daemon that ends and comes back, on an engine that sends the names of containers. Things happen to the
// containers meanwhile.
type absence struct {
	*place
	engine *dockertest.Engine
	pool   string
	up     *daemon // nil: the daemon is away
	made   int
	all    []*box
}

// box is a container.
type box struct {
	id, name string
	wants    string // --ip; empty: none
	had, has string // the address of its last run, and of this one; empty: none
	state    string
	leased   string // the name under which it had its last lease; empty: it had none
	stranger bool   // neither its id nor its name is in the records, so that it waits like anybody else
}

// TestAbsence: the daemon ends, in order or not, and comes back. Meanwhile things happen to the containers, in all
// pairs, with one container and with eight. Each gets its own address at its next start, and no address has two.
func TestAbsence(t *testing.T) {
	type pair struct {
		first, second int
		containers    int
		killed        bool
	}
	var pairs []pair
	for first := range happenings {
		for second := range happenings {
			for _, n := range []int{1, 8} {
				pairs = append(pairs, pair{first, second, n, false}, pair{first, second, n, true})
			}
		}
	}
	if !*everyPair {
		rand.Shuffle(len(pairs), func(i, j int) { pairs[i], pairs[j] = pairs[j], pairs[i] })
		pairs = pairs[:sample(4)*4]
	}
	eachStore(t, func(t *testing.T, p *place) {
		a := newAbsence(p)
		for _, it := range pairs {
			first, second := happenings[it.first], happenings[it.second]
			a.round(it.containers, it.killed, first.do, second.do)
			if t.Failed() {
				t.Fatalf("with %d containers, killed %v, %s, %s; the daemon's log:\n%s", it.containers, it.killed,
					first.name, second.name, a.up.Log())
			}
		}
		a.up.fsck()
		a.up.Stop(t)
	})
}

// TestAbsentOfEngine: a daemon comes back beside another engine, which has none of the containers. None of its leases
// ends, and no stranger gets their addresses.
func TestAbsentOfEngine(t *testing.T) {
	eachStore(t, func(t *testing.T, p *place) {
		a := newAbsence(p)
		box := a.create("web")
		lab.Must(t, a.start(box))
		a.up.Stop(t)
		a.engine.Lock()
		a.engine.ID = "OTHER"
		a.engine.Unlock()
		a.engine.Change(func(v *ipam.EngineView) { v.Networks, v.Containers = nil, nil })
		a.up = a.place.start()
		a.refuses("stranger", box.has)
		a.up.fsck()
		a.up.Stop(t)
	})
}

func newAbsence(p *place) *absence {
	a := &absence{place: p, engine: dockertest.At(p.t, filepath.Join(p.dir, "docker.sock"))}
	a.engine.Release, a.engine.API, a.engine.Inspects = "29.8.0", 54, true
	a.engine.Start()
	p.t.Cleanup(a.engine.Stop)
	p.flags = append(p.flags, "--docker-host", a.engine.URL())
	a.up = p.start()
	subnet := netip.MustParsePrefix("10.8.0.0/24")
	r, err := p.call("RequestPool", api.RequestPoolRequest{AddressSpace: "local", Pool: subnet.String(),
		Options: map[string]string{"space": p.space, "quarantine": "0s"}})
	lab.Must(p.t, err)
	a.pool = r.PoolID
	a.engine.Set(ipam.EngineView{Networks: []ipam.EngineNetwork{{ID: "id-front", Name: "front", Driver: "berth",
		Options: map[string]string{"space": p.space}, Subnets: []ipam.EngineSubnet{{CIDR: subnet}}}}})
	return a
}

// round runs containers, lets two things happen to each while the daemon is away, and starts what does not run.
func (a *absence) round(containers int, killed bool, happens ...func(*absence, *box)) {
	a.t.Helper()
	for i := range containers {
		b := a.create(fmt.Sprint("c", i))
		if i%2 == 1 {
			b.wants = fmt.Sprintf("10.8.0.%d", 100+i)
		}
		lab.Must(a.t, a.start(b))
	}
	a.knows()
	if killed {
		a.up.Kill()
	} else {
		a.up.Stop(a.t)
	}
	a.up = nil
	for _, do := range happens {
		for _, b := range slices.Clone(a.all) {
			do(a, b)
		}
	}
	a.up = a.place.start()
	a.comesTo()
	a.clear()
}

// clear removes the containers, and ends the leases of those that were removed while the daemon was away.
func (a *absence) clear() {
	a.t.Helper()
	for _, b := range slices.Clone(a.all) {
		a.remove(b)
	}
	for _, l := range a.leases() {
		if l.Kind != ipam.Gateway {
			_, err := a.call("ReleaseAddress", api.ReleaseAddressRequest{PoolID: a.pool, Address: l.Address.String()})
			lab.Check(a.t, err)
		}
	}
}

func (a *absence) leases() []ipam.LeaseInfo {
	a.t.Helper()
	c := client.New(a.admin())
	defer c.Close()
	all, err := c.Leases(a.t.Context(), ipam.LeaseFilter{})
	lab.Must(a.t, err)
	return all
}

// knows waits until the daemon knows the container of each lease. Without that, a name proves nothing for some seconds.
func (a *absence) knows() {
	a.t.Helper()
	lab.Await(a.t, patience, func() error {
		all := a.leases()
		for _, b := range a.all {
			if !slices.ContainsFunc(all, func(l ipam.LeaseInfo) bool {
				return l.Address.String() == b.has && l.Container == b.id
			}) {
				return fmt.Errorf("%s (%s) with %s is not in %+v", b.name, b.id, b.has, all)
			}
		}
		return nil
	})
}

// comesTo checks that nobody gets the address of a running container, and that each other container gets its own.
func (a *absence) comesTo() {
	a.t.Helper()
	given := a.create("newcomer")
	if err := a.start(given); err != nil {
		a.t.Error(err)
	}
	known := slices.DeleteFunc(slices.Clone(a.all), func(b *box) bool { return b.stranger })
	for _, b := range known {
		if b.has == "" {
			if err := a.start(b); err != nil {
				a.t.Errorf("%s is refused: %v", b.name, err)
				continue
			}
			if b.had != "" && b.has != b.had {
				a.t.Errorf("%s had %s, and has %s", b.name, b.had, b.has)
			}
		}
		a.refuses("stranger", b.has)
	}
	has := map[string]string{}
	for _, b := range known {
		if other := has[b.has]; other != "" {
			a.t.Errorf("DOUBLED: %s and %s have %s", other, b.name, b.has)
		}
		has[b.has] = b.name
	}
}

// create makes a container without starting it.
func (a *absence) create(name string) *box {
	a.made++
	b := &box{id: fmt.Sprintf("%012d", a.made), name: name, state: "created"}
	a.all = append(a.all, b)
	a.changed("create", b)
	return b
}

// start starts a container. Without the daemon, Docker refuses to.
func (a *absence) start(b *box) error {
	if a.up == nil {
		return nil
	}
	r, err := a.ask(b.name, b.wants)
	if err != nil {
		return err
	}
	b.has, b.state, b.leased = netip.MustParsePrefix(r.Address).Addr().String(), "running", b.name
	a.changed("start", b)
	return nil
}

func (a *absence) ask(name, address string) (reply, error) {
	return a.call("RequestAddress", api.RequestAddressRequest{PoolID: a.pool, Address: address,
		Options: map[string]string{optName: name}})
}

// refuses checks that a container without a lease does not get a certain address.
func (a *absence) refuses(name, address string) {
	a.t.Helper()
	if _, err := a.ask(name, address); err == nil {
		a.t.Errorf("DOUBLED: %s got %s of another container", name, address)
	}
}

// end ends a container. If the daemon is away, Docker gives up to release its address.
func (a *absence) end(b *box) {
	if b.has != "" {
		if a.up != nil {
			_, err := a.call("ReleaseAddress", api.ReleaseAddressRequest{PoolID: a.pool, Address: b.has})
			lab.Check(a.t, err)
		}
		b.had, b.has = b.has, ""
	}
	b.state = "exited"
	a.changed("die", b)
}

func (a *absence) remove(b *box) {
	a.end(b)
	a.all = slices.DeleteFunc(a.all, func(other *box) bool { return other == b })
	a.changed("destroy", b)
}

// changed shows on the engine what runs, and sends an event.
func (a *absence) changed(action string, b *box) {
	a.engine.Change(func(view *ipam.EngineView) {
		view.Containers = nil
		for _, b := range a.all {
			ep := ipam.EngineEndpoint{Network: "id-front"}
			if b.wants != "" {
				ep.Wanted = []netip.Addr{netip.MustParseAddr(b.wants)}
			}
			if b.has != "" {
				ep.ID, ep.Addresses = "end-"+b.id, []netip.Addr{netip.MustParseAddr(b.has)}
			}
			view.Containers = append(view.Containers, ipam.EngineContainer{ID: b.id, Name: b.name, State: b.state,
				Endpoints: []ipam.EngineEndpoint{ep}})
		}
	})
	a.engine.Tell(action, b.id, 0, dockertest.Object{"name": b.name})
}

// happenings are what can happen to a container while the daemon is away.
var happenings = []struct {
	name string
	do   func(*absence, *box)
}{
	{"nothing", func(*absence, *box) {}},
	{"stop", (*absence).end},
	{"start, which fails", func(a *absence, b *box) {
		a.end(b)
		_ = a.start(b)
	}},
	{"pause", func(a *absence, b *box) {
		if b.has != "" {
			b.state = "paused"
			a.changed("pause", b)
		}
	}},
	{"remove", (*absence).remove},
	{"rename", func(a *absence, b *box) {
		b.name += "-old"
		b.stranger = b.stranger || b.leased == ""
		a.changed("rename", b)
	}},
	{"recreate", func(a *absence, b *box) {
		a.remove(b)
		next := a.create(b.name)
		next.wants, next.had = b.wants, b.had
		next.stranger = b.stranger || b.leased != "" && b.leased != b.name
	}},
}
