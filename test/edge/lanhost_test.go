//go:build edge

package edge_test

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"berth/internal/admin/client"
	"berth/internal/ipam"
	"berth/test/lab"
)

// lanHost is a host on LANs as people have it, in a namespace of its own: a daemon, which has no rights there, and a
// `berth edge`, which may speak on them and do nothing else.
type lanHost struct {
	*clusterHost
	api *client.Client
}

// lanNetwork is a Docker network of a host, whose addresses a LAN's server chooses.
type lanNetwork struct {
	*lanHost
	lan  *dhcpLAN
	pool string
}

// newHost makes a host whose eth0 is on the LAN, and eth1 on a switch with nobody, and starts its daemon and its edge.
func (l *dhcpLAN) newHost(name string) *lanHost {
	l.t.Helper()
	h := l.newHostOnly(name)
	h.restart()
	return h
}

// newHostOnly makes a host on which nothing runs yet. Its daemon keeps what it shares by these words.
func (l *dhcpLAN) newHostOnly(name string, keeps ...string) *lanHost {
	l.t.Helper()
	dir, err := os.MkdirTemp("/run", "h")
	lab.Must(l.t, err)
	c := &cluster{t: l.t, dir: dir, programs: map[string]string{"berth": buildBerth(l.t)}}
	h := &lanHost{clusterHost: &clusterHost{cluster: c, name: name, keeps: keeps}}
	h.api = client.New(h.file("a.sock"))
	_ = exec.Command("ip", "netns", "del", name).Run()
	l.t.Cleanup(func() { _ = exec.Command("ip", "netns", "del", name).Run() })
	script(l.t, fmt.Sprintf(`
		ip netns add %[1]s
		ip netns exec %[1]s sysctl -qw net.ipv6.conf.default.accept_dad=0
		ip -n %[1]s link set lo up`, name))
	h.plug(lanParent, l.bridge)
	h.plug(silentParent, "")
	h.plugin = lab.Over(h.file("p.sock"))
	return h
}

// plug makes an interface of the host to a switch; to none, it has a carrier, and nobody is there.
func (h *lanHost) plug(device, bridge string) {
	h.t.Helper()
	port := h.name + "-" + device
	script(h.t, fmt.Sprintf(`
		ip -n sw link add %[1]s type veth peer name %[2]s netns %[3]s
		ip -n sw link set %[1]s up
		ip -n %[3]s link set %[2]s up`, port, device, h.name))
	if bridge != "" {
		h.connect(device, bridge)
	}
}

// connect puts the other end of an interface to a switch, and cut takes it away: the interface has a carrier still.
func (h *lanHost) connect(device, bridge string) {
	h.t.Helper()
	run(h.t, fmt.Sprintf("ip -n sw link set %s-%s master %s", h.name, device, bridge))
}

func (h *lanHost) cut(device string) {
	h.t.Helper()
	run(h.t, fmt.Sprintf("ip -n sw link set %s-%s nomaster", h.name, device))
}

// startEdge starts the edge with CAP_NET_RAW alone.
func (h *lanHost) startEdge() {
	h.t.Helper()
	h.edge = h.start(h.name, h.name+"-edge", "setpriv", "--bounding-set=-all,+net_raw", "--inh-caps=-all",
		"--no-new-privs", h.programs["berth"], "edge", "--provider", "none", "--admin-socket", h.file("a.sock"))
}

// crash ends daemon and edge as a power cut does.
func (h *lanHost) crash() {
	h.edge.Kill()
	h.daemon.Kill()
}

// restart starts both, be it for the first time.
func (h *lanHost) restart() {
	h.t.Helper()
	h.startDaemon()
	h.startEdge()
}

// network makes a Docker network of a LAN by an interface. DHCP tells its subnet and its gateway; DHCPv6 does not.
func (h *lanHost) network(l *dhcpLAN, parent string) *lanNetwork {
	h.t.Helper()
	cidr := ""
	if l.ipv6 {
		cidr = l.terms.own.Masked().String()
	}
	return h.networkOf(l, cidr, map[string]string{"dhcp": parent})
}

// networkOf makes one by what the engine sends.
func (h *lanHost) networkOf(l *dhcpLAN, cidr string, options map[string]string) *lanNetwork {
	h.t.Helper()
	var answer struct{ PoolID, Pool string }
	within(h.t, 5*time.Second, "the network", func() error { // the edge may not be connected yet
		return lab.Call(h.plugin, "RequestPool", map[string]any{"AddressSpace": "local", "Pool": cidr, "V6": l.ipv6,
			"Options": options}, &answer)
	})
	if want := l.terms.own.Masked().String(); cidr == "" && answer.Pool != want {
		h.t.Fatalf("the network has %s, and its LAN is %s", answer.Pool, want)
	}
	return &lanNetwork{lanHost: h, lan: l, pool: answer.PoolID}
}

// ask starts a container: the engine asks for its address, by its name and a MAC.
func (n *lanNetwork) ask(name string, mac int) (netip.Addr, error) {
	var answer struct{ Address string }
	err := lab.Call(n.plugin, "RequestAddress", map[string]any{"PoolID": n.pool, "Options": map[string]string{
		"com.docker.network.endpoint.macaddress": macNo(mac).String(),
		"com.docker.network.endpoint.name":       name}}, &answer)
	if err != nil {
		return netip.Addr{}, err
	}
	p, err := netip.ParsePrefix(answer.Address)
	return p.Addr(), err
}

// macNo is a MAC for each number.
func macNo(n int) ipam.MAC { return ipam.MAC{2, 0x42, 7, byte(n >> 16), byte(n >> 8), byte(n)} }

func (n *lanNetwork) take(name string, mac int) netip.Addr {
	n.t.Helper()
	var a netip.Addr
	lab.Must(n.t, lab.Eventually(5*time.Second, func() (err error) {
		if a, err = n.ask(name, mac); err != nil && !strings.Contains(err.Error(), "no edge is connected") {
			err = lab.Final(err)
		}
		return err
	}))
	return a
}

// end ends a container.
func (n *lanNetwork) end(a netip.Addr) {
	n.t.Helper()
	n.call("ReleaseAddress", map[string]any{"PoolID": n.pool, "Address": a.String()}, nil)
}

// lease is what the daemon's records say of an address; nil: nothing.
func (n *lanNetwork) lease(a netip.Addr) *ipam.LeaseInfo {
	n.t.Helper()
	all, err := n.api.Leases(n.t.Context(), ipam.LeaseFilter{Address: a, Remembered: true})
	lab.Must(n.t, err)
	for i := range all {
		if all[i].Address == a {
			return &all[i]
		}
	}
	return nil
}

// state is how it stands with an address, such as "held bound"; empty: nothing is known of it.
func (n *lanNetwork) state(a netip.Addr) string {
	n.t.Helper()
	l := n.lease(a)
	switch {
	case l == nil:
		return ""
	case l.DHCP == nil:
		return l.State
	}
	return l.State + " " + l.DHCP.State.String()
}

// stands waits until all of these are in a state.
func (n *lanNetwork) stands(d time.Duration, want string, all ...netip.Addr) {
	n.t.Helper()
	within(n.t, d, want, func() error {
		for _, a := range all {
			if got := n.state(a); got != want {
				return fmt.Errorf("%s is %q", a, got)
			}
		}
		return nil
	})
}

// told are the events of a verb.
func (h *lanHost) told(verb ipam.Verb) []ipam.Event {
	h.t.Helper()
	list, err := h.api.Events(h.t.Context(), ipam.EventFilter{Verbs: []ipam.Verb{verb}, Last: 1000})
	lab.Must(h.t, err)
	return list.Events
}

// until is when the server takes a lease for over by what it has written down.
func (s *dhcpServer) until(a netip.Addr) (time.Time, error) {
	for line := range lastFirst(s.kept()) {
		at, ours, err := s.maker.expiry(line, a.String())
		if ours || err != nil {
			return at, err
		}
	}
	return time.Time{}, fmt.Errorf("%s has no lease of %s", s.maker.name, a)
}

// has reports whether the server takes a lease of an address for one that lasts.
func (s *dhcpServer) has(a netip.Addr) error {
	at, err := s.until(a)
	if err == nil && !at.After(time.Now()) {
		err = errors.New("its time was over at " + at.Format(time.TimeOnly))
	}
	return err
}

// lastFirst yields the lines of a text, the last one first: what a server adds counts more than what it had.
func lastFirst(text string) func(func(string) bool) {
	return func(yield func(string) bool) {
		for text = strings.TrimRight(text, "\n"); text != ""; {
			at := strings.LastIndexByte(text, '\n')
			if !yield(text[at+1:]) || at < 0 {
				return
			}
			text = text[:at]
		}
	}
}

// eachHost runs a test with each program, of each family, on a host with a network of its LAN.
func eachHost(t *testing.T, edit func(*dhcpTerms), test func(t *testing.T, n *lanNetwork)) {
	t.Helper()
	eachServer(t, edit, func(t *testing.T, l *dhcpLAN) { test(t, l.newHost("h1").network(l, lanParent)) })
}
