package crash

import (
	"bytes"
	"errors"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"berth/test/sockets"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
)

// etcdProcess is Debian's etcd, of one member, over all its lives: one that can be killed and put back to an earlier
// state.
type etcdProcess struct {
	t      testing.TB
	dir    string
	peer   string
	client string
	cmd    *exec.Cmd
	ended  chan error // how the cmd ended
	asks   *clientv3.Client
}

// runEtcd starts one for a test.
func runEtcd(t testing.TB) *etcdProcess {
	t.Helper()
	dir, err := os.MkdirTemp("", "berth-etcd")
	if err != nil {
		t.Fatal(err)
	}
	e := &etcdProcess{t: t, dir: dir, peer: "http://" + sockets.Free(t), client: "http://" + sockets.Free(t)}
	if e.asks, err = clientv3.New(clientv3.Config{Endpoints: []string{e.client}, Logger: zap.NewNop()}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		e.kill()
		_ = e.asks.Close()
		_ = os.RemoveAll(dir)
	})
	e.start()
	return e
}

// tool is one of etcd's programs, where scripts/needs unpacks it, or as it is installed.
func (e *etcdProcess) tool(name string) string {
	e.t.Helper()
	if unpacked, err := filepath.Abs("../../build/tools/" + name); err == nil {
		if _, err := os.Stat(unpacked); err == nil {
			return unpacked
		}
	}
	installed, err := exec.LookPath(name)
	if err != nil {
		e.t.Fatalf("%v (scripts/needs etcd unpacks it)", err)
	}
	return installed
}

func (e *etcdProcess) data() string { return filepath.Join(e.dir, "data") }

// start starts it, and waits until it answers.
func (e *etcdProcess) start() {
	e.t.Helper()
	e.cmd = exec.Command(e.tool("etcd"), "--name=m", "--data-dir="+e.data(), "--log-level=error",
		"--initial-cluster=m="+e.peer,
		"--heartbeat-interval=20", "--election-timeout=200", "--listen-client-urls="+
			e.client, "--advertise-client-urls="+e.client,
		"--listen-peer-urls="+e.peer, "--initial-advertise-peer-urls="+e.peer)
	var said bytes.Buffer // to be read when it has ended
	e.cmd.Stdout, e.cmd.Stderr = &said, &said
	e.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := e.cmd.Start(); err != nil {
		e.t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func(cmd *exec.Cmd) { ended <- cmd.Wait() }(e.cmd)
	e.ended = ended
	for deadline := time.Now().Add(patience); ; {
		err := e.healthy()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			e.t.Fatalf("etcd does not answer within %s: %v", patience, err)
		}
		select {
		case err := <-ended:
			e.cmd = nil
			e.t.Fatalf("etcd ended: %v\n%s", err, said.String())
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// healthy is nil when it has a leader and answers.
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

// kill ends it as a crash does.
func (e *etcdProcess) kill() {
	if e.cmd != nil {
		_ = e.cmd.Process.Kill() // it may have ended already
		<-e.ended
		e.cmd = nil
	}
}

// save takes a snapshot, in the place of the one before. The revision is not in it any more.
func (e *etcdProcess) save() (rev int64) {
	e.t.Helper()
	_ = os.Remove(e.snapshot())
	e.control("--endpoints="+e.client, "snapshot", "save", e.snapshot())
	got, err := e.asks.Get(e.t.Context(), "x")
	if err != nil {
		e.t.Fatal(err)
	}
	return got.Header.Revision
}

func (e *etcdProcess) snapshot() string { return filepath.Join(e.dir, "snapshot") }

// putBack has it start on the snapshot, or with nothing. With a token of its own the cluster's id is another one.
func (e *etcdProcess) putBack(empty bool, token string) {
	e.t.Helper()
	e.kill()
	if err := os.RemoveAll(e.data()); err != nil {
		e.t.Fatal(err)
	}
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
