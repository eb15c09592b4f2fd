//go:build engine

package engine

import (
	"flag"
	"fmt"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"berth/test/lab"
)

// dhcpLAN is a LAN with a DHCP server: one end of a veth is the host's interface to it, the other is in a namespace.
type dhcpLAN struct {
	*testing.T
	parent, space string
	server        *Process
	d             *Daemon
	edge          *Process
}

const (
	dhcpSubnet  = "10.213.171.0/24"
	dhcpSubnet6 = "fd00:213:171::/64" // not announced by DHCPv6
)

var dhcpRounds = flag.Int("dhcp.rounds", 0, "how often a container is recreated on a LAN with a DHCP server")

func newDHCPLAN(t *testing.T) *dhcpLAN {
	t.Helper()
	l := &dhcpLAN{T: t, parent: "bthdhcp0", space: prefix + "dhcplan"}
	t.Cleanup(func() {
		lab.Check(t, ip("link delete "+l.parent), removeNamespace(l.space))
	})
	lab.Must(t, ip(
		"netns add "+l.space,
		"link add "+l.parent+" type veth peer name eth0 netns "+l.space,
		"link set "+l.parent+" up",
		"-n "+l.space+" link set eth0 up",
		"-n "+l.space+" address add 10.213.171.1/24 dev eth0",
		"-n "+l.space+" address add fd00:213:171::1/64 dev eth0 nodad",
	))
	l.d = daemon(t, "dhcp", pluginDir, "--docker-host", machineEngine.URL())
	l.serve()
	l.startEdge()
	t.Cleanup(func() {
		if t.Failed() {
			events, err := berth(l.d, "events", "--format", "wide", "--no-trunc", "--last", "12")
			t.Logf("the daemon's log:\n%s\nits events (%v):\n%s", tail(l.d.Log(), 40), err, events)
		}
		for _, p := range []*Process{l.server, l.edge} {
			lab.Check(t, p.Signal(syscall.SIGTERM, 10*time.Second))
		}
	})
	return l
}

// serve starts the server with its earlier leases.
func (l *dhcpLAN) serve() {
	l.Helper()
	var err error
	l.server, err = startProcess(prefix+"dnsmasq", nil, "ip", "netns", "exec", l.space, "dnsmasq", "-k", "-C", "/dev/null",
		"-p", "0", "-i", "eth0", "--bind-dynamic", "-u", "root", "--pid-file=", "--log-facility=-", "--dhcp-authoritative",
		"--no-ping", "--dhcp-leasefile="+filepath.Join(l.d.Dir, "leases"), "--dhcp-range=10.213.171.100,10.213.171.199,120",
		"--dhcp-range=fd00:213:171::100,fd00:213:171::1ff,64,120")
	lab.Must(l, err)
}

func (l *dhcpLAN) startEdge() {
	l.Helper()
	var err error
	l.edge, err = startProcess(prefix+"dhcpedge", nil, binary, "edge", "--provider", "none", "--admin-socket",
		l.d.AdminSocket())
	lab.Must(l, err)
}

// try repeats a docker command until it succeeds: a process started beside it may not be ready yet.
func (l *dhcpLAN) try(args ...string) {
	l.Helper()
	lab.Await(l, 60*time.Second, func() error {
		_, err := machineEngine.Docker(args...)
		return err
	})
}

func (l *dhcpLAN) docker(args ...string) string {
	l.Helper()
	out, err := machineEngine.Docker(args...)
	lab.Must(l, err)
	return strings.TrimSpace(out)
}

// has returns a container's addresses of both families on the LAN, and its MAC.
func (l *dhcpLAN) has(container, network string) (addresses, mac string) {
	l.Helper()
	words := strings.Fields(l.docker("inspect", "-f", `{{with index .NetworkSettings.Networks "`+network+
		`"}}{{.IPAddress}} {{.GlobalIPv6Address}} {{.MacAddress}}{{end}}`, container))
	if len(words) != 3 {
		l.Fatalf("%s has %q", container, words)
	}
	return words[0] + " " + words[1], words[2]
}

// is waits until a container's leases of both families are in a state.
func (l *dhcpLAN) is(container, state string) {
	l.Helper()
	lab.Await(l, 60*time.Second, func() error {
		out, err := berth(l.d, "lease", "ls", "--format", "{{.Name}} {{with .DHCP}}{{.State}}{{end}}")
		so := 0
		for line := range strings.Lines(out) {
			if strings.TrimSpace(line) == container+" "+state {
				so++
			}
		}
		if err == nil && so != 2 {
			err = fmt.Errorf("%s is not %s twice:\n%s", container, state, out)
		}
		return err
	})
}

// TestDHCP: a container on a macvlan network gets an address from its LAN's DHCP server and one from DHCPv6. It keeps
// both if it is recreated with another MAC, if it is restarted, after daemon and edge were killed, and while the
// server is away (LN-15). The test runs alone: without a server it needs the engine's events in time.
func TestDHCP(t *testing.T) {
	l := newDHCPLAN(t)
	network, web := prefix+"dhcp-lan", prefix+"dhcp-web"
	t.Cleanup(func() {
		_, gone := machineEngine.Docker("rm", "-f", web)
		_, err := machineEngine.Docker("network", "rm", network)
		lab.Check(t, gone, err)
	})
	// if Berth asks for MACs, the engine draws a MAC for each start
	l.try("network", "create", "-d", "macvlan", "-o", "parent="+l.parent, "--ipam-driver", byMAC{l.d}.Driver(),
		"--ipam-opt", "dhcp="+l.parent, "--ipv6", "--subnet", dhcpSubnet6, "--gateway", "fd00:213:171::1", network)
	if got := l.docker("network", "inspect", "-f", "{{range .IPAM.Config}}{{.Subnet}} {{end}}", network); !strings.Contains(
		got, dhcpSubnet) || !strings.Contains(got, dhcpSubnet6) {
		t.Fatalf("the network has %s, and its LAN is %s", got, dhcpSubnet)
	}
	run := []string{"run", "-d", "--name", web, "--network", network, imageName, "sleep", "100000"}
	l.docker(run...)
	first, mac := l.has(web, network)
	if !strings.HasPrefix(first, "10.213.171.1") || !strings.Contains(first, " fd00:213:171::1") {
		t.Fatalf("it has %s", first)
	}
	for _, server := range []string{"10.213.171.1", "fd00:213:171::1"} {
		l.try("exec", web, "ping", "-c", "1", "-W", "5", server)
	}
	macs := map[string]bool{mac: true}
	rounds := sample(*dhcpRounds, 3, 10)
	for range rounds {
		l.docker("rm", "-f", web)
		l.docker(run...)
		got, mac := l.has(web, network)
		if got != first {
			t.Fatalf("recreated it has %s, and had %s", got, first)
		}
		macs[mac] = true
	}
	t.Logf("recreated %d times with %d MACs it has %s", rounds, len(macs), first)
	if len(macs) <= rounds/2 {
		t.Errorf("it had only the MACs %v", macs)
	}

	for _, p := range []func() error{l.d.Kill, func() error { return l.edge.Signal(syscall.SIGKILL, 10*time.Second) }} {
		lab.Must(t, p())
	}
	lab.Must(t, l.d.Revive())
	l.startEdge()
	l.docker("restart", "-t", "0", web)
	if got, _ := l.has(web, network); got != first {
		t.Fatalf("after the kill it has %s, and had %s", got, first)
	}
	l.is(web, "bound")

	lab.Must(t, l.server.Signal(syscall.SIGTERM, 10*time.Second))
	l.docker("restart", "-t", "0", web)
	if got, _ := l.has(web, network); got != first {
		t.Fatalf("with the server away it has %s, and had %s", got, first)
	}
	l.is(web, "unconfirmed")
	l.serve()
	l.is(web, "bound")
}
