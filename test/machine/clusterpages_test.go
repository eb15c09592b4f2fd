//go:build machine

package machine

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"berth/test/lab"
)

const (
	clusterPage = "docs/cluster.md"
	hostsPage   = "docs/hosts.md"
)

// The lines of the pages about hosts with a shared store, on the first host of docs/cluster.md. The other two are
// only etcd members.
func TestClusterPages(t *testing.T) {
	h := reader(t, "cluster")
	h.hasImages("nginx", "postgres", "busybox")
	h.types("for n in 11 12 13; do ip address add 10.0.0.$n/32 dev lo; done; ip link set lo up; " +
		"ip netns add lan; ip link add eth1 type veth peer name eth1 netns lan; ip -n lan link set eth1 up")
	h.hasEtcd()
	h.bringsAlong()
	h.hasBridge()
	h.mends()
	h.guards()
}

// hasEtcd installs etcd and starts one of three members, as docs/cluster.md does.
func (h *Harness) hasEtcd() {
	h.Helper()
	h.types("rm -f /etc/apt/sources.list.d/* /etc/apt/sources.list; " +
		"echo 'deb [trusted=yes] file:/srv/apart ./' >/etc/apt/sources.list.d/apart.list; apt-get update")
	blocks := h.shows(clusterPage, "## Run etcd", 4)
	h.types(blocks[0])
	h.writes("/etc/default/etcd", blocks[1], 0o644)
	start := h.lines(blocks[2], 2)
	h.types(start[0])
	for i, name := range []string{"b", "c"} {
		own := fmt.Sprintf("10.0.0.%d", 12+i)
		var settings strings.Builder
		for line := range strings.Lines(blocks[1]) {
			if !strings.HasPrefix(line, "ETCD_INITIAL_CLUSTER=") {
				line = strings.NewReplacer("ETCD_NAME=a", "ETCD_NAME="+name, "10.0.0.11", own,
					",http://127.0.0.1:2379", "").Replace(line)
			}
			settings.WriteString(line)
		}
		h.writes("/root/etcd-"+name, settings.String()+"ETCD_DATA_DIR=/var/lib/etcd-"+name+"\n", 0o644)
		h.types("systemd-run --unit etcd-" + name + " --property EnvironmentFile=/root/etcd-" + name + " /usr/bin/etcd")
	}
	lab.Await(h, 30*time.Second, func() error {
		out, err := h.In("sh", "-c", "exec 2>&1; "+start[1])
		if err == nil && strings.Count(out, "is healthy") != 3 {
			err = fmt.Errorf("not three members are healthy")
		}
		if err != nil {
			err = fmt.Errorf("%w: %s", err, out)
		}
		return err
	})
}

// bringsAlong moves the host's own data to the cluster.
func (h *Harness) bringsAlong() {
	h.Helper()
	h.types("berth network create old --space site --subnet 10.50.0.0/24,pool; berth reservation add old --owner mail")
	h.types(h.shows(clusterPage, "## Bring along an existing host", 1)[0])
	h.writes("/etc/default/berth", h.shows(clusterPage, "## Point Berth at etcd", 2)[0], 0o644)
	h.started()
	h.trusted()
	if out := h.types("berth reservation ls old --format '{{.Owner}}'; berth host ls -q"); out != "mail\na" {
		h.Errorf("in the cluster there are the owner and the host %s", out)
	}
}

// trusted waits until the shared store works.
func (h *Harness) trusted() {
	h.Helper()
	lab.Await(h, 20*time.Second, func() error {
		out, err := h.Berth("status")
		if err == nil && !strings.Contains(out, "reachable;") {
			err = fmt.Errorf("berth status says\n%s", out)
		}
		return err
	})
}

// hasBridge makes the network, the bridge and the containers.
func (h *Harness) hasBridge() {
	h.Helper()
	h.plans(clusterPage, "## Plan the network")
	for _, block := range h.shows(clusterPage, "## Create a bridge on each host", 2) {
		h.types(block)
	}
	lab.Await(h, 20*time.Second, func() error {
		out, err := h.Berth("host", "show", "a", "--format", "{{.Headroom}}")
		if err == nil && out != "16" {
			err = fmt.Errorf("the headroom is %s", out)
		}
		return err
	})
	blocks := h.shows(clusterPage, "## Start containers", 3)
	h.types(blocks[0])
	h.at("lan", "web", "10.77.1.16")
	h.types(blocks[2])
}

// mends empties etcd and restores a backup and the changes made after it.
func (h *Harness) mends() {
	h.Helper()
	h.types("berth state backup --shared cluster.db")
	h.types("berth reservation add lan --owner later --ip 10.77.0.99")
	h.stopped()
	h.types("etcdctl del --prefix berth/")
	h.types(h.shows("docs/backup.md", "## Restore a cluster", 1)[0])
	h.started()
	lab.Await(h, 20*time.Second, func() error {
		out, err := h.Berth("status")
		if err == nil && !strings.Contains(out, "not trusted since") {
			err = fmt.Errorf("berth status says\n%s", out)
		}
		return err
	})
	lines := h.lines(h.shows("docs/cluster-recovery.md", "## Recover", 2)[0], 2)
	if said := h.types(lines[0]); !strings.Contains(said, "would be put back") {
		h.Errorf("%s says %s", lines[0], said)
	}
	h.types(lines[1])
	h.trusted()
	h.at("lan", "web", "10.77.1.16")
	if out := h.types("berth reservation ls lan --format '{{.Owner}}'"); out != "later" {
		h.Errorf("mended, these have reservations: %s", out)
	}
	h.must(h.sound())
}

// guards runs the daemon by hand as docs/hosts.md does, and makes etcd require a user.
func (h *Harness) guards() {
	h.Helper()
	h.stopped()
	h.meanwhile(h.lines(h.shows(hostsPage, "## Settings", 1)[0], 1)[0], func(string) error {
		out, err := h.Berth("host", "ls", "--format", "{{.Name}} {{.Present}}")
		if err == nil && out != "a true" {
			err = fmt.Errorf("berth host ls says %s", out)
		}
		return err
	})
	for _, line := range h.lines(h.shows(hostsPage, "## Require a user", 1)[0], 6) {
		if strings.Contains(line, "user add ") {
			h.answers(line, answer{"assword of", "secret"}, answer{"again", "secret"})
		} else {
			h.types(line)
		}
	}
	if out, err := h.In("sh", "-c", "exec 2>&1; etcdctl get --prefix berth/ --keys-only"); err == nil {
		h.Errorf("without a user one reads\n%s", out)
	}
	h.writes("/etc/berth/etcd-password", "secret\n", 0o600)
	h.types("chown berth /etc/berth/etcd-password")
	h.types("printf 'BERTH_ETCD_USER=berth\nBERTH_ETCD_PASSWORD_FILE=/etc/berth/etcd-password\n' >>/etc/default/berth")
	h.started()
	h.trusted()
	h.at("lan", "web", "10.77.1.16")
	h.types("berth reservation add lan --owner guarded; docker rm -f web db; docker network rm lan")
}
