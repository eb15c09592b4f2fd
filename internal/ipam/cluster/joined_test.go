package cluster_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"berth/internal/ipam"
	"berth/internal/ipam/cluster"
	"berth/internal/ipam/ipamtest"
	"berth/internal/ipam/service"
	"berth/store/mem"
)

// clusterMark is the end of each id that these tests make in the shared store.
var clusterMark = [4]byte{0xc1, 0x05, 0x7e, 0x12}

var errNoEtcd = errors.New("no etcd is there")

// joinedHosts is a shared store, and the hosts that draw from it.
type joinedHosts struct {
	t     testing.TB
	store *mem.Store
	hosts map[string]*joinedHost
	words map[string]string // the words that scripts have set
	known ipam.Known        // what the witness of a new host says; empty: what its room says
}

// joinedHost is one host: its own store, and its half of the cluster.
type joinedHost struct {
	*cluster.Service
	t      testing.TB
	name   string
	own    *mem.Store
	handle *mem.Store       // of the shared store
	local  *service.Service // on own
	shared *service.Service // on the shared store, once it was reached
	room   *ipamtest.Stage  // on both
	stop   func()
}

func newJoinedHosts(t testing.TB) *joinedHosts {
	return &joinedHosts{t: t, store: mem.New(), hosts: map[string]*joinedHost{}, words: map[string]string{}}
}

// host returns the host of that name. A new host reaches the shared store first.
func (p *joinedHosts) host(name string) *joinedHost {
	p.t.Helper()
	if m := p.hosts[name]; m != nil {
		return m
	}
	m := p.away(name, time.Now)
	m.reach()
	return m
}

// away makes a host that has not reached the shared store yet.
func (p *joinedHosts) away(name string, now func() time.Time) *joinedHost {
	p.t.Helper()
	m := &joinedHost{t: p.t, name: name, own: mem.New(), handle: p.store.Join()}
	m.room = &ipamtest.Stage{T: p.t, Host: name, Clock: ipamtest.NewClock(), Pools: map[string]ipam.ID{}}
	known := p.known
	if known.DockerNetwork == nil {
		known = m.room.Known()
	}
	m.handle.Cut(errNoEtcd)
	var err error
	m.local, err = service.Open(context.Background(),
		service.Config{Store: m.own, Host: name, Now: now, Known: known})
	fine(p.t, err)
	member := &ipam.Member{Host: ipam.NewID(), Session: ipam.NewID(), Mark: clusterMark}
	half, err := cluster.OpenShared(context.Background(),
		cluster.SharedConfig{Own: m.own, Mark: clusterMark, Host: name, Now: now, Reach: m.handle.Reach,
			Open: func(ctx context.Context) (_ *service.Service, err error) {
				if r := m.handle.Reach(); r.Err != nil {
					return nil, r.Err
				}
				m.shared, err = service.Open(ctx,
					service.Config{Store: m.handle, Host: name, Now: now, Member: member, Known: known})
				return m.shared, err
			}})
	fine(p.t, err)
	m.Service = cluster.NewService(m.local, half)
	m.room.S, m.room.Asked = m.Service.Service, m.Service
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- half.Run(ctx) }()
	m.stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			p.t.Error(name, err)
		}
	})
	p.t.Cleanup(m.stop)
	comesTo(p.t, "host "+name+" has tried",
		func() bool { return strings.Contains(m.Partial().Error(), errNoEtcd.Error()) })
	p.hosts[name] = m
	return m
}

// reach lets the host reach the shared store, and waits until it does.
func (m *joinedHost) reach() {
	m.t.Helper()
	m.handle.Heal()
	comesTo(m.t, "host "+m.name+" reaches the shared store", func() bool { return m.Partial() == nil })
}

// plays runs a script of ipamtest. A step may begin with its host (default a) and the store that it changes:
// own, shared, both or none. A refused step changes none.
//
//	b: shared take lan web pool -> 1         an edit: its number of addresses, and "replayed"
//	take own x pool + take lan x pool ! invalid; #2; make two
//	                                         edits of one call, also over several lines; number 2 is refused
//	key K EDITS; try EDITS                   edits with a key; a dry run
//	ask A -> $IP                             later steps use the answer as $IP
//
// Its own steps are these:
//
//	old space=S ...  a network in the host's own store, in any space, from before the cluster
//	drain HOST, undrain HOST
//	owns OWNER       the networks in which the owner has something; a replaced reservation has a !
//	forget ADDRESS   forgets what is remembered of it; rename NAME: renames all guesses at once
//	cut, reach       puts the shared store out of reach; reaches it again
//	local guesses    the guesses of the host's own store
func (p *joinedHosts) plays(script string) {
	p.t.Helper()
	for line := range strings.Lines(strings.ReplaceAll(script, " +\n", " + ")) {
		if line = strings.TrimSpace(line); line == "" || line[0] == '#' {
			continue
		}
		step, want, answered := strings.Cut(line+" ", " -> ")
		step, refusal, refused := strings.Cut(step, " ! ")
		host := "a"
		if name, rest, named := strings.Cut(step, ": "); named {
			host, step = name, rest
		}
		m, words := p.host(host), strings.Fields(step)
		for i := range words {
			for name, value := range p.words {
				words[i] = strings.ReplaceAll(words[i], name, value)
			}
		}
		place := ""
		if slices.Contains([]string{"own", "shared", "both", "none"}, words[0]) {
			place, words = words[0], words[1:]
		}
		own, shared := ipamtest.Dump(p.t, m.own), ipamtest.Dump(p.t, p.store)
		got, err := p.step(m, words)
		changed := map[[2]bool]string{{true, false}: "own", {false, true}: "shared", {true, true}: "both"}[[2]bool{
			!maps.Equal(own, ipamtest.Dump(p.t, m.own)), !maps.Equal(shared, ipamtest.Dump(p.t, p.store))}]
		if want = strings.TrimSpace(want); strings.HasPrefix(want, "$") {
			p.words[want], want = got, got
		}
		switch {
		case refused:
			m.room.Refused(line, numbered(p.t, line, refusal, err), err)
			place = "none"
		case err != nil:
			p.t.Fatalf("%s\n\t%v", line, err)
		case answered && got != want:
			p.t.Fatalf("%s\n\tgot %s", line, got)
		}
		if place != "" && strings.TrimSuffix(place, "none") != changed {
			p.t.Fatalf("%s\n\tchanged the store: %s", line, changed)
		}
	}
}

// numbered checks which edit a refusal is about, and returns the rest of the expected refusal.
func numbered(t testing.TB, line, refusal string, err error) string {
	t.Helper()
	kind, rest, has := strings.Cut(refusal, "; #")
	if !has {
		return refusal
	}
	number, says, _ := strings.Cut(rest, ";")
	var one *ipam.EditError
	if !errors.As(err, &one) || strconv.Itoa(one.Index+1) != strings.TrimSpace(number) {
		t.Fatalf("%s\n\t%#v is of another number", line, err)
	}
	return strings.TrimSuffix(kind+";"+says, ";")
}

func (p *joinedHosts) step(m *joinedHost, words []string) (string, error) {
	p.t.Helper()
	opt := ipam.EditOptions{}
	switch words[0] {
	case "key":
		opt.Key, words = words[1], words[2:]
		copy(opt.Request[:], strings.Join(words, " "))
	case "try":
		opt.DryRun, words = true, words[1:]
	case "old":
		_, err := m.local.Edit(p.t.Context(), opt, ipamtest.Edits(p.t, "network "+strings.Join(words[1:], " "))...)
		return "", err
	case "drain", "undrain":
		_, err := m.Edit(p.t.Context(), opt, &ipam.DrainHost{Name: words[1], Undo: words[0] == "undrain"})
		return "", err
	case "owns":
		return m.owns(words[1]), nil
	case "forget":
		_, err := m.ForgetMemory(p.t.Context(), m.room.RefOf(m.room.Addr(words[1])))
		return "", err
	case "rename":
		var names []ipam.LeaseName
		for _, l := range listed(p.t, m.Leases(p.t.Context(), ipam.LeaseFilter{})) {
			if l.Kind != ipam.Gateway {
				names = append(names, ipam.LeaseName{LeaseRef: m.room.RefOf(l.Address), Name: words[1]})
			}
		}
		return "", m.NameLeases(p.t.Context(), names)
	case "cut":
		m.handle.Cut(errNoEtcd)
		return "", nil
	case "reach":
		m.reach()
		return "", nil
	case "local":
		over := *m.room
		over.S = m.local
		return over.Step(words[1:])
	}
	if !slices.Contains(strings.Fields(`network network.set network.rm subnet subnet.set subnet.rm pool pool.set pool.rm
		exclude include take release reserve unreserve bind end edit`), words[0]) {
		return m.room.Step(words)
	}
	lines := strings.ReplaceAll(strings.Join(words, " "), " + ", "\n")
	out, err := m.Edit(p.t.Context(), opt, ipamtest.Edits(p.t, lines)...)
	got := ""
	for _, r := range out.Results {
		got += fmt.Sprint(len(r.Addresses), " ")
	}
	return strings.TrimSpace(got + map[bool]string{true: "replayed"}[out.Replayed]), err
}

// owns returns the networks in which an owner has something.
func (m *joinedHost) owns(owner string) string {
	m.t.Helper()
	var all []string
	for _, r := range listed(m.t, m.Reservations(m.t.Context(), ipam.AddressFilter{Owner: owner})) {
		all = append(all, r.Network+map[bool]string{true: "!"}[r.Replaced])
	}
	for _, r := range listed(m.t, m.Taken(m.t.Context(), ipam.AddressFilter{Owner: owner})) {
		all = append(all, r.Network)
	}
	return strings.Join(all, " ")
}

// furnished returns a host with something of each kind in both stores: networks of the space local, of the space
// lab, which is older than the cluster, and of two spaces of the cluster.
func furnished(t testing.TB) (p *joinedHosts, a *joinedHost) {
	t.Helper()
	p = newJoinedHosts(t)
	p.plays(`
		own old lab space=lab subnet=10.5.0.0/24,gw=10.5.0.1,pool
		own network own subnet=10.1.0.0/24,gw=10.1.0.1,pool
		shared network lan space=global subnet=10.77.0.0/24,gw=10.77.0.1,pool
		shared network dmz space=dmz subnet=10.6.0.0/24,gw=10.6.0.1,pool
		own network far type=dynamic
		reserve far roamer
		reserve far of-far
		shared network near space=global type=dynamic
		reserve near roamer
		reserve near of-near
	`)
	for _, name := range []string{"lab", "own", "lan", "dmz"} {
		p.plays(strings.ReplaceAll(`
			take NET router pool
			take NET printer pool
			take NET of-NET pool
			reserve NET web
			reserve NET db
			reserve NET owner-of-NET
			attach NET net=NET space=-
			ask NET shop-web-1 mac=0
			ask NET shop-web-1 mac=1
		`, "NET", name))
	}
	return p, p.host("a")
}

func fine(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func comesTo(t testing.TB, what string, holds func() bool) {
	t.Helper()
	for late := time.Now().Add(30 * time.Second); !holds(); time.Sleep(time.Millisecond) {
		if time.Now().After(late) {
			t.Fatalf("in 30 seconds it did not come to this: %s", what)
		}
	}
}

func listed[T any](t testing.TB, items iter.Seq2[T, error]) (list []T) {
	t.Helper()
	for item, err := range items {
		fine(t, err)
		list = append(list, item)
	}
	return list
}

// refusedBy fails the test unless err is of a kind and contains each of the texts.
func refusedBy(t testing.TB, what string, err, kind error, texts ...string) {
	t.Helper()
	if !errors.Is(err, kind) {
		t.Errorf("%s: %v, want %v", what, err, kind)
		return
	}
	for _, text := range texts {
		if !strings.Contains(err.Error(), text) {
			t.Errorf("%s: %q does not say %q", what, err, text)
		}
	}
}

func second[T any](_ T, err error) error { return err }

func lastError[T any](items func(func(T, error) bool)) (err error) {
	for _, err = range items {
	}
	return err
}
