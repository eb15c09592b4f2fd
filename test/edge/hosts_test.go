//go:build edge

package edge_test

import (
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"berth/test/lab"
)

// The addresses of two hosts that share an etcd, each with a daemon, a `berth edge` and guests.
const (
	store       = "db"
	storeAddr   = "10.9.0.3"
	hostSubnet  = "172.30.0.0/16"
	hostSubnet6 = "fd30:2::/64"
)

// cluster is the hosts, their store, and the peer outside, on one switch.
type cluster struct {
	t        testing.TB
	dir      string
	hosts    []*clusterHost
	programs map[string]string
}

// clusterHost is one host: a namespace with a daemon and an edge.
type clusterHost struct {
	*cluster
	name         string
	keeps        []string // the daemon's flags for the place of its shared data
	daemon, edge *lab.Process
	plugin       *http.Client
	pools        []string // IPv4, then IPv6
}

// newCluster makes a switch with the store, the peer and two hosts, and starts everything. The options are for the
// elastic range.
func newCluster(t *testing.T, options string) *cluster {
	t.Helper()
	dir, err := os.MkdirTemp("/run", "c")
	lab.Must(t, err)
	c := &cluster{t: t, dir: dir}
	c.programs = map[string]string{"berth": buildBerth(t)}
	names := []string{"sw", store, peer, "h1", "h2", "g1", "g2", "g3", "g4"}
	remove := func() {
		for _, ns := range names {
			_ = exec.Command("ip", "netns", "del", ns).Run()
		}
	}
	remove()
	t.Cleanup(remove)
	script(t, `
		ip netns add sw
		ip -n sw link add lan type bridge
		ip -n sw link set lan up`)
	c.join(store, storeAddr, "2001:db8::3")
	c.join(peer, peer4.String(), peer6.String())
	c.startStore()
	for n := 1; n <= 2; n++ {
		c.hosts = append(c.hosts, c.newHost(n))
	}
	first := c.hosts[0]
	first.berth("network", "create", "net1", "--space", "global", "--subnet", hostSubnet+",gateway=172.30.255.254,pool",
		"--subnet", hostSubnet6+",gateway=fd30:2::ffff,pool")
	first.berth("network", "modify", "net1", "--elastic", "on")
	for _, r := range []string{"10.9.0.96+16", "2001:db8::100+16"} {
		first.berth(append([]string{"elastic", "range", "add", r, "--announce", "eth0"}, strings.Fields(options)...)...)
	}
	for _, a := range both {
		first.berth("elastic", "allocate", "--ip", a.String())
	}
	for _, h := range c.hosts {
		h.attach()
		h.startEdge()
	}
	return c
}

// inStore are the flags that give the daemon the store.
var inStore = []string{"--store", "etcd", "--etcd-endpoints", "http://" + storeAddr + ":2379"}

// startStore starts an etcd in the namespace of the store.
func (c *cluster) startStore() {
	c.t.Helper()
	etcd, err := lab.Tool("etcd")
	lab.Must(c.t, err)
	c.start(store, "etcd", etcd, "--data-dir", filepath.Join(c.dir, "etcd"), "--logger", "zap",
		"--log-level", "error",
		"--listen-client-urls", "http://"+storeAddr+":2379", "--advertise-client-urls", "http://"+storeAddr+":2379",
		"--listen-peer-urls", "http://127.0.0.1:2380", "--initial-advertise-peer-urls", "http://127.0.0.1:2380",
		"--initial-cluster", "default=http://127.0.0.1:2380")
}

// both are one address of each family that the hosts have for their guests.
var both = []netip.Addr{elastic4, elastic6}

// join puts a namespace on the switch.
func (c *cluster) join(ns, a4, a6 string) {
	c.t.Helper()
	script(c.t, fmt.Sprintf(`
		ip netns add %[1]s
		ip netns exec %[1]s sysctl -qw net.ipv6.conf.default.accept_dad=0
		ip -n %[1]s link set lo up
		ip -n sw link add %[1]s type veth peer name eth0 netns %[1]s
		ip -n sw link set %[1]s master lan up
		ip -n %[1]s link set eth0 up
		ip -n %[1]s addr add %[2]s/24 dev eth0
		ip -n %[1]s addr add %[3]s/64 dev eth0 nodad`, ns, a4, a6))
}

func (c *cluster) newHost(n int) *clusterHost {
	c.t.Helper()
	h := &clusterHost{cluster: c, name: fmt.Sprintf("h%d", n), keeps: inStore}
	h.plugin = lab.Over(h.file("p.sock"))
	c.join(h.name, fmt.Sprintf("10.9.0.%d", 10+n), fmt.Sprintf("2001:db8::%d", 10+n))
	script(c.t, strings.ReplaceAll(`
		ip -n HOST link add br0 type bridge
		ip -n HOST addr add 172.30.255.254/16 dev br0
		ip -n HOST addr add fd30:2::ffff/64 dev br0 nodad
		ip -n HOST link set br0 up
		ip netns exec HOST sysctl -qw net.ipv4.ip_forward=1 net.ipv6.conf.all.forwarding=1`, "HOST", h.name))
	for tool, subnet := range map[string]string{"iptables": hostSubnet, "ip6tables": hostSubnet6} {
		script(c.t, strings.NewReplacer("TOOL", "ip netns exec "+h.name+" "+tool+" -w", "SUBNET", subnet).Replace(`
			TOOL -P FORWARD DROP
			TOOL -N DOCKER-USER
			TOOL -A FORWARD -j DOCKER-USER
			TOOL -A FORWARD -o br0 -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT
			TOOL -A FORWARD -i br0 -j ACCEPT
			TOOL -t nat -A POSTROUTING -s SUBNET ! -o br0 -j MASQUERADE`))
	}
	h.startDaemon()
	return h
}

func (h *clusterHost) file(name string) string { return filepath.Join(h.dir, h.name+name) }

// startDaemon starts the daemon and waits until it answers.
func (h *clusterHost) startDaemon() {
	h.t.Helper()
	h.daemon = h.start(h.name, h.name+"-daemon", append([]string{h.programs["berth"], "serve", "--host", h.name,
		"--state", h.file("state"), "--plugin-socket", h.file("p.sock"), "--admin-socket", h.file("a.sock"),
		"--docker-host", "none", "--log-level", "info"}, h.keeps...)...)
	within(h.t, 5*time.Second, h.name+"'s daemon", func() error {
		c, err := net.Dial("unix", h.file("a.sock"))
		if err != nil {
			return err
		}
		_ = c.Close()
		_, err = h.try("network", "ls")
		return err
	})
}

func (h *clusterHost) startEdge() {
	h.t.Helper()
	h.edge = h.start(h.name, h.name+"-edge", h.programs["berth"], "edge", "--admin-socket", h.file("a.sock"))
}

// start starts a program in a namespace. Its log is shown if the test fails.
func (c *cluster) start(ns, name string, words ...string) *lab.Process {
	c.t.Helper()
	p := lab.Start(c.t, exec.Command("nsenter", append([]string{"--net=/run/netns/" + ns}, words...)...))
	c.t.Cleanup(func() {
		if c.t.Failed() {
			log := p.Log()
			c.t.Logf("%s:\n%s", name, log[max(0, len(log)-4000):])
		}
	})
	return p
}

// try runs a command on the daemon.
func (h *clusterHost) try(words ...string) (string, error) {
	out, err := exec.Command(h.programs["berth"], append(words, "--admin-socket", h.file("a.sock"))...).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%s: berth %v: %w: %s", h.name, words, err, out)
	}
	return string(out), nil
}

func (h *clusterHost) berth(words ...string) string {
	h.t.Helper()
	out, err := h.try(words...)
	lab.Must(h.t, err)
	return out
}

// call sends a message of the plugin's protocol.
func (h *clusterHost) call(method string, message, answer any) {
	h.t.Helper()
	lab.Must(h.t, lab.Call(h.plugin, method, message, answer))
}

// attach attaches a Docker network of the host to net1.
func (h *clusterHost) attach() {
	h.t.Helper()
	for _, subnet := range []string{hostSubnet, hostSubnet6} {
		var answer struct{ PoolID string }
		h.call("RequestPool", map[string]any{"AddressSpace": "local", "Pool": subnet, "V6": subnet == hostSubnet6,
			"Options": map[string]string{"network": "net1"}}, &answer)
		h.pools = append(h.pools, answer.PoolID)
	}
}

// guestOn is a container on a host.
type guestOn struct {
	ns, mac string
}

// newGuest starts a container on the host: Docker requests its addresses, and it gets a namespace with a server
// that replies with the address of the client.
func (h *clusterHost) newGuest(ns string) guestOn {
	h.t.Helper()
	g := guestOn{ns: ns, mac: "02:00:00:00:00:0" + ns[len(ns)-1:]}
	script(h.t, fmt.Sprintf(`
		ip netns add %[1]s
		ip netns exec %[1]s sysctl -qw net.ipv6.conf.default.accept_dad=0
		ip -n %[1]s link set lo up
		ip -n %[2]s link add v%[1]s type veth peer name eth0 netns %[1]s
		ip -n %[2]s link set v%[1]s master br0 up
		ip -n %[1]s link set eth0 up`, ns, h.name))
	for _, pool := range h.pools {
		var answer struct{ Address string }
		h.call("RequestAddress", map[string]any{"PoolID": pool,
			"Options": map[string]string{"com.docker.network.endpoint.macaddress": g.mac}}, &answer)
		nodad := ""
		if strings.Contains(answer.Address, ":") {
			nodad = "nodad"
		}
		run(h.t, fmt.Sprintf("ip -n %s addr add %s dev eth0 %s", ns, answer.Address, nodad))
	}
	script(h.t, fmt.Sprintf(`
		ip -n %[1]s route add default via 172.30.255.254
		ip -n %[1]s route add default via fd30:2::ffff`, ns))
	serve(h.t, ns)
	return g
}

// cutOff blocks the host's traffic to the store, and nothing else.
func (h *clusterHost) cutOff() {
	h.t.Helper()
	run(h.t, strings.NewReplacer("HOST", h.name, "STORE", storeAddr).Replace(`ip netns exec HOST nft -f - <<'E'
	table inet cut {
		chain in { type filter hook input priority -300; ip saddr STORE counter drop; }
		chain out { type filter hook output priority -300; ip daddr STORE counter drop; }
	}
E`))
}

func (h *clusterHost) heal() {
	h.t.Helper()
	run(h.t, "ip netns exec "+h.name+" nft delete table inet cut")
}

// answersFor is the name of the guest that answers the peer at an address.
func answersFor(a netip.Addr) string {
	text, err := ask(peer, "udp", a)
	if err != nil {
		return err.Error()
	}
	name, _, _ := strings.Cut(text, " ")
	return name
}

// reaches waits until the peer reaches a guest at an address.
func (c *cluster) reaches(a netip.Addr, ns string, long time.Duration) {
	c.t.Helper()
	within(c.t, long, a.String()+" leads to "+ns, func() error {
		if got := answersFor(a); got != ns {
			return fmt.Errorf("it leads to %s", got)
		}
		return nil
	})
}
