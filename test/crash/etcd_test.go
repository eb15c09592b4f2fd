package crash

import (
	"os"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"berth/store/etcd/etcdtest"
	"berth/test/lab"
)

// eachStore runs a test with a daemon that has its own file, and with one that keeps the test's space in etcd. The
// test kills the daemon; etcd stays.
func eachStore(t *testing.T, run func(t *testing.T, p *place)) {
	overBolt(t, run)
	overEtcd(t, run)
}

func overBolt(t *testing.T, run func(t *testing.T, p *place)) {
	t.Run("bolt", func(t *testing.T) { run(t, newPlace(t)) })
}

func overEtcd(t *testing.T, run func(t *testing.T, p *place)) {
	t.Run("etcd", func(t *testing.T) {
		p, endpoint := newPlace(t), startEtcd(t)
		p.space, p.reserved = "lab", reserved()/4 // the in-process etcd is slow under the race detector
		p.flags = []string{"--store", "etcd", "--etcd-endpoints", endpoint}
		run(t, p)
		inUse(t, endpoint)
	})
}

// startEtcd starts an etcd of one member for this test and returns its endpoint.
func startEtcd(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "berth-etcd")
	lab.Must(t, err)
	e, err := etcdtest.Start(dir, 1, false) // it need not survive a crash of the machine
	lab.Must(t, err)
	t.Cleanup(func() {
		e.Close()
		os.RemoveAll(dir)
	})
	return e.Endpoints[0]
}

// inUse fails the test if the daemon did not keep its records in etcd.
func inUse(t *testing.T, endpoint string) {
	t.Helper()
	c, err := clientv3.New(clientv3.Config{Endpoints: []string{endpoint}, Logger: zap.NewNop()})
	lab.Must(t, err)
	defer c.Close()
	got, err := c.Get(t.Context(), "berth/d/", clientv3.WithPrefix(), clientv3.WithCountOnly())
	if err != nil || got.Count < 5 { // besides events, which may share a key
		t.Errorf("%d records are in etcd: %v", got.Count, err)
	}
}
