package ipam

import (
	"context"
	"errors"
	"net/netip"
	"strings"
	"testing"

	"berth/store/mem"
)

var clusterMark = [4]byte{1, 2, 3, 4}

// cluster is several hosts in one process, with a store that all share.
type cluster struct {
	*testing.T
	store *mem.Store
	ids   map[string]ID
}

func newCluster(t *testing.T) *cluster { return &cluster{t, mem.New(), map[string]ID{}} }

// open starts the daemon of a host, or another one of it.
func (cl *cluster) open(name string) (*Service, error) {
	if cl.ids[name] == (ID{}) {
		cl.ids[name] = NewID()
	}
	return cl.openAs(name, cl.ids[name])
}

func (cl *cluster) openAs(name string, id ID) (*Service, error) {
	st := cl.store.Join()
	s, err := Open(cl.Context(), Config{Store: st, Host: name, Member: &Member{Host: id, Session: NewID(), Mark: clusterMark}})
	if err == nil {
		st.Announce(name, []byte{1})
	}
	return s, err
}

func (cl *cluster) must(name string) *Service {
	cl.Helper()
	s, err := cl.open(name)
	if err != nil {
		cl.Fatal(err)
	}
	return s
}

func (cl *cluster) edit(s *Service, e Edit) {
	cl.Helper()
	if _, err := s.Edit(cl.Context(), EditOptions{}, e); err != nil {
		cl.Fatal(err)
	}
}

// refused fails unless err is of the kind and says the words.
func (cl *cluster) refused(err, kind error, words ...string) {
	cl.Helper()
	if !errors.Is(err, kind) {
		cl.Fatalf("got %v, want %v", err, kind)
	}
	for _, w := range words {
		if !strings.Contains(err.Error(), w) {
			cl.Errorf("%q does not say %q", err, w)
		}
	}
}

func (cl *cluster) attach(s *Service, req PoolRequest) PoolGrant {
	cl.Helper()
	g, err := s.RequestPool(cl.Context(), req)
	if err != nil {
		cl.Fatal(err)
	}
	return g
}

func (cl *cluster) take(s *Service, pool ID, mac byte) netip.Addr {
	cl.Helper()
	p, err := s.RequestAddress(cl.Context(), AddressRequest{Pool: pool, MAC: MAC{2, mac}})
	if err != nil {
		cl.Fatal(err)
	}
	return p.Addr()
}

func (cl *cluster) sound(all ...*Service) {
	cl.Helper()
	for _, s := range all {
		if problems, err := s.Check(context.Background()); err != nil || len(problems) > 0 {
			cl.Error(problems, err)
		}
	}
}

func lan(cidr string) *CreateNetwork {
	p := netip.MustParsePrefix(cidr)
	return &CreateNetwork{Name: "lan", Space: GlobalSpace, Subnets: []SubnetSpec{{CIDR: p, Gateway: p.Addr().Next(), Pool: true}}}
}
