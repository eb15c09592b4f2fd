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

// etcdURL is where the etcd of a fabric serves.
var etcdURL = "http://" + ctlAddress(101) + ":2379"

// Etcd is an etcd of one member, in a network namespace of its own on a fabric. store/etcd and test/cluster have those
// whose members fail.
type Etcd struct{ *Process }

// startEtcd starts it on fresh data and waits until it serves. It runs before others (nice), so that all that the
// containers do at once does not keep it from its turn.
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
