//go:build engine

package engine

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"berth/test/lab"
)

// etcdURL is the URL of a fabric's etcd.
var etcdURL = "http://" + ctlAddress(101) + ":2379"

// Etcd is an etcd of one member, in its own network namespace on a fabric. Failing members are tested in store/etcd
// and test/cluster.
type Etcd struct{ *Process }

// startEtcd starts it with fresh data and waits until it serves. It runs before others (nice), so that many busy
// containers do not starve it.
func startEtcd(f Fabric) (*Etcd, error) {
	program, err := lab.Tool("etcd")
	if err != nil {
		return nil, err
	}
	name := f.begin + "etcd"
	if err := f.station(name, 101); err != nil {
		return nil, err
	}
	p, err := startProcess(name, nil, "nsenter", "--net=/run/netns/"+name, "nice", "-n-15", program,
		"--data-dir", filepath.Join(base, name), "--listen-client-urls", etcdURL, "--advertise-client-urls", etcdURL,
		"--log-level", "warn")
	if err != nil {
		return nil, err
	}
	return &Etcd{p}, lab.Eventually(40*time.Second, func() error {
		if p.ended() {
			return lab.Final(fmt.Errorf("etcd ended:\n%s", tail(p.Log(), 20)))
		}
		out, err := get(name, etcdURL+"/health")
		if err == nil && !strings.Contains(out, `"true"`) {
			err = errors.New(out)
		}
		return err
	})
}

// Stop ends it and deletes its data.
func (e *Etcd) Stop() error {
	return errors.Join(e.Signal(syscall.SIGKILL, 10*time.Second), removeNamespace(e.Name),
		os.RemoveAll(filepath.Join(base, e.Name)), os.Remove(e.logPath()))
}
