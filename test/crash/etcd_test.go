package crash

import (
	"context"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
)

// eachStore runs a test over a daemon with a file of its own, and over one that keeps the space of the test in etcd. It is
// the daemon that is killed; etcd stays.
func eachStore(t *testing.T, run func(t *testing.T, p *place)) {
	t.Run("bolt", func(t *testing.T) { run(t, newPlace(t)) })
	t.Run("etcd", func(t *testing.T) {
		p := newPlace(t)
		p.space = "lab"
		p.flags = []string{"--store", "etcd", "--etcd-endpoints", startEtcd(t)}
		run(t, p)
	})
}

// etcdBinary is Debian's, where scripts/needs unpacks it, or one that is installed.
func etcdBinary(t testing.TB) string {
	t.Helper()
	if unpacked, err := filepath.Abs("../../build/tools/etcd"); err == nil {
		if _, err := os.Stat(unpacked); err == nil {
			return unpacked
		}
	}
	installed, err := exec.LookPath("etcd")
	if err != nil {
		t.Fatalf("%v (scripts/needs etcd unpacks it)", err)
	}
	return installed
}

// startEtcd starts an etcd of one member for this test and returns its endpoint.
func startEtcd(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "berth-etcd")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	client, peer := freeURL(t), freeURL(t)
	var log lockedBuffer
	cmd := exec.Command(etcdBinary(t), "--name", "m", "--data-dir", filepath.Join(dir, "data"), "--log-level", "error", "--logger", "zap",
		"--listen-client-urls", client, "--advertise-client-urls", client,
		"--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer, "--initial-cluster", "m="+peer)
	cmd.Stdout, cmd.Stderr = &log, &log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait() // it says which signal ended it
	})
	c, err := clientv3.New(clientv3.Config{Endpoints: []string{client}, Logger: zap.NewNop()})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for {
		try, cancel := context.WithTimeout(ctx, time.Second)
		_, err := c.Get(try, "ready")
		cancel()
		if err == nil {
			return client
		}
		if ctx.Err() != nil {
			t.Fatalf("etcd does not answer: %v\n%s", err, log.String())
		}
	}
}

// freeURL is one of this machine that nobody listens on.
func freeURL(t testing.TB) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return "http://" + l.Addr().String()
}
