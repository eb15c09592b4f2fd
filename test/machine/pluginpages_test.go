//go:build machine

package machine

import (
	"crypto/x509"
	"fmt"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"berth/test/lab"
)

// The lines of the pages about the managed plugin: it is built, pushed to a registry and installed from there. It
// is then configured, connected to an etcd with certificates and users, and then, as the only manager of a swarm,
// to a plain etcd.
func TestPluginPages(t *testing.T) {
	h := reader(t, "plugin")
	h.hasImages("nginx")
	h.types("make --no-print-directory -C " + source + " uninstall; rm -rf /var/lib/berth")
	h.types("for n in 11 12 13; do ip address add 10.0.0.$n/32 dev lo; done; ip link set lo up")
	h.hasRegistry()
	h.managed()
	h.sharing()
	h.swarm()
}

// tool copies a program of the tests to the machine.
func (h *Harness) tool(name, at string) {
	h.Helper()
	path, err := lab.Tool(name)
	h.must(err)
	program, err := os.ReadFile(path)
	h.must(err)
	h.writes(at, string(program), 0o755)
}

// hasRegistry runs the pages' registry on the loopback, which an engine trusts without TLS.
func (h *Harness) hasRegistry() {
	h.Helper()
	h.tool("docker-registry", "/usr/local/bin/docker-registry")
	h.writes("/root/registry.yml", "version: 0.1\nstorage: {filesystem: {rootdirectory: /var/lib/registry}}\n"+
		"http: {addr: '127.0.0.1:80'}\n", 0o644)
	h.types("systemd-run --unit registry docker-registry serve /root/registry.yml")
	lab.Await(h, 20*time.Second, func() error {
		_, err := h.In("busybox", "wget", "-q", "-O", "-", "http://registry.example/v2/")
		return err
	})
}

// managed makes, pushes, installs and configures the plugin.
func (h *Harness) managed() {
	h.Helper()
	blocks := h.shows("docs/install.md", "## Managed plugin", 3)
	h.types("cd " + source + "\n" + blocks[0])
	h.types("docker plugin rm registry.example/berth:1.0") // the next lines are for another host
	h.types(blocks[1])
	h.types("docker run -d --name kept --network front nginx")
	kept := h.back1("front")
	h.types(blocks[2])
	if now := h.back1("front"); now != kept {
		h.Errorf("the container had %s, and has %s", kept, now)
	}
	h.types("docker network create --ipam-driver registry.example/berth:1.0 second")
	if subnet := h.types("docker network inspect --format '{{(index .IPAM.Config 0).Subnet}}' second"); !strings.HasPrefix(
		subnet, "10.") || !strings.HasSuffix(subnet, "/24") {
		h.Errorf("out of the pool that was set it chooses %s", subnet)
	}
	h.types("docker rm -f kept; docker network rm front second")
}

// back1 is the address of the only container of a network.
func (h *Harness) back1(network string) string {
	h.Helper()
	all, err := h.back(network, 1)
	h.must(err)
	for _, c := range all {
		return c.Address
	}
	return ""
}

// inPlugin waits until `berth status` of the plugin's daemon shows want.
func (h *Harness) inPlugin(want string) {
	h.Helper()
	lab.Await(h, 30*time.Second, func() error {
		out, err := h.In(source+"/bin/berth", "status")
		if err == nil && !strings.Contains(out, want) {
			err = fmt.Errorf("berth status says\n%s", out)
		}
		return err
	})
}

// etcd runs an etcd without data on the addresses of the pages.
func (h *Harness) etcd(scheme, flags string) {
	h.Helper()
	urls := scheme + "://10.0.0.11:2379," + scheme + "://10.0.0.12:2379," + scheme + "://10.0.0.13:2379"
	h.types("rm -rf /var/lib/etcd; systemd-run --unit etcd etcd --data-dir /var/lib/etcd --listen-client-urls " + urls +
		" --advertise-client-urls " + urls + " " + flags)
}

// sharing makes the plugin share an etcd as docs/hosts.md says.
func (h *Harness) sharing() {
	h.Helper()
	h.tool("etcd", "/usr/local/bin/etcd")
	h.tool("etcdctl", "/usr/local/bin/etcdctl")
	a := h.authority("of etcd")
	h.writes("/root/etcd-ca.pem", string(a.pem), 0o644)
	var addresses []net.IP
	for _, one := range []string{"10.0.0.11", "10.0.0.12", "10.0.0.13"} {
		addresses = append(addresses, net.ParseIP(one))
	}
	a.hands("/root/member", &x509.Certificate{IPAddresses: addresses,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}})
	h.etcd("https", "--cert-file /root/member.pem --key-file /root/member.key")
	ctl := "etcdctl --endpoints https://10.0.0.11:2379 --cacert /root/etcd-ca.pem "
	lab.Await(h, 20*time.Second, func() error {
		_, err := h.In("sh", "-c", ctl+"endpoint health")
		return err
	})
	for _, line := range []string{"role add berth", "role grant-permission berth --prefix=true readwrite berth/",
		"user add berth:secret", "user grant-role berth berth", "user add root:root", "auth enable"} {
		h.types(ctl + line)
	}
	line := h.lines(h.shows(hostsPage, "## A managed plugin", 1)[0], 1)[0]
	h.types("docker plugin disable -f registry.example/berth:1.0; " +
		"cd /var/lib/docker/plugins/$(docker plugin inspect -f '{{.Id}}' registry.example/berth:1.0)/propagated-mount; " +
		"cp /root/etcd-ca.pem .; echo secret >etcd-password; chmod 600 etcd-password; " + line +
		"; docker plugin enable registry.example/berth:1.0")
	h.inPlugin("reachable;")
	h.types(source + "/bin/berth network create lan --space global --subnet 10.77.0.0/24,pool; " +
		"docker network create --ipam-driver registry.example/berth:1.0 --ipam-opt network=lan --subnet 10.77.0.0/24 lan; " +
		"docker run -d --name shared --network lan nginx")
	h.back1("lan")
	h.types("docker rm -f shared; docker network rm lan; docker plugin rm -f registry.example/berth:1.0; " +
		"systemctl stop etcd")
}

// swarm makes a swarm of this machine, with networks and services as in docs/swarm.md.
func (h *Harness) swarm() {
	h.Helper()
	h.types("docker swarm init --advertise-addr 10.0.0.11 >/dev/null")
	h.etcd("http", "")
	h.types(h.shows("docs/swarm.md", "## What each node needs", 1)[0])
	h.inPlugin("reachable;")
	overlay := h.shows("docs/swarm.md", "## Overlay networks", 2)
	clear := func(network string) {
		h.Helper()
		h.types("docker service rm web")
		lab.Await(h, 30*time.Second, func() error {
			// a swarm reports it as removed too early, and keeps it while a task ends
			_, err := h.Docker("network", "rm", network)
			if left, _ := h.Docker("network", "ls", "--quiet", "--filter", "name=^"+network+"$"); left != "" {
				return fmt.Errorf("the network %s is left (%v)", network, err)
			}
			return nil
		})
	}
	h.types(overlay[0])
	h.leased("10.80.", 8) // a gateway, one for the service, and one for each task
	clear("front")
	h.types("PATH=$PATH:" + source + "/bin\n" + overlay[1])
	h.types(h.lines(overlay[0], 2)[1])
	h.leased("10.80.1.", 7)
	clear("front")

	h.types("PATH=$PATH:" + source + "/bin\n" + h.shows("docs/swarm.md", "## Node-local networks out of one plan", 1)[0])
	h.back1("lan")
	h.leased("10.77.", 2)
	clear("lan")
	h.types("docker network rm lan-here")
}

// leased waits until at least this many addresses with the prefix are on record.
func (h *Harness) leased(begin string, least int) {
	h.Helper()
	lab.Await(h, 30*time.Second, func() error {
		out, err := h.In(source+"/bin/berth", "lease", "ls", "--format", "{{.Address}} {{.Kind}}")
		if err == nil && strings.Count("\n"+out, "\n"+begin) < least {
			err = fmt.Errorf("these are on record:\n%s", out)
		}
		return err
	})
}
