package cluster

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"berth/internal/ipam"
	"berth/internal/ipam/edit"
	"berth/internal/ipam/service"
)

// elasticCluster is a cluster of a and b with the network lan, and an elastic range of the cluster or of a host.
func elasticCluster(t *testing.T, host string) (cl *cluster, a, b *service.Service, first netip.Addr) {
	t.Helper()
	cl = newCluster(t)
	a, b = cl.must("a"), cl.must("b")
	cl.edit(a, lan("10.77.0.0/24"))
	on := "on"
	cl.edit(a, &ipam.ModifyNetwork{Network: "lan", Elastic: &on})
	var r ipam.Range
	fine(t, r.UnmarshalText([]byte("203.0.113.10+4")))
	cl.edit(a, &ipam.AddElasticRange{Range: r, Host: host})
	cl.edit(a, &ipam.AllocateElastic{Host: host})
	return cl, a, b, r.From()
}

// An address that was released waits for the edge of the host that had mapped it, and no longer once that is removed
// and answers no more (CloudStack #5824).
func TestElasticOfARemovedHost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cl, a, b, elastic := elasticCluster(t, "")
		there := cl.attach(b, ipam.PoolRequest{Network: "lan"}).ID
		cl.take(b, there, 7)
		cl.edit(a, &ipam.AssociateElastic{Address: elastic, Instance: ipam.MAC{2, 7}.String()})
		edge := listen(t, b)
		edge.has(elastic)
		cl.edit(a, &ipam.DisassociateElastic{Address: elastic})
		cl.edit(a, &ipam.ReleaseElastic{Address: elastic})
		state := func() ipam.ElasticState {
			got, err := a.Elastic(t.Context(), elastic)
			fine(t, err)
			return got.State
		}
		if got := state(); got != ipam.ElasticReleasing {
			t.Fatalf("the edge of b has said nothing, and it is %s", got)
		}
		edge.end()
		fine(t, b.Ledger.Store().Close())
		cl.edit(a, &ipam.RemoveHost{Name: "b", Off: true})
		if got := state(); got != ipam.ElasticReleasing {
			t.Errorf("the host is removed only now, and it is %s", got)
		}
		cl.pass(6 * time.Second)
		fine(t, edit.Finish(t.Context(), a.Ledger))
		if got := state(); got != ipam.ElasticFree {
			t.Errorf("the host is removed, and cannot answer any more, and it is %s", got)
		}
		cl.sound(a)
	})
}

// An address of one host's range is mapped to no guest of another (CS-15).
func TestElasticOfAnotherHost(t *testing.T) {
	cl, a, b, elastic := elasticCluster(t, "a")
	there := cl.attach(b, ipam.PoolRequest{Network: "lan"}).ID
	cl.take(b, there, 7)
	mac := ipam.MAC{2, 7}
	associate := &ipam.AssociateElastic{Address: elastic, Instance: mac.String()}
	_, err := a.Edit(t.Context(), ipam.EditOptions{}, associate)
	cl.refused(err, ipam.ErrInvalid, "host a", "runs on host b", "[elastic.ranges]")
	here := cl.attach(a, ipam.PoolRequest{Network: "lan"}).ID
	cl.take(a, here, 8)
	mac = ipam.MAC{2, 8}
	associate.Instance = mac.String()
	cl.edit(a, associate)
}

// TestElasticTransferEvents: what happens to an address over two hosts is told in order, each association with the host
// from which and to which it goes, and what edges do with the host that says so (CS-9); both hosts read the same.
func TestElasticTransferEvents(t *testing.T) {
	f := newFenced(t, "")
	had := f.edgeA.has(f.addr)
	f.moves()
	f.edgeA.lacks(f.addr)
	f.edgeA.withdraws(had)
	f.edgeB.has(f.addr)
	f.edgeB.applies()
	f.edit(f.b, &ipam.DisassociateElastic{Address: f.addr})
	type told struct {
		Host string `json:"host"`
	}
	host := func(raw json.RawMessage) string {
		var one told
		if len(raw) > 0 {
			fine(t, json.Unmarshal(raw, &one))
		}
		return cmp.Or(one.Host, "-")
	}
	want := []string{"elastic.allocate by a", "elastic.associate by a: - a", "elastic.applied by a",
		"elastic.associate by b: a b", "elastic.withdrawn by a", "elastic.applied by b", "elastic.disassociate by b: b -"}
	for _, s := range []*service.Service{f.a, f.b} {
		var got []string
		eventually := time.Now().Add(20 * time.Second)
		for got = nil; time.Now().Before(eventually) && len(got) < len(want); time.Sleep(5 * time.Millisecond) {
			got = nil
			events, err := s.Events(t.Context(), ipam.EventFilter{})
			fine(t, err)
			for _, e := range events {
				if e.Address != f.addr {
					continue
				}
				line := fmt.Sprintf("%s by %s", e.Verb, e.Host)
				if e.Verb == ipam.ElasticAssociated || e.Verb == ipam.ElasticDisassociated {
					line += fmt.Sprintf(": %s %s", host(e.Before), host(e.After))
				}
				got = append(got, line)
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("host %s tells\n%s\nand not\n%s", s.Ledger.Host(), strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	}
}
