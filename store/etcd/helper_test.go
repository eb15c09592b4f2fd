package etcd

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"go.etcd.io/etcd/server/v3/embed"
	"go.uber.org/goleak"
)

// embedded is the endpoint of a server in this process that the tests of the package share; each store has a prefix of its own.
var embedded string

var prefixes atomic.Int64

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "berth-etcd-")
	if err != nil {
		panic(err)
	}
	e, err := startEmbedded(dir, nil)
	if err != nil {
		panic(err)
	}
	embedded = e.Clients[0].Addr().String()
	embedded = "http://" + embedded
	code := m.Run()
	e.Close()
	<-e.Server.StopNotify()
	_ = os.RemoveAll(dir)
	if code == 0 {
		if err := goleak.Find(); err != nil {
			fmt.Println(err)
			code = 1
		}
	}
	os.Exit(code)
}

// startEmbedded starts a server of one member on a free port; change may change its configuration.
func startEmbedded(dir string, change func(*embed.Config)) (*embed.Etcd, error) {
	cfg := embed.NewConfig()
	cfg.Dir = dir
	cfg.LogLevel = "error"
	cfg.LogOutputs = []string{os.DevNull}
	any := url.URL{Scheme: "http", Host: "127.0.0.1:0"}
	cfg.ListenClientUrls, cfg.ListenPeerUrls = []url.URL{any}, []url.URL{any}
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

func freshPrefix() string { return fmt.Sprintf("test/%d/%d/", os.Getpid(), prefixes.Add(1)) }

func open(t testing.TB, cfg Config) *Store {
	t.Helper()
	if cfg.Endpoints == nil {
		cfg.Endpoints = []string{embedded}
	}
	s, err := Open(context.Background(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}
