//go:build edge

package edge_test

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"berth/test/lab"
)

// dhcpTerms is the configuration of a DHCP server of either family.
type dhcpTerms struct {
	ipv6     bool
	own      netip.Prefix // the server's own address, and its subnet
	from, to netip.Addr   // the addresses that it leases
	lasts    int          // seconds
	shy      bool         // not authoritative: it ignores requests for addresses that it does not know
	byMAC    [2]string    // a reservation: MAC and address
	byID     [2]string    // a reservation: client identifier after its type 0, or DUID in hexadecimal digits; address
}

// maker is one of the server programs under test.
type maker struct {
	name string
	// command writes the server's files into dir and returns its command.
	command func(t testing.TB, dir string, terms dhcpTerms) []string
	// leases is the lease file in dir.
	leases string
	// expiry reads from a line of the lease file when the lease of an address ends. ours: the line is about that
	// address.
	expiry func(line, addr string) (at time.Time, ours bool, err error)
}

var makers = []maker{
	{"dnsmasq", dnsmasqCommand, "dnsmasq.leases", dnsmasqExpiry},
	{"kea", keaCommand, "kea.csv", keaExpiry},
}

// dnsmasqExpiry reads a line of: the end, the MAC or IAID, the address, the host name and the client.
func dnsmasqExpiry(line, addr string) (at time.Time, ours bool, err error) {
	words := strings.Fields(line)
	if len(words) < 3 || words[2] != addr {
		return at, false, nil
	}
	return seconds(words[0])
}

// keaExpiry reads a line of: the address, one or two words about the client (two only for DHCP), the lifetime, the
// end, and later a state, which is 0 only for a current lease.
func keaExpiry(line, addr string) (at time.Time, ours bool, err error) {
	words, end, state := strings.Split(line, ","), 4, 9
	if strings.Contains(addr, ":") {
		end, state = 3, 13
	}
	if len(words) <= state || words[0] != addr {
		return at, false, nil
	}
	if words[state] != "0" || words[end-1] == "0" {
		return at, true, fmt.Errorf("the lease is over: %s", line)
	}
	return seconds(words[end])
}

func seconds(word string) (at time.Time, ours bool, err error) {
	n, err := strconv.ParseInt(word, 10, 64)
	return time.Unix(n, 0), true, err
}

func dnsmasqCommand(t testing.TB, dir string, terms dhcpTerms) []string {
	t.Helper()
	program, err := lab.Tool("dnsmasq")
	lab.Must(t, err)
	bits, host := "", ""
	if terms.ipv6 {
		bits, host = fmt.Sprintf("%d,", terms.own.Bits()), "id:"
	}
	words := []string{program, "-k", "-C", "/dev/null", "-p", "0", "-i", "eth0", "--bind-dynamic", "-u", "root",
		"--pid-file=", "--log-facility=-", "--no-ping", "--dhcp-lease-max=5000",
		"--dhcp-leasefile=" + filepath.Join(dir, "dnsmasq.leases"),
		fmt.Sprintf("--dhcp-range=%s,%s,%s%d", terms.from, terms.to, bits, terms.lasts)}
	if !terms.shy {
		words = append(words, "--dhcp-authoritative")
	}
	if terms.byMAC[0] != "" {
		client := terms.byMAC[0]
		if terms.ipv6 { // dnsmasq uses the sender's MAC, which is the host's; the DUID identifies the client
			client = "id:00:03:00:01:" + client
		}
		words = append(words, "--dhcp-host="+client+","+bracketed(terms.byMAC[1]))
	}
	if terms.byID[0] != "" {
		id := terms.byID[0]
		if !terms.ipv6 {
			id, host = "00"+hex.EncodeToString([]byte(id)), "id:"
		}
		words = append(words, "--dhcp-host="+host+colons(id)+","+bracketed(terms.byID[1]))
	}
	return words
}

// bracketed is an address as dnsmasq reads it.
func bracketed(addr string) string {
	if strings.Contains(addr, ":") {
		return "[" + addr + "]"
	}
	return addr
}

// colons puts colons between pairs of digits.
func colons(digits string) string {
	var pairs []string
	for i := 0; i+1 < len(digits); i += 2 {
		pairs = append(pairs, digits[i:i+2])
	}
	return strings.Join(pairs, ":")
}

// keaCommand runs Debian's Kea: the copy that scripts/needs unpacks, or an installed one.
func keaCommand(t testing.TB, dir string, terms dhcpTerms) []string {
	t.Helper()
	family, name := "4", "Dhcp4"
	if terms.ipv6 {
		family, name = "6", "Dhcp6"
	}
	program, err := lab.Tool("kea/usr/sbin/kea-dhcp" + family)
	lab.Must(t, err)
	subnet := map[string]any{"id": 1, "subnet": terms.own.Masked().String(), "interface": "eth0",
		"pools": []any{map[string]any{"pool": fmt.Sprintf("%s - %s", terms.from, terms.to)}}}
	config := map[string]any{
		"interfaces-config": map[string]any{"interfaces": []string{"eth0"}},
		"lease-database": map[string]any{"type": "memfile", "persist": true, "lfc-interval": 0,
			"name": filepath.Join(dir, "kea.csv")},
		// without this Kea since 2.4 keeps a released address for its last client for an hour
		"expired-leases-processing": map[string]any{"hold-reclaimed-time": 0},
		"valid-lifetime":            terms.lasts, "renew-timer": terms.lasts / 2, "rebind-timer": terms.lasts * 7 / 8,
		"loggers": []any{map[string]any{"name": "kea-dhcp" + family, "severity": "WARN",
			"output_options": []any{map[string]any{"output": "stdout"}}}},
	}
	address, id := "ip-address", "client-id"
	if terms.ipv6 {
		id = "duid"
		config["preferred-lifetime"] = terms.lasts
		config["server-id"] = map[string]any{"type": "LL", "persist": false}
	} else {
		config["authoritative"] = !terms.shy
		subnet["option-data"] = []any{map[string]any{"name": "routers", "data": terms.own.Addr().String()}}
	}
	var reserved []any
	add := func(key, value, addr string) {
		one := map[string]any{key: value}
		if one[address] = addr; terms.ipv6 {
			delete(one, address)
			one["ip-addresses"] = []string{addr}
		}
		reserved = append(reserved, one)
	}
	if terms.byMAC[0] != "" {
		add("hw-address", terms.byMAC[0], terms.byMAC[1])
	}
	if terms.byID[0] != "" {
		digits := terms.byID[0]
		if !terms.ipv6 {
			digits = "00" + hex.EncodeToString([]byte(digits))
		}
		add(id, colons(digits), terms.byID[1])
	}
	if reserved != nil {
		subnet["reservations"] = reserved
	}
	config["subnet"+family] = []any{subnet}
	text, err := json.Marshal(map[string]any{name: config})
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "kea.json"), text, 0o600)
	}
	lab.Must(t, err)
	libraries := filepath.Join(filepath.Dir(program), "../lib", architecture(t))
	return []string{"env", "KEA_LOCKFILE_DIR=" + dir, "KEA_PIDFILE_DIR=" + dir, "KEA_DHCP_DATA_DIR=" + dir,
		"LD_LIBRARY_PATH=" + libraries, program, "-c", filepath.Join(dir, "kea.json")}
}

// architecture is Debian's name of the library directory.
func architecture(t testing.TB) string {
	t.Helper()
	return strings.TrimSpace(run(t, "dpkg-architecture -qDEB_HOST_MULTIARCH 2>/dev/null || echo $(uname -m)-linux-gnu"))
}

// dhcpServer is a server in its own namespace on the LAN.
type dhcpServer struct {
	t       testing.TB
	maker   maker
	terms   dhcpTerms
	ns, dir string
	command []string
	program *lab.Process
	cluster *cluster // starts the programs
}

// newServer puts a server on the LAN, in its own namespace, and starts it.
func (l *dhcpLAN) newServer(m maker, ns string, terms dhcpTerms) *dhcpServer {
	l.t.Helper()
	dir, err := os.MkdirTemp("/run", "d")
	lab.Must(l.t, err)
	script(l.t, fmt.Sprintf(`
		ip netns add %[1]s
		ip -n %[1]s link set lo up
		ip netns exec %[1]s sysctl -qw net.ipv6.conf.default.accept_dad=0
		ip -n sw link add %[1]s type veth peer name eth0 netns %[1]s
		ip -n sw link set %[1]s master %[3]s up
		ip -n %[1]s link set eth0 up
		ip -n %[1]s addr add %[2]s dev eth0`, ns, terms.own, l.bridge))
	l.t.Cleanup(func() { _ = exec.Command("ip", "netns", "del", ns).Run() })
	s := &dhcpServer{t: l.t, maker: m, terms: terms, ns: ns, dir: dir, cluster: &cluster{t: l.t, dir: dir}}
	s.command = m.command(l.t, dir, terms)
	s.start()
	return s
}

// start starts the server and waits until it listens.
func (s *dhcpServer) start() {
	s.t.Helper()
	s.program = s.cluster.start(s.ns, s.maker.name, s.command...)
	file, port := "/proc/net/udp", ":0043 "
	if s.terms.ipv6 {
		file, port = "/proc/net/udp6", ":0223 "
	}
	s.program.Await(s.t, func() error {
		sockets, err := exec.Command("nsenter", "--net=/run/netns/"+s.ns, "cat", file).Output()
		if err != nil || !strings.Contains(string(sockets), port) {
			return fmt.Errorf("it has no socket (%w)", err)
		}
		return nil
	})
}

// stop kills the server, like a crash.
func (s *dhcpServer) stop() { s.program.Kill() }

// forget deletes the server's leases. The server must not run.
func (s *dhcpServer) forget() {
	s.t.Helper()
	files, err := filepath.Glob(filepath.Join(s.dir, s.maker.leases+"*"))
	lab.Must(s.t, err)
	for _, file := range files {
		lab.Must(s.t, os.Remove(file))
	}
}

// forgetOne deletes the lease of one address. The server must not run.
func (s *dhcpServer) forgetOne(a netip.Addr) {
	s.t.Helper()
	lines := slices.DeleteFunc(strings.SplitAfter(s.kept(), "\n"), func(line string) bool {
		_, ours, _ := s.maker.expiry(line, a.String())
		return ours
	})
	lab.Must(s.t, os.WriteFile(filepath.Join(s.dir, s.maker.leases), []byte(strings.Join(lines, "")), 0o600))
}

// kept is the server's lease file.
func (s *dhcpServer) kept() string {
	s.t.Helper()
	text, err := os.ReadFile(filepath.Join(s.dir, s.maker.leases))
	if err != nil && !os.IsNotExist(err) {
		s.t.Fatal(err)
	}
	return string(text)
}

// keeps waits until these words are in the lease file: the server may write them after it has answered. dnsmasq
// writes a DHCPv6 client after a number, Kea as pairs of digits.
func (s *dhcpServer) keeps(words ...string) {
	s.t.Helper()
	within(s.t, 2*time.Second, "the server's leases", func() error {
		for _, word := range words {
			if text := s.kept(); !strings.Contains(text, word) &&
				!strings.Contains(strings.ReplaceAll(text, ":", ""), word) {
				return fmt.Errorf("there is no %s in %s", word, text)
			}
		}
		return nil
	})
}

// uuidOf is the DUID, in hexadecimal digits, of a client that is known by its name: type 4, and a UUID of version
// 8 from the name's SHA-256.
func uuidOf(id string) string {
	hash := sha256.Sum256([]byte(id))
	hash[6], hash[8] = hash[6]&0x0f|0x80, hash[8]&0x3f|0x80
	return "0004" + hex.EncodeToString(hash[:16])
}
