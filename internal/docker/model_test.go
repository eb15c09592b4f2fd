package docker

import (
	"context"
	"fmt"
	"net/netip"
	"os"
	"slices"
	"testing"
	"time"

	"berth/internal/ipam"

	"pgregory.net/rapid"
)

// machine starts and ends containers, some unseen by Berth. It keeps its own list of each address's containers and
// lease holder.
type machine struct {
	*harness
	w    *Witness
	has  map[netip.Addr][]string // names of containers in the engine
	held map[netip.Addr]string   // the container that an address is leased to
	made int
}

// TestModel: a check finds exactly the differences in the machine's lists. By its second view what runs has a lease.
// After a repair only addresses of two containers are still wrong.
func TestModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		dir, err := os.MkdirTemp("", "berth-witness")
		must(t, err)
		defer os.RemoveAll(dir)
		h := newHarness(t, dir)
		defer h.close()
		h.network("front", "10.8.0.0/28")
		m := &machine{harness: h, w: h.witness(nil, nil), has: map[netip.Addr][]string{}, held: map[netip.Addr]string{}}
		t.Repeat(map[string]func(*rapid.T){
			"start":  m.start,
			"start2": m.start, // makes starts more frequent
			"stop":   func(t *rapid.T) { m.end(t, true, true) },
			"crash":  func(t *rapid.T) { m.end(t, true, false) },
			"lose":   func(t *rapid.T) { m.end(t, false, true) },
			"check":  m.compare,
			"repair": m.repair,
		})
	})
}

// start runs a container if an address is free.
func (m *machine) start(t *rapid.T) {
	m.clock.wait(time.Second)
	m.number++
	m.made++
	got, err := m.service.RequestAddress(context.Background(),
		ipam.AddressRequest{Pool: m.pools["front"], MAC: macN(m.number)})
	if err != nil {
		t.Skip("the pool is full")
	}
	name := fmt.Sprintf("c%d", m.made)
	m.appear(name, "front", got.Addr())
	m.has[got.Addr()] = append(m.has[got.Addr()], name)
	m.held[got.Addr()] = name
}

// end removes a container, its lease, or both.
func (m *machine) end(t *rapid.T, container, lease bool) {
	if len(m.view.Containers) == 0 {
		t.Skip("nothing runs")
	}
	m.clock.wait(time.Second)
	c := rapid.SampledFrom(m.view.Containers).Draw(t, "container")
	addr := c.Endpoints[0].Addresses[0]
	if container {
		m.vanish(c.Name)
		m.has[addr] = slices.DeleteFunc(m.has[addr], func(name string) bool { return name == c.Name })
	}
	if lease {
		m.release("front", addr)
		delete(m.held, addr)
	}
}

// wrong lists what a check must find.
func (m *machine) wrong() (all []string) {
	for addr := netip.MustParseAddr("10.8.0.2"); addr != netip.MustParseAddr("10.8.0.15"); addr = addr.Next() {
		has, holder := m.has[addr], m.held[addr]
		switch {
		case len(has) == 1 && holder != "" && holder != has[0] && m.clock.Now().Sub(m.leaseOf(addr).Since) >= settled:
			all = append(all, "outdated_lease "+addr.String())
		case len(has) > 1 || len(has) == 1 && holder != "" && holder != has[0]:
			all = append(all, "doubled_address "+addr.String())
		case len(has) == 1 && holder == "":
			all = append(all, "uncovered_address "+addr.String())
		case len(has) == 0 && holder != "":
			all = append(all, "unused_lease "+addr.String())
		}
	}
	slices.Sort(all)
	return all
}

// check pushes a view and checks, twice, because findings about endpoints need confirmation.
func (m *machine) check(t *rapid.T, req ipam.CheckRequest) (r ipam.CheckReport) {
	for range 2 {
		m.clock.wait(time.Second)
		m.must(m.w.Show(context.Background(), m.taken()))
		var err error
		r, err = m.w.Check(context.Background(), req)
		m.must(err)
	}
	for addr, has := range m.has {
		if len(has) == 1 && (m.held[addr] == "" || m.held[addr] != has[0] &&
			m.leaseOf(addr).Name == has[0]) { // no other lease may bear this name
			m.held[addr] = has[0]
		}
	}
	return r
}

func (m *machine) compare(t *rapid.T) {
	r := m.check(t, ipam.CheckRequest{})
	var got []string
	for _, f := range r.Findings {
		got = append(got, string(f.Kind)+" "+f.Address.String())
	}
	slices.Sort(got)
	if want := m.wrong(); !slices.Equal(got, want) {
		t.Fatalf("found %q, want %q", got, want)
	}
}

func (m *machine) repair(t *rapid.T) {
	m.check(t, ipam.CheckRequest{})
	m.clock.wait(5 * time.Minute)
	m.check(t, ipam.CheckRequest{Repair: true})
	for addr, has := range m.has {
		switch {
		case len(has) == 1: // the other container's lease is old enough by now
			m.held[addr] = has[0]
		case len(has) == 0:
			delete(m.held, addr)
		}
	}
	m.compare(t)
	for _, wrong := range m.wrong() {
		if wrong[:7] != "doubled" {
			t.Fatalf("a repair has left %s", wrong)
		}
	}
}
