package cluster

import (
	"context"
	"errors"
	"net/netip"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"berth/internal/ipam"
	"berth/internal/ipam/service"
	"berth/store/mem"
)

var clusterMark = [4]byte{1, 2, 3, 4}

// cluster is several hosts in one process, with a store that all share.
type cluster struct {
	*testing.T
	store *mem.Store
	ids   map[string]ipam.ID
	now   func() time.Time // of the daemons that are started next; nil: time.Now
}

func newCluster(t *testing.T) *cluster {
	return &cluster{T: t, store: mem.New(), ids: map[string]ipam.ID{}}
}

// open starts the daemon of a host, or another one of it.
func (cl *cluster) open(name string) (*service.Service, error) {
	if cl.ids[name] == (ipam.ID{}) {
		cl.ids[name] = ipam.NewID()
	}
	return cl.openAs(name, cl.ids[name])
}

func (cl *cluster) openAs(name string, id ipam.ID) (*service.Service, error) {
	st := cl.store.Join()
	s, err := service.Open(cl.Context(),
		service.Config{Store: st, Host: name, Now: cl.now, Moment: cl.moment,
			Member: &ipam.Member{Host: id, Session: ipam.NewID(), Mark: clusterMark}})
	if err == nil {
		st.Announce(name, []byte{1})
	}
	return s, err
}

// moment is that of all hosts.
func (cl *cluster) moment() time.Duration {
	return time.Duration(time.Now().UnixNano())
}

// pass lets time pass on the clock of the bubble (testing/synctest).
func (cl *cluster) pass(d time.Duration) { time.Sleep(d) }

func (cl *cluster) must(name string) *service.Service {
	cl.Helper()
	s, err := cl.open(name)
	fine(cl, err)
	return s
}

func (cl *cluster) edit(s *service.Service, e ipam.Edit) {
	cl.Helper()
	if _, err := s.Edit(cl.Context(), ipam.EditOptions{}, e); err != nil {
		cl.Fatal(err)
	}
}

// refused fails unless err is of the kind and says the words.
// told is an error with what helps against it, as data.
func told(err error) string {
	text := err.Error()
	for _, a := range ipam.AdviceOf(err) {
		text += " [" + strings.Join(append([]string{string(a.Do)}, a.With...), " ") + "]"
	}
	return text
}

func (cl *cluster) refused(err, kind error, words ...string) {
	cl.Helper()
	if !errors.Is(err, kind) {
		cl.Fatalf("got %v, want %v", err, kind)
	}
	for _, w := range words {
		if !strings.Contains(told(err), w) {
			cl.Errorf("%q does not say %q", told(err), w)
		}
	}
}

func (cl *cluster) attach(s *service.Service, req ipam.PoolRequest) ipam.PoolGrant {
	cl.Helper()
	g, err := s.RequestPool(cl.Context(), req)
	fine(cl, err)
	return g
}

func (cl *cluster) take(s *service.Service, pool ipam.ID, mac byte) netip.Addr {
	cl.Helper()
	p, err := s.RequestAddress(cl.Context(), ipam.AddressRequest{Pool: pool, MAC: ipam.MAC{2, mac}})
	fine(cl, err)
	return p.Addr()
}

func (cl *cluster) sound(all ...*service.Service) {
	cl.Helper()
	for _, s := range all {
		if problems, err := s.Check(context.Background()); err != nil || len(problems) > 0 {
			cl.Error(problems, err)
		}
	}
}

func lan(cidr string) *ipam.CreateNetwork {
	p := netip.MustParsePrefix(cidr)
	return &ipam.CreateNetwork{Name: "lan", Space: ipam.GlobalSpace,
		Subnets: []ipam.SubnetSpec{{CIDR: p, Gateway: p.Addr().Next(), Pool: true}}}
}

// fine ends a test on an error.
func fine(t rapid.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
