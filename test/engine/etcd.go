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

	"berth/test/ground"
)

// first has a program run before others (nice): etcd's machines are others than those of the hosts, and what all their
// containers do at once does not keep it from its turn.
const first = "-n-15"

// Etcd is an etcd of three members, or under -short of one, each in a network namespace of its own on a fabric.
type Etcd struct {
	fabric  Fabric
	members []*Process
}

// startEtcd starts the members on fresh data and waits until each of them serves.
func startEtcd(f Fabric) (*Etcd, error) {
	program, err := toolPath("etcd")
	if err != nil {
		return nil, err
	}
	c := &Etcd{fabric: f}
	var peers []string
	members := sample(0, 1, 3) // what becomes of an etcd whose members fail is in store/etcd and test/cluster
	for i := range members {
		peers = append(peers, fmt.Sprintf("m%d=http://%s:2380", i, ctlAddress(101+i)))
	}
	for i := range members {
		name := c.name(i)
		if err := f.station(name, 101+i); err != nil {
			return nil, err
		}
		url := "http://" + ctlAddress(101+i)
		p, err := startProcess(name, nil, "nsenter", "--net=/run/netns/"+name, "nice", first, program, "--name",
			fmt.Sprintf("m%d", i),
			"--data-dir", filepath.Join(base, name), "--initial-cluster", strings.Join(peers, ","),
			"--listen-client-urls", url+":2379", "--advertise-client-urls", url+":2379",
			"--listen-peer-urls", url+":2380", "--initial-advertise-peer-urls", url+":2380",
			"--heartbeat-interval", "100", "--election-timeout", "1000", "--log-level", "warn")
		if err != nil {
			return nil, err
		}
		c.members = append(c.members, p)
	}
	for i, p := range c.members {
		if err := ground.Eventually(40*time.Second, func() error {
			if p.ended() {
				return fmt.Errorf("etcd ended:\n%s", tail(p.Log(), 20))
			}
			out, err := get(c.name(i), "http://"+ctlAddress(101+i)+":2379/health")
			if err == nil && !strings.Contains(out, `"true"`) {
				return errors.New(out)
			}
			return err
		}); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// name is the namespace of a member.
func (c *Etcd) name(member int) string { return fmt.Sprintf("%setcd%d", c.fabric.begin, member) }

// Endpoints is what a client is told.
func (c *Etcd) Endpoints() string {
	var all []string
	for i := range c.members {
		all = append(all, "http://"+ctlAddress(101+i)+":2379")
	}
	return strings.Join(all, ",")
}

// Log is what the members have written, for a test that failed.
func (c *Etcd) Log() string {
	var all strings.Builder
	for i, p := range c.members {
		fmt.Fprintf(&all, "%s:\n%s\n", c.name(i), tail(p.Log(), 20))
	}
	return all.String()
}

// Stop ends the members and deletes their data.
func (c *Etcd) Stop() error {
	var errs []error
	for i, p := range c.members {
		errs = append(errs, p.Signal(syscall.SIGKILL, 10*time.Second), removeNamespace(c.name(i)),
			os.RemoveAll(filepath.Join(base, c.name(i))), os.Remove(p.logPath()))
	}
	return errors.Join(errs...)
}
