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

// lanHost is a host on LANs as users have it, in its own namespace: a daemon without rights on the LANs, and a
// `berth edge` with only the right to send on them.
type lanHost struct {
	*clusterHost
	api *client.Client
}

// lanNetwork is a Docker network of a host. A DHCP server of the LAN chooses its addresses.
type lanNetwork struct {
	*lanHost
	lan  *dhcpLAN
	pool string
}

// newHost makes a host with eth0 on the LAN and eth1 on an empty segment, and starts its daemon and its edge.
func (l *dhcpLAN) newHost(name string) *lanHost {
	l.t.Helper()
	h := l.newHostOnly(name)
	h.restart()
	return h
}

// newHostOnly makes a host on which nothing runs yet. keeps are the daemon's flags for the place of its shared
// data.
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

// plug makes an interface of the host and connects it to a switch. Without a switch it has a carrier and no
// neighbours.
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

// connect connects the far end of an interface to a switch, and cut disconnects it. The carrier stays.
func (h *lanHost) connect(device, bridge string) {
	h.t.Helper()
	run(h.t, fmt.Sprintf("ip -n sw link set %s-%s master %s", h.name, device, bridge))
}

func (h *lanHost) cut(device string) {
	h.t.Helper()
	run(h.t, fmt.Sprintf("ip -n sw link set %s-%s nomaster", h.name, device))
}

// startEdge starts the edge with only CAP_NET_RAW.
func (h *lanHost) startEdge() {
	h.t.Helper()
	h.edge = h.start(h.name, h.name+"-edge", "setpriv", "--bounding-set=-all,+net_raw", "--inh-caps=-all",
		"--no-new-privs", h.programs["berth"], "edge", "--provider", "none", "--admin-socket", h.file("a.sock"))
}

// crash kills daemon and edge, like a power cut.
func (h *lanHost) crash() {
	h.edge.Kill()
	h.daemon.Kill()
}

// restart starts both, also for the first time.
func (h *lanHost) restart() {
	h.t.Helper()
	h.startDaemon()
	h.startEdge()
}

// network makes a Docker network of a LAN through an interface. DHCP gives its subnet and gateway; DHCPv6 does
// not.
func (h *lanHost) network(l *dhcpLAN, parent string) *lanNetwork {
	h.t.Helper()
	cidr := ""
	if l.ipv6 {
		cidr = l.terms.own.Masked().String()
	}
	return h.networkOf(l, cidr, map[string]string{"dhcp": parent})
}

// networkOf makes a Docker network with what the engine sends.
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

// ask starts a container: the engine requests its address with its name and a MAC.
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

// macNo is the MAC of a number.
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

// end stops a container.
func (n *lanNetwork) end(a netip.Addr) {
	n.t.Helper()
	n.call("ReleaseAddress", map[string]any{"PoolID": n.pool, "Address": a.String()}, nil)
}

// lease is the daemon's record of an address, or nil.
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

// state is the state of an address, such as "held bound", or empty for an unknown address.
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

// stands waits until all these addresses are in a state.
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

// told are the events with a verb.
func (h *lanHost) told(verb ipam.Verb) []ipam.Event {
	h.t.Helper()
	list, err := h.api.Events(h.t.Context(), ipam.EventFilter{Verbs: []ipam.Verb{verb}, Last: 1000})
	lab.Must(h.t, err)
	return list.Events
}

// until is the end of a lease in the server's lease file.
func (s *dhcpServer) until(a netip.Addr) (time.Time, error) {
	for line := range lastFirst(s.kept()) {
		at, ours, err := s.maker.expiry(line, a.String())
		if ours || err != nil {
			return at, err
		}
	}
	return time.Time{}, fmt.Errorf("%s has no lease of %s", s.maker.name, a)
}

// has reports whether the server has a current lease of an address.
func (s *dhcpServer) has(a netip.Addr) error {
	at, err := s.until(a)
	if err == nil && !at.After(time.Now()) {
		err = errors.New("its time was over at " + at.Format(time.TimeOnly))
	}
	return err
}

// lastFirst yields the lines of a text, the last one first: a server appends, so later lines count more.
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

// eachHost runs a test with each program and family, on a host with a network of its LAN.
func eachHost(t *testing.T, edit func(*dhcpTerms), test func(t *testing.T, n *lanNetwork)) {
	t.Helper()
	eachServer(t, edit, func(t *testing.T, l *dhcpLAN) { test(t, l.newHost("h1").network(l, lanParent)) })
}
