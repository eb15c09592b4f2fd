package stores_test

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"berth/internal/ipam"
	"berth/internal/ipam/ipamtest"
	"berth/internal/ipam/service"
	"berth/internal/ipam/stores"
	"berth/store"
	"berth/store/mem"
)

// planToCopy has something of every kind, in the spaces global and lab, and in local, which stays.
const planToCopy = `
	network home subnet=10.9.0.0/24,gw=10.9.0.1,pool
	take home printer 0:ip0=10.9.0.7
	network lan space=global subnet=192.0.2.0/24,gw=192.0.2.1,name=lan+2001:db8::/64,pool tag.site=a
	pool lan 192.0.2.10-192.0.2.100 name=front
	exclude lan 192.0.2.60+5 note=printers
	reserve lan web 192.0.2.11
	reserve lan db 192.0.2.12
	take lan rtr 0:ip0=192.0.2.13,ip1=pool
	take lan gone 192.0.2.200
	release lan gone
	network wide space=lab subnet=10.0.0.0/16,pool
	network empty space=lab
	network seen space=global type=dynamic subnet=198.51.100.0/24
	reserve seen vm/1
	reserve seen vm/2
	attach A net=lan space=global
	ask A web mac=1
	ask A mac=2
	ask A mac=3
	wait 1m
	back A 192.0.2.14
	attach B net=wide space=lab
	ask B mac=4
	ask B job mac=6 -> 10.0.0.2
	back B 10.0.0.2
	attach C cidr=203.0.113.0/24 space=lab
	gateway C
	ask C x mac=5
	attach D cidr=203.0.113.0/24 space=lab
	attach H net=home
	ask H mac=9
`

// copyRoom is a host's own store with planToCopy, and a store that the host shares.
type copyRoom struct {
	*ipamtest.Stage
	member *ipam.Member
	common *mem.Store // the first handle
}

func newCopyRoom(t testing.TB) *copyRoom {
	t.Helper()
	r := &copyRoom{Stage: ipamtest.New(t), common: mem.New(),
		member: &ipam.Member{Host: ipam.ID{1}, Session: ipam.NewID(), Mark: [4]byte{9, 9, 9, 9}}}
	t.Cleanup(func() { r.common.Close() })
	r.Run(planToCopy)
	return r
}

const shopAccount = `edit account.create {"account": "shop", "domain": "d", "quota": 3, "owners": ["db"]}`

// withElastic adds elastic addresses of every kind: associated on lan, applied by the edge, only allocated, and
// released.
func (r *copyRoom) withElastic() *copyRoom {
	r.T.Helper()
	edits(r.T, r.S, `
		edit network.modify {"network": "lan", "elastic": "on"}
		`+shopAccount+`
		edit elastic.range.add {"range": "100.64.7.0+16", "announce": "eth0", "on_cut": "keep"}
		edit elastic.range.add {"range": "100.64.8.0+8", "host": "h1"}
		edit elastic.allocate {}
		edit elastic.allocate {"account": "shop"}
		edit elastic.allocate {"account": "shop"}
		edit elastic.allocate {}
		edit elastic.allocate {"host": "h1"}
	`)
	r.Clock.Time = r.Clock.Time.Add(time.Hour)
	edits(r.T, r.S, `
		edit elastic.release {"address": "100.64.7.3"}
		edit elastic.associate {"address": "100.64.7.0", "instance": "web"}
		edit elastic.associate {"address": "100.64.7.1", "instance": "db", "egress_only": true}
	`)
	info, err := r.S.Elastic(ctx, r.Addr("100.64.7.0"))
	fine(r.T, err)
	err = r.S.ReportEdge(ctx, ipam.EdgeReport{Whole: true, Applied: []ipam.EdgeApplied{{Address: info.Address,
		Association: info.Revision, Guest: info.Guest}}})
	fine(r.T, err)
	return r
}

// own opens the host's own store for a copy.
func (r *copyRoom) own() *service.Service {
	r.T.Helper()
	return r.opened("h1", r.Store)
}

// opened opens the own store of a host for a copy.
func (r *copyRoom) opened(host string, st store.Store) *service.Service {
	r.T.Helper()
	s, err := service.Open(ctx,
		service.Config{Store: st, Host: host, Now: r.Clock.Now, Memories: ipamtest.Memories, Copying: true})
	fine(r.T, err)
	return s
}

// both opens the own store of the host, and the shared one.
func (r *copyRoom) both() (own, cluster *service.Service) {
	r.T.Helper()
	return r.own(), r.cluster("h1", r.member)
}

// other opens the shared store as the host hN.
func (r *copyRoom) other(n byte) *service.Service {
	r.T.Helper()
	return r.cluster(fmt.Sprint("h", n), &ipam.Member{Host: ipam.ID{n}, Session: ipam.ID{n}, Mark: r.member.Mark})
}

// edits makes edits, one per line.
func edits(t testing.TB, s *service.Service, lines string) {
	t.Helper()
	_, err := s.Edit(ctx, ipam.EditOptions{}, ipamtest.Edits(t, lines)...)
	fine(t, err)
}

// cluster opens the shared store as a host, through its own handle.
func (r *copyRoom) cluster(host string, member *ipam.Member) *service.Service {
	r.T.Helper()
	s, err := service.Open(ctx,
		service.Config{Store: r.common.Join(), Host: host, Now: r.Clock.Now, Memories: ipamtest.Memories,
			Member: member})
	fine(r.T, err)
	return s
}

func mustCopy(t testing.TB, from, to *service.Service, opt ipam.CopyOptions) ipam.CopyReport {
	t.Helper()
	opt.Command = "berth state copy"
	report, err := stores.CopySpaces(ctx, from.Ledger, to.Ledger, opt)
	fine(t, err)
	return report
}

// seen returns all that a service shows, of the given spaces or of all, in its own order.
func seen(t testing.TB, s *service.Service, spaces ...string) (lines []string) {
	t.Helper()
	in := func(space string) bool { return len(spaces) == 0 || slices.Contains(spaces, space) }
	networks, err := s.Networks(ctx, ipam.NetworkFilter{})
	fine(t, err)
	for _, n := range networks {
		if in(n.Space) {
			whole, err := s.Network(ctx, n.Name)
			fine(t, err)
			lines = append(lines, fmt.Sprintf("network %+v", whole))
		}
	}
	for _, l := range ipamtest.ListLeases(t, s, ipam.LeaseFilter{Remembered: true}) {
		if in(l.Space) {
			lines = append(lines, fmt.Sprintf("lease %+v", l))
		}
	}
	for info, err := range s.Reservations(ctx, ipam.AddressFilter{}) {
		fine(t, err)
		if in(info.Space) {
			lines = append(lines, fmt.Sprintf("reservation %+v", info))
		}
	}
	if in("global") {
		lines = append(lines, seenElastic(t, s)...)
	}
	events, err := s.Events(ctx, ipam.EventFilter{})
	fine(t, err)
	for _, e := range events {
		verb := e.Verb.String()
		elastic := e.Space == "" && e.Verb != ipam.ElasticMoved && in("global") &&
			(strings.HasPrefix(verb, "elastic.") || strings.HasPrefix(verb, "account."))
		if elastic || e.Space != "" && in(e.Space) && e.Verb != ipam.SpaceCreated {
			lines = append(lines, fmt.Sprintf("event %+v", e))
		}
	}
	return lines
}

// seenElastic returns what a service shows of elastic addresses and their ranges.
func seenElastic(t testing.TB, s *service.Service) (lines []string) {
	t.Helper()
	all, err := s.Elastics(ctx, "", netip.Addr{}, 0)
	fine(t, err)
	for _, one := range all {
		if one.Region, one.Host = "", ""; one.Applied != nil {
			lines = append(lines, fmt.Sprintf("applied %s %+v", one.Address, *one.Applied))
		}
		one.Applied = nil
		lines = append(lines, fmt.Sprintf("elastic %+v", one))
	}
	ranges, err := s.ElasticRanges(ctx)
	fine(t, err)
	for _, r := range ranges {
		lines = append(lines, fmt.Sprintf("range %+v", r))
	}
	return lines
}

// copiedKinds returns the records of the copied kinds, without those in before.
func copiedKinds(all, before map[string]string) map[string]string {
	all = maps.Clone(all)
	maps.DeleteFunc(all, func(key, _ string) bool {
		_, stays := before[key]
		return stays || !strings.ContainsAny(key[1:2], "adfgilnpu")
	})
	return all
}

func checked(t testing.TB, services ...*service.Service) {
	t.Helper()
	for _, s := range services {
		if problems, err := s.Check(ctx); err != nil || len(problems) > 0 {
			t.Fatalf("berth state check says: %q, %v", problems, err)
		}
	}
}

// fine ends a test on an error.
func fine(t rapid.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
