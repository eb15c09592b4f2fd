package etcd

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"

	"berth/test/lab"
)

// etcdctl runs Debian's etcdctl.
func etcdctl(t testing.TB, args ...string) {
	t.Helper()
	program, err := filepath.Abs("../../build/tools/etcdctl")
	if _, serr := os.Stat(program); err != nil || serr != nil {
		if program, err = exec.LookPath("etcdctl"); err != nil {
			t.Fatalf("Debian's etcdctl is not there (%v): `make test` gets it", err)
		}
	}
	cmd := exec.Command(program, args...)
	cmd.Env = append(os.Environ(), "ETCDCTL_API=3")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("etcdctl %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

// snapshot writes all of etcd to a file.
func (p *process) snapshot() (file string) {
	p.t.Helper()
	file = filepath.Join(p.t.TempDir(), "snapshot")
	etcdctl(p.t, "--endpoints="+p.endpoint, "snapshot", "save", file)
	return file
}

// flag returns the value of one of the process's flags.
func (p *process) flag(name string) string {
	for _, arg := range p.args {
		if value, ok := strings.CutPrefix(arg, "--"+name+"="); ok {
			return value
		}
	}
	return ""
}

// restore kills the process and restarts it on a snapshot. A token gives the cluster another id. before runs
// while the process serves on another address, and may be nil.
func (p *process) restore(file, token string, before func(endpoint string)) {
	p.t.Helper()
	p.end(syscall.SIGKILL)
	if err := os.RemoveAll(p.data); err != nil {
		p.t.Fatal(err)
	}
	if token == "" {
		token = "etcd-cluster" // etcd's own default
	}
	etcdctl(p.t, "snapshot", "restore", file, "--data-dir="+p.data, "--name="+p.flag("name"), "--initial-cluster="+
		p.flag("initial-cluster"),
		"--initial-advertise-peer-urls="+p.flag("initial-advertise-peer-urls"), "--initial-cluster-token="+token)
	if before != nil {
		aside := *p
		aside.endpoint = "http://" + lab.Free(p.t)
		aside.args = append(append([]string(nil), p.args...), "--listen-client-urls="+aside.endpoint,
			"--advertise-client-urls="+aside.endpoint)
		aside.start()
		aside.answers()
		before(aside.endpoint)
		aside.end(syscall.SIGTERM)
	}
	p.start()
	p.answers()
}

// loseAll kills the process and restarts it with no data.
func (p *process) loseAll() {
	p.t.Helper()
	p.end(syscall.SIGKILL)
	if err := os.RemoveAll(p.data); err != nil {
		p.t.Fatal(err)
	}
	p.start()
	p.answers()
}

// raise makes another client write so often that etcd's revision is higher than ever before.
func raise(t testing.TB, endpoint string) {
	t.Helper()
	c := rawClient(t, endpoint)
	for range 300 {
		if _, err := c.Put(context.Background(), "elsewhere", "x"); err != nil {
			t.Fatal(err)
		}
	}
}

// inEtcd returns all keys and values under a prefix.
func inEtcd(t testing.TB, endpoint, prefix string) map[string]string {
	t.Helper()
	g, err := rawClient(t, endpoint).Get(context.Background(), prefix, clientv3.WithPrefix())
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	for _, kv := range g.Kvs {
		all[string(kv.Key)] = string(kv.Value)
	}
	return all
}
