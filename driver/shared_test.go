package driver

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"testing"
	"time"

	"berth/internal/ipam"
	"berth/internal/ipam/cluster"
	"berth/internal/ipam/service"
	"berth/store"
	"berth/store/mem"
)

// overTwo reports that the benches of this process have two stores, and that all requests go to the store of their
// cluster.
var overTwo = os.Getenv("BERTH_DRIVER_OVER") == "joined"

// TestSuiteOverSharedStore runs all tests of the package again with a store that is shared with other hosts (the wire
// tests of issue 1).
func TestSuiteOverSharedStore(t *testing.T) {
	if overTwo {
		return // this is that run
	}
	suite := exec.Command(os.Args[0], "-test.count=1", "-test.timeout=8m", fmt.Sprintf("-test.short=%t", testing.Short()),
		"-test.skip=^TestHostile$") // it only asks the service of one store
	suite.Env = append(os.Environ(), "BERTH_DRIVER_OVER=joined")
	if out, err := suite.CombinedOutput(); err != nil {
		t.Errorf("%v:\n%s", err, out)
	}
}

// sharing is a shared store, and the host that uses it.
type sharing struct {
	b     *bench
	store *mem.Store
	own   *mem.Store // the host's own
	id    ipam.ID
	end   func() error // stops the host's part
}

func newCluster(b *bench) *sharing {
	return &sharing{b: b, store: mem.New(), own: mem.New(), id: ipam.NewID()}
}

// open starts the host's daemon over a handle on the shared store.
func (c *sharing) open(st store.Shared) (Service, *service.Service, error) {
	c.stop()
	ctx := context.Background()
	local, err := service.Open(ctx, service.Config{Store: c.own, Host: "alpha", Now: c.b.clock.Now, Bases: c.b.bases})
	if err != nil {
		return nil, nil, err
	}
	mark := [4]byte{0xbe, 0xe7, 0x40, 0x01}
	shared, err := service.Open(ctx,
		service.Config{Store: st, Host: "alpha", Now: c.b.clock.Now, Bases: c.b.bases, Known: c.b.known(),
			Member: &ipam.Member{Host: c.id, Session: ipam.NewID(), Mark: mark}})
	if err != nil {
		return nil, nil, err
	}
	half, err := cluster.OpenShared(ctx,
		cluster.SharedConfig{Own: c.own, Mark: mark, Host: "alpha", Now: c.b.clock.Now, Reach: st.Reach,
			Open: func(context.Context) (*service.Service, error) { return shared, nil }})
	if err != nil {
		return nil, nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- half.Run(ctx) }()
	c.end = func() error {
		cancel()
		return <-ended
	}
	joined := cluster.NewService(local, half)
	for late := time.Now().Add(30 * time.Second); joined.Partial() != nil; time.Sleep(time.Millisecond) {
		if time.Now().After(late) {
			c.b.t.Fatal(joined.Partial())
		}
	}
	return &inCluster{joined, half}, shared, nil
}

// stop ends the host's daemon. A nil cluster has none.
func (c *sharing) stop() {
	if c == nil || c.end == nil {
		return
	}
	if err := c.end(); err != nil {
		c.b.t.Error(err)
	}
	c.end = nil
}

// inCluster is a Service over two stores. Its space local is the cluster's, too, so that the requests of tests for that
// space go to the shared store.
type inCluster struct {
	*cluster.Service
	half *cluster.Shared
}

func (s *inCluster) RequestPool(ctx context.Context, req ipam.PoolRequest) (ipam.PoolGrant, error) {
	if req.Network == "" && req.Space == ipam.LocalSpace {
		return s.half.RequestPool(ctx, req)
	}
	return s.Service.RequestPool(ctx, req)
}
