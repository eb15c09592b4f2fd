package cluster

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"berth/test/lab"
)

// member is one member of etcd across its restarts.
type member struct {
	*node
	*lab.Process
	t     testing.TB
	data  string // its directory
	words []string
}

func (m *member) url() string  { return "http://" + m.addr + ":2379" }
func (m *member) peer() string { return "http://" + m.addr + ":2380" }

func (m *member) start() { m.Process = lab.Start(m.t, m.command(m.words)) }

// etcdServers is a cluster of three members, with the tests' own client, which only reads its state.
type etcdServers struct {
	t       testing.TB
	members []*member
	cluster string // the list of all members, for --initial-cluster
	token   string
	client  *clientv3.Client
}

// etcdTool is Debian's etcd or etcdctl: the copy that scripts/needs unpacks, or an installed one.
func etcdTool(t testing.TB, name string) string {
	t.Helper()
	path, err := lab.Tool(name)
	lab.Must(t, err)
	return path
}

func startEtcd(t testing.TB) *etcdServers {
	t.Helper()
	program := etcdTool(t, "etcd")
	dir := tempDir(t)
	e := &etcdServers{t: t, token: filepath.Base(dir)}
	var cluster, urls []string
	for n := 1; n <= 3; n++ {
		m := &member{node: newNode(t, fmt.Sprintf("m%d", n), n), t: t}
		m.data = filepath.Join(dir, m.name)
		e.members = append(e.members, m)
		cluster = append(cluster, m.name+"="+m.peer())
		urls = append(urls, m.url())
	}
	e.cluster = strings.Join(cluster, ",")
	for _, m := range e.members {
		m.words = []string{program, "--name", m.name, "--data-dir", m.data, "--log-level", "error", "--logger", "zap",
			"--listen-client-urls", m.url(), "--advertise-client-urls", m.url(), "--listen-peer-urls", m.peer(),
			"--initial-advertise-peer-urls", m.peer(),
			"--initial-cluster", e.cluster, "--initial-cluster-token", e.token}
		m.start()
	}
	var err error
	if e.client, err = clientv3.New(clientv3.Config{Endpoints: urls, Logger: zap.NewNop(),
		DialTimeout: time.Second}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { e.client.Close() })
	e.whole()
	return e
}

func (e *etcdServers) endpoints() string {
	var urls []string
	for _, m := range e.members {
		urls = append(urls, m.url())
	}
	return strings.Join(urls, ",")
}

// status is the status that one member reports.
func (e *etcdServers) status(m *member) (*clientv3.StatusResponse, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 500*time.Millisecond)
	defer cancel()
	return e.client.Status(ctx, m.url())
}

// whole waits until all members follow one leader.
func (e *etcdServers) whole() {
	e.t.Helper()
	lab.AwaitOf(e.t, "etcd is whole", func() error {
		var first *clientv3.StatusResponse
		for _, m := range e.members {
			st, err := e.status(m)
			if err != nil {
				return fmt.Errorf("%s: %w", m.name, err)
			}
			if first == nil {
				first = st
			}
			if st.Leader == 0 || st.Leader != first.Leader {
				return fmt.Errorf("%s follows %x, and %s %x", m.name, st.Leader, e.members[0].name, first.Leader)
			}
		}
		return nil
	}, e.processes()...)
}

func (e *etcdServers) processes() (all []*lab.Process) {
	for _, m := range e.members {
		all = append(all, m.Process)
	}
	return all
}

// leader returns the leading member and the others.
func (e *etcdServers) leader() (leader *member, others []*member) {
	e.t.Helper()
	lab.AwaitOf(e.t, "there is a leader", func() error {
		leader, others = nil, nil
		for _, m := range e.members {
			st, err := e.status(m)
			if err == nil && st.Leader == st.Header.MemberId {
				leader = m
			} else {
				others = append(others, m)
			}
		}
		if leader == nil || len(others) != 2 {
			return fmt.Errorf("no leader is known")
		}
		return nil
	})
	return leader, others
}

// another returns nil if one of the given members leads.
func (e *etcdServers) another(of []*member) error {
	for _, m := range of {
		if st, err := e.status(m); err == nil && st.Leader == st.Header.MemberId {
			return nil
		}
	}
	return fmt.Errorf("none of the other members leads")
}

// headless returns nil if the member reports that it knows no leader.
func (e *etcdServers) headless(m *member) error {
	st, err := e.status(m)
	switch {
	case err != nil:
		return fmt.Errorf("%s: %w", m.name, err)
	case st.Leader != 0:
		return fmt.Errorf("%s still knows a leader", m.name)
	}
	return nil
}

func (m *member) freeze() { m.Signal(m.t, syscall.SIGSTOP) }
func (m *member) thaw()   { m.Signal(m.t, syscall.SIGCONT) }

// stopped returns an error unless the process is stopped.
func (m *member) stopped() error {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", m.Cmd.Process.Pid))
	if err != nil {
		return err
	}
	_, state, _ := strings.Cut(string(text), ") ")
	if !strings.HasPrefix(state, "T") {
		return fmt.Errorf("process %d is not stopped: %.1s", m.Cmd.Process.Pid, state)
	}
	return nil
}
