package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"berth/store/etcd/etcdtest"
	"berth/test/sockets"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
)

// etcdPath is Debian's, unpacked by scripts/needs.
const etcdPath = "build/tools/etcd"

// servers is an etcd that a measurement runs against.
type servers struct {
	endpoints []string
	stop      func() error
}

// embedded starts three members in this process.
func embedded(dir string) (*servers, error) {
	e, err := etcdtest.Start(dir, 3, true)
	if err != nil {
		return nil, err
	}
	s := &servers{endpoints: e.Endpoints, stop: func() error { e.Close(); return nil }}
	return s, s.ready()
}

// debian starts the one member that Debian's package is.
func debian(dir string) (*servers, error) {
	var urls [2]string
	for i := range urls {
		address, err := sockets.FreeAddress()
		if err != nil {
			return nil, err
		}
		urls[i] = "http://" + address
	}
	client, peer := urls[0], urls[1]
	cmd := exec.Command(etcdPath, "--name", "m0", "--data-dir", filepath.Join(dir, "m0"), "--log-level", "error",
		"--logger", "zap",
		"--listen-client-urls", client, "--advertise-client-urls", client,
		"--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer, "--initial-cluster", "m0="+peer)
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("%w (scripts/needs etcd unpacks it)", err)
	}
	s := &servers{endpoints: []string{client}, stop: func() error {
		if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
			return err
		}
		_ = cmd.Wait() // it says which signal ended it
		return nil
	}}
	return s, s.ready()
}

func (s *servers) client() (*clientv3.Client, error) { return clientOf(s.endpoints) }

func clientOf(endpoints []string) (*clientv3.Client, error) {
	return clientv3.New(clientv3.Config{Endpoints: endpoints, Logger: zap.NewNop(), DialTimeout: 5 * time.Second})
}

// ready waits until a write is answered.
func (s *servers) ready() error {
	c, err := s.client()
	if err != nil {
		return errors.Join(err, s.stop())
	}
	defer c.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	if _, err := c.Put(ctx, "bench/ready", ""); err != nil {
		return errors.Join(fmt.Errorf("etcd does not answer: %w", err), s.stop())
	}
	return nil
}

// bareCreates returns a function that claims one address as plainly as it can be done: a transaction that puts a key
// unless it is there.
func bareCreates(c *clientv3.Client, callers int) func(caller int) error {
	value := strings.Repeat("v", 100)
	run := time.Now().UnixNano()
	next := make([]int, callers)
	return func(caller int) error {
		next[caller]++
		key := fmt.Sprintf("bare/%x/%d/%d", run, caller, next[caller])
		res, err := c.Txn(context.Background()).If(clientv3.Compare(clientv3.CreateRevision(key), "=",
			0)).Then(clientv3.OpPut(key, value)).Commit()
		if err == nil && !res.Succeeded {
			err = fmt.Errorf("%s is there already", key)
		}
		return err
	}
}

// bareBatches returns a function that makes one transaction of what so many addresses ask of etcd, with nothing before
// or behind it: for each a key that must not be there and is put, of the size of a lease, and one key for all, of the
// size of their events.
func bareBatches(c *clientv3.Client, callers, addresses int) func(caller int) error {
	lease, events := strings.Repeat("l", 55), strings.Repeat("e", addresses*(92+11)) // each with its key and lengths
	run := time.Now().UnixNano()
	next := make([]int, callers)
	return func(caller int) error {
		var absent []clientv3.Cmp
		var puts []clientv3.Op
		for range addresses {
			next[caller]++
			of := fmt.Sprintf("%x/%d/%08d", run, caller, next[caller])
			absent = append(absent, clientv3.Compare(clientv3.ModRevision("batch/l/"+of), "=", 0))
			puts = append(puts, clientv3.OpPut("batch/l/"+of, lease))
		}
		puts = append(puts, clientv3.OpPut(fmt.Sprintf("batch/e/%x/%d/%08d", run, caller, next[caller]), events))
		res, err := c.Txn(context.Background()).If(absent...).Then(puts...).Commit()
		if err == nil && !res.Succeeded {
			err = errors.New("one of the keys is there already")
		}
		return err
	}
}
