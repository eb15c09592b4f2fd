package deploy_test

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"berth/internal/admin"
	"berth/internal/admin/api"
	"berth/internal/admin/client"
	"berth/internal/alloc"
	"berth/internal/cli"
	"berth/internal/cli/deploy"
	"berth/internal/docker"
	"berth/internal/ipam"
	_ "berth/internal/ipam/ipamtest" // fewer rounds under the race detector
	"berth/internal/ipam/service"
	"berth/store/bolt"
	"berth/test/still"

	"github.com/sirupsen/logrus"
	"github.com/spf13/cobra"
)

// harness is a daemon in this process, with an engine and a compose command that only answer questions.
type harness struct {
	testing.TB
	store   *bolt.Store
	service *service.Service
	socket  string
	engine  *still.Engine
	host    string // of the engine
	compose *still.Command
	dir     string       // of the project
	behind  atomic.Int64 // how far the daemon's clock lags
}

func enter(t testing.TB) *harness {
	t.Helper()
	return enterBehind(t, 0)
}

// enterBehind is enter with a daemon whose clock lags. h.behind changes that.
func enterBehind(t testing.TB, behind time.Duration) *harness {
	t.Helper()
	h := &harness{TB: t, engine: &still.Engine{Images: map[string]string{}}, dir: filepath.Join(t.TempDir(), "shop")}
	h.behind.Store(int64(behind))
	state := t.TempDir()
	h.socket = filepath.Join(state, "admin.sock")
	store, err := bolt.Open(t.Context(), bolt.Config{Path: filepath.Join(state, "berth.db"), NoSync: true})
	h.must(err)
	h.store = store
	t.Cleanup(func() { h.must(store.Close()) })
	h.service, err = service.Open(t.Context(), service.Config{Store: store, Host: "alpha",
		Now: func() time.Time { return time.Now().Add(-time.Duration(h.behind.Load())) }})
	h.must(err)
	quiet := logrus.New()
	quiet.SetOutput(io.Discard)
	witness := docker.New(docker.Config{Service: h.service, Host: "alpha", Log: logrus.NewEntry(quiet)})
	server := admin.New(admin.Config{Service: h.service, Release: witness.ReleaseLease,
		Log: logrus.NewEntry(quiet), GID: -1, TempDir: state,
		Version:  api.Version{Version: "v1", Host: "alpha", Driver: "berth", Started: time.Now()},
		Writable: store.Writable})
	l, err := net.Listen("unix", h.socket)
	h.must(err)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(ctx, l) }()
	t.Cleanup(func() {
		cancel()
		h.must(<-ended)
	})
	h.host, err = h.engine.Serve(state)
	h.must(err)
	t.Cleanup(h.engine.Close)
	h.compose, err = still.NewCommand(state)
	h.must(err)
	h.must(h.compose.Hashes(nil))
	h.must(os.MkdirAll(h.dir, 0o700))
	return h
}

func (h *harness) must(err error) {
	h.Helper()
	if err != nil {
		h.Fatal(err)
	}
}

// edit makes edits as a person.
func (h *harness) edit(edits ...ipam.Edit) {
	h.Helper()
	c := client.New(h.socket)
	defer c.Close()
	_, err := c.Edit(context.Background(), client.EditOptions{}, edits...)
	h.must(err)
}

// plan creates a planned network with a pool in each of its subnets: 10.8.0.0/24 10.8.0.10+20.
func (h *harness) plan(name string, subnetsAndPools ...string) {
	h.Helper()
	create := &ipam.CreateNetwork{Name: name}
	edits := []ipam.Edit{create}
	for i := 0; i < len(subnetsAndPools); i += 2 {
		cidr := netip.MustParsePrefix(subnetsAndPools[i])
		create.Subnets = append(create.Subnets, ipam.SubnetSpec{CIDR: cidr, Gateway: cidr.Addr().Next()})
		edits = append(edits, &ipam.AddPool{Network: name, Range: h.ipRange(subnetsAndPools[i+1])})
	}
	h.edit(edits...)
}

func (h *harness) ipRange(text string) ipam.Range {
	h.Helper()
	r, err := alloc.ParseRange(text)
	h.must(err)
	return ipam.Range{IPRange: r}
}

// file writes the project's Compose file.
func (h *harness) file(text string) string {
	h.Helper()
	name := filepath.Join(h.dir, "compose.yaml")
	h.must(os.WriteFile(name, []byte(text), 0o600))
	return name
}

// berth runs a verb of `berth deploy` as the command does.
func (h *harness) berth(verb string, args ...string) (code int, stdout, stderr string) {
	var out, said bytes.Buffer
	p := cli.New("dev")
	p.Out, p.Stderr, p.Env = &out, &said, func(string) string { return "" }
	root := &cobra.Command{Use: "berth", SilenceErrors: true, SilenceUsage: true}
	p.Hang(root, cli.Topic{Title: "Deploys", Commands: []cli.Row{deploy.Command(p)}})
	args = append([]string{"deploy", verb, "--admin-socket", h.socket, "--docker-host", h.host, "--compose-command",
		h.compose.Words(), "--project-directory", h.dir}, args...)
	code = p.Run(context.Background(), root, args)
	return code, out.String(), said.String()
}
