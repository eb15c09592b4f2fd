package crash

import (
	"errors"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"berth/test/lab"
)

// etcdProcess is Debian's etcd, with one member, across its restarts. It can be killed and put back to an earlier
// state.
type etcdProcess struct {
	*lab.Process
	t      testing.TB
	dir    string
	peer   string
	client string
	asks   *clientv3.Client
}

// runEtcd starts an etcd for a test.
func runEtcd(t testing.TB) *etcdProcess {
	t.Helper()
	dir, err := os.MkdirTemp("", "berth-etcd")
	lab.Must(t, err)
	e := &etcdProcess{t: t, dir: dir, peer: "http://" + lab.Free(t), client: "http://" + lab.Free(t)}
	if e.asks, err = clientv3.New(clientv3.Config{Endpoints: []string{e.client}, Logger: zap.NewNop()}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = e.asks.Close()
		_ = os.RemoveAll(dir)
	})
	e.start()
	return e
}

// tool is the path of an etcd program.
func (e *etcdProcess) tool(name string) string {
	e.t.Helper()
	path, err := lab.Tool(name)
	lab.Must(e.t, err)
	return path
}

func (e *etcdProcess) data() string { return filepath.Join(e.dir, "data") }

// start starts etcd and waits until it answers.
func (e *etcdProcess) start() {
	e.t.Helper()
	cmd := exec.Command(e.tool("etcd"), "--name=m", "--data-dir="+e.data(), "--log-level=error",
		"--initial-cluster=m="+e.peer, "--heartbeat-interval=20", "--election-timeout=200",
		"--listen-client-urls="+e.client, "--advertise-client-urls="+e.client, "--listen-peer-urls="+e.peer,
		"--initial-advertise-peer-urls="+e.peer)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	e.Process = lab.Start(e.t, cmd)
	e.Await(e.t, e.healthy)
}

// healthy returns nil if etcd has a leader and answers.
func (e *etcdProcess) healthy() error {
	res, err := http.Get(e.client + "/health")
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return errors.New(res.Status)
	}
	return nil
}

// save takes a snapshot, replacing the one before. It returns etcd's revision right after the snapshot.
func (e *etcdProcess) save() (rev int64) {
	e.t.Helper()
	_ = os.Remove(e.snapshot())
	e.control("--endpoints="+e.client, "snapshot", "save", e.snapshot())
	got, err := e.asks.Get(e.t.Context(), "x")
	lab.Must(e.t, err)
	return got.Header.Revision
}

func (e *etcdProcess) snapshot() string { return filepath.Join(e.dir, "snapshot") }

// putBack starts it from the snapshot, or with nothing. A different token gives the cluster a different id.
func (e *etcdProcess) putBack(empty bool, token string) {
	e.t.Helper()
	e.Kill()
	lab.Must(e.t, os.RemoveAll(e.data()))
	if !empty {
		e.control("snapshot", "restore", e.snapshot(), "--data-dir="+e.data(), "--name=m", "--initial-cluster=m="+
			e.peer,
			"--initial-advertise-peer-urls="+e.peer, "--initial-cluster-token="+token)
	}
	e.start()
}

// control runs etcdctl.
func (e *etcdProcess) control(args ...string) {
	e.t.Helper()
	cmd := exec.Command(e.tool("etcdctl"), args...)
	cmd.Env = append(os.Environ(), "ETCDCTL_API=3")
	if out, err := cmd.CombinedOutput(); err != nil {
		e.t.Fatalf("etcdctl %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}
