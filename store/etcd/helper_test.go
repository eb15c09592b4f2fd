package etcd

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/embed"
	"go.etcd.io/etcd/server/v3/storage/wal"
	"go.uber.org/goleak"
	"go.uber.org/zap"

	"berth/store"
	"berth/test/lab"
)

// server is an etcd server in this process that the tests of the package share. Each store has its own prefix.
// The first test that needs the server starts it: before the tests begin, the testing package still replaces
// os.Stderr, which etcd reads.
var server = sync.OnceValue(func() *embed.Etcd {
	dir, err := os.MkdirTemp("", "berth-etcd-")
	if err != nil {
		panic(err)
	}
	e, err := startEmbedded(dir, nil)
	if err != nil {
		panic(err)
	}
	return e
})

// embedded returns the shared server's endpoint.
func embedded() string { return "http://" + server().Clients[0].Addr().String() }

var prefixes atomic.Int64

func TestMain(m *testing.M) {
	besideOneAnother()
	wal.SegmentSizeBytes = 1 << 20 // each server fills two segments with zeros
	code := m.Run()
	server().Close()
	_ = os.RemoveAll(server().Config().Dir)
	if code == 0 {
		if err := goleak.Find(); err != nil {
			fmt.Println(err)
			code = 1
		}
	}
	os.Exit(code)
}

// besideOneAnother lets many tests run at the same time: most of their time they wait for a server to start, for
// an answer that does not come, or for a lease to expire.
func besideOneAnother() {
	flag.Parse()
	said := false
	flag.Visit(func(f *flag.Flag) { said = said || f.Name == "test.parallel" })
	if !said {
		_ = flag.Set("test.parallel", "12")
	}
}

// startEmbedded starts a server of one member on a free port; change may change its configuration.
func startEmbedded(dir string, change func(*embed.Config)) (*embed.Etcd, error) {
	cfg := embed.NewConfig()
	cfg.Dir = dir
	cfg.LogLevel = "error"
	cfg.UnsafeNoFsync = true // it need not outlive the machine
	cfg.LogOutputs = []string{os.DevNull}
	free := url.URL{Scheme: "http", Host: "127.0.0.1:0"}
	cfg.ListenClientUrls, cfg.ListenPeerUrls = []url.URL{free}, []url.URL{free}
	if change != nil {
		change(cfg)
	}
	e, err := embed.StartEtcd(cfg)
	if err != nil {
		return nil, err
	}
	select {
	case <-e.Server.ReadyNotify():
		return e, nil
	case <-time.After(20 * time.Second):
		e.Close()
		return nil, fmt.Errorf("the embedded etcd does not get ready")
	}
}

// otherEmbedded starts a server for one test, and returns its endpoint.
func otherEmbedded(t testing.TB, change func(*embed.Config)) string {
	t.Helper()
	e, err := startEmbedded(t.TempDir(), change)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Close)
	return e.Config().ListenClientUrls[0].Scheme + "://" + e.Clients[0].Addr().String()
}

// process is Debian's etcd, running for one test.
type process struct {
	t        testing.TB
	args     []string
	cmd      *exec.Cmd
	endpoint string
	data     string // its directory
}

// startDebian starts Debian's etcd on free ports, one member.
func startDebian(t testing.TB) *process {
	t.Helper()
	p := newMembersOf(t, 1)[0]
	p.start()
	p.answers()
	return p
}

// newMembersOf returns the members of an etcd that is not started yet.
func newMembersOf(t testing.TB, n int) []*process {
	t.Helper()
	var all []*process
	var cluster []string
	for i := range n {
		client, peer, name := lab.Free(t), lab.Free(t), fmt.Sprint("m", i)
		p := &process{t: t, endpoint: "http://" + client, data: filepath.Join(t.TempDir(), "data")}
		p.args = []string{
			"--name=" + name, "--data-dir=" + p.data, "--log-level=error", "--unsafe-no-fsync",
			"--listen-client-urls=http://" + client, "--advertise-client-urls=http://" + client,
			"--listen-peer-urls=http://" + peer, "--initial-advertise-peer-urls=http://" + peer,
		}
		cluster = append(cluster, name+"=http://"+peer)
		all = append(all, p)
		t.Cleanup(func() { p.end(syscall.SIGKILL) })
	}
	for _, p := range all {
		p.args = append(p.args, "--initial-cluster="+strings.Join(cluster, ","))
	}
	return all
}

func (p *process) start() {
	p.t.Helper()
	program, err := filepath.Abs("../../build/tools/etcd")
	if _, serr := os.Stat(program); err != nil || serr != nil {
		if program, err = exec.LookPath("etcd"); err != nil {
			p.t.Fatalf("Debian's etcd is not there (%v): `make test` gets it", err)
		}
	}
	p.cmd = exec.Command(program, p.args...)
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := p.cmd.Start(); err != nil {
		p.t.Fatal(err)
	}
}

// answers waits until the process answers.
func (p *process) answers() {
	p.t.Helper()
	c := rawClient(p.t, p.endpoint)
	eventually(p.t, "Debian's etcd answers", func() bool {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_, err := c.Get(ctx, "x")
		return err == nil
	})
}

// end ends the process with a signal and waits for it.
func (p *process) end(sig syscall.Signal) {
	if p.cmd == nil || p.cmd.Process == nil || p.cmd.ProcessState != nil {
		return
	}
	p.signal(sig)
	_ = p.cmd.Wait() // the error only says that it was killed
}

func (p *process) signal(sig syscall.Signal) {
	p.t.Helper()
	if err := p.cmd.Process.Signal(sig); err != nil {
		p.t.Error(err)
	}
}

// freeze stops the process, and returns when none of its threads runs.
func (p *process) freeze() {
	p.t.Helper()
	p.signal(syscall.SIGSTOP)
	eventually(p.t, "the process is stopped", func() bool {
		stats, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", p.cmd.Process.Pid))
		for _, file := range stats {
			line, rerr := os.ReadFile(file)
			if at := bytes.LastIndexByte(line, ')'); rerr != nil || at < 0 || len(line) < at+3 || line[at+2] != 'T' {
				return false
			}
		}
		return err == nil && len(stats) > 0
	})
}

func rawClient(t testing.TB, endpoint string) *clientv3.Client {
	t.Helper()
	c, err := clientv3.New(clientv3.Config{Endpoints: []string{endpoint}, Logger: zap.NewNop()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func freshPrefix() string { return fmt.Sprintf("test/%d/%d/", os.Getpid(), prefixes.Add(1)) }

// patient returns the configuration of a new store for a test in which etcd answers, however late.
func patient() Config { return Config{Prefix: freshPrefix(), Timeout: 30 * time.Second} }

// open opens a store on a server that answers, however short the handle's timeout is.
func open(t testing.TB, cfg Config) *Store {
	t.Helper()
	if cfg.Endpoints == nil {
		cfg.Endpoints = []string{embedded()}
	}
	var s *Store
	eventually(t, "etcd answers", func() bool {
		var err error
		if s, err = Open(context.Background(), cfg); err != nil && (!errors.Is(err, store.ErrAway) || isBack(err)) {
			t.Fatal(err)
		}
		return err == nil
	})
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// eventually waits until ok answers true.
func eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not within 30 s: %s", what)
		}
	}
}

func update(t testing.TB, s *Store, fn func(store.Tx) error) {
	t.Helper()
	if err := s.Update(context.Background(), fn); err != nil {
		t.Fatalf("Update: %v", err)
	}
}

func putting(key, value string) func(store.Tx) error {
	return func(tx store.Tx) error { return tx.Put([]byte(key), []byte(value)) }
}

// addsTo waits until an update that adds 1 is taken, so that the record is n. An update that timed out may have
// been made.
func addsTo(t *testing.T, s *Store, key string, n int) {
	t.Helper()
	eventually(t, fmt.Sprintf("%s is %d", key, n), func() bool {
		return s.Update(context.Background(), func(tx store.Tx) error {
			if v, err := tx.Get([]byte(key)); err != nil || string(v) == strconv.Itoa(n) {
				return err
			}
			return add(tx, key, 1)
		}) == nil
	})
}

// value reads a record; "-": none.
func value(t testing.TB, s *Store, key string) string {
	t.Helper()
	got := "-"
	err := s.View(context.Background(), func(tx store.Tx) error {
		v, err := tx.Get([]byte(key))
		if v != nil {
			got = string(v)
		}
		return err
	})
	if err != nil {
		t.Fatalf("View: %v", err)
	}
	return got
}

// everything reads all records.
func everything(t testing.TB, s *Store) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := s.View(context.Background(), func(tx store.Tx) error { return scanInto(all, tx) })
	if err != nil {
		t.Fatalf("View: %v", err)
	}
	return all
}

func scanInto(all map[string]string, tx store.Tx) error {
	for r, err := range tx.Scan(store.Range{}) {
		if err != nil {
			return err
		}
		all[string(r.Key)] = string(r.Value)
	}
	return nil
}

// follower notes what a handle is told of others' commits, and checks that it fits together.
type follower struct {
	mu   sync.Mutex
	data map[string]string
	own  string // a record that the handle writes itself, without noting it here
	told int
	tell func() // runs before a commit is noted; nil: nothing
}

func follow(t testing.TB, s *Store) *follower {
	t.Helper()
	f := &follower{data: map[string]string{}}
	load := func(tx store.Tx) error { return scanInto(f.data, tx) }
	err := s.Follow(context.Background(), load, func(all []store.Foreign) {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.told++
		if f.tell != nil {
			f.tell()
		}
		for _, c := range all {
			was, had := f.data[string(c.Key)]
			if string(c.Key) != f.own && (had != (c.Before != nil) || was != string(c.Before)) {
				t.Errorf("told that %q was %q, it was %q", c.Key, c.Before, was)
			}
			if c.After == nil {
				delete(f.data, string(c.Key))
			} else {
				f.data[string(c.Key)] = string(c.After)
			}
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func (f *follower) get(key string) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	if v, ok := f.data[key]; ok {
		return v
	}
	return "-"
}

// set notes a record that the handle has written itself.
func (f *follower) set(key, value string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.data[key] = value
}
