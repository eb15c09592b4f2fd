package cluster

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"berth/internal/admin/api"
	"berth/internal/admin/client"
	"berth/test/lab"
)

// save takes a snapshot of etcd.
func (e *etcdServers) save() (file string) {
	e.t.Helper()
	leader, _ := e.leader()
	file = filepath.Join(tempDir(e.t), "snapshot")
	e.control("--endpoints", leader.url(), "snapshot", "save", file)
	return file
}

// back kills all members and starts them from a snapshot, or with nothing if file is empty.
func (e *etcdServers) back(file string) {
	e.t.Helper()
	for _, m := range e.members {
		m.Kill()
	}
	for _, m := range e.members {
		lab.Must(e.t, os.RemoveAll(m.data))
		if file != "" {
			e.control("snapshot", "restore", file, "--data-dir", m.data, "--name", m.name, "--initial-cluster",
				e.cluster,
				"--initial-cluster-token", e.token, "--initial-advertise-peer-urls", m.peer())
		}
		m.start()
	}
	e.whole()
}

// control runs etcdctl.
func (e *etcdServers) control(args ...string) {
	e.t.Helper()
	cmd := exec.Command(etcdTool(e.t, "etcdctl"), args...)
	cmd.Env = append(os.Environ(), "ETCDCTL_API=3")
	if out, err := cmd.CombinedOutput(); err != nil {
		e.t.Fatalf("etcdctl %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

// restoreSnapshot puts etcd back to an earlier state while hosts work.
func restoreSnapshot(tr *trial) (proof func() error, heal func()) {
	file := tr.etcd.save()
	everyone(tr, tr.parties, least/200, "since the snapshot", answers)
	tr.etcd.back(file)
	return tr.distrusted, tr.mend
}

// emptyEtcd deletes all data of etcd.
func emptyEtcd(tr *trial) (proof func() error, heal func()) {
	tr.etcd.back("")
	return tr.distrusted, tr.mend
}

// distrusted returns nil if each host reports that etcd went back.
func (tr *trial) distrusted() error {
	for _, h := range tr.hosts {
		st, err := h.status()
		switch {
		case err != nil:
			return err
		case st.Cluster == nil || st.Cluster.Back == nil:
			return fmt.Errorf("host %s does not distrust etcd: %+v", h.name, st.Cluster)
		}
	}
	return nil
}

// mend makes the hosts do their part of the repair, one after the other. Until the last one has, no take is
// answered.
func (tr *trial) mend() {
	tr.t.Helper()
	order := slices.Concat(tr.hosts[tr.rounds%len(tr.hosts):], tr.hosts[:tr.rounds%len(tr.hosts)])
	from := time.Since(tr.began)
	for i, h := range order {
		everyone(tr, tr.parties, callers, "refused until all have mended", refusals)
		if i == len(order)-1 {
			tr.silent = append(tr.silent, [2]time.Duration{from, time.Since(tr.began)})
		}
		out, err := h.berth("state", "mend", "--yes")
		lab.Must(tr.t, err)
		if all := strings.Contains(out, "and so are all other hosts"); all != (i == len(order)-1) ||
			strings.Contains(out, "has two holders") {
			tr.t.Errorf("host %s, the %d. to mend, says:\n%s", h.name, i+1, out)
		}
	}
}

// status is the daemon's status.
func (h *host) status() (api.Status, error) {
	c := client.New(h.admin())
	defer c.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	return c.Status(ctx)
}
