//go:build edge

package edge_test

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"berth/test/lab"
)

// forwarder is a user's DNS server that forwards to Berth, set up as docs/dns-forward.md shows.
type forwarder struct {
	name string
	// command runs it in the foreground at 127.0.0.1:53, with the page's lines in a file.
	command func(t *testing.T, dir, lines string) []string
}

var forwarders = []forwarder{{"dnsmasq", dnsmasqForwarder}, {"Unbound", unboundForwarder}}

// dnsmasqForwarder forwards only what the lines say, and refuses private addresses from other servers.
func dnsmasqForwarder(t *testing.T, _, lines string) []string {
	t.Helper()
	program, err := lab.Tool("dnsmasq")
	lab.Must(t, err)
	return []string{program, "-k", "-C", lines, "--listen-address=127.0.0.1", "--bind-interfaces", "--no-resolv", "--no-hosts",
		"--stop-dns-rebind", "-u", "root", "--pid-file=", "--log-facility=-"}
}

// unboundForwarder does the same with Unbound: the copy that scripts/needs unpacks, or an installed one.
func unboundForwarder(t *testing.T, dir, lines string) []string {
	t.Helper()
	program, err := lab.Tool("unbound")
	lab.Must(t, err)
	conf := filepath.Join(dir, "unbound.conf")
	text := fmt.Sprintf(`server:
  interface: 127.0.0.1
  do-daemonize: no
  username: ""
  chroot: ""
  directory: "%s"
  pidfile: ""
  use-syslog: no
  logfile: ""
  private-address: 10.0.0.0/8
  private-address: 192.168.0.0/16
remote-control:
  control-enable: no
include: "%s"
`, dir, lines)
	lab.Must(t, os.WriteFile(conf, []byte(text), 0o600))
	return []string{program, "-d", "-c", conf}
}

// shownFor is the block under the server's name in docs/dns-forward.md.
func shownFor(t *testing.T, name string) string {
	t.Helper()
	page, err := os.ReadFile("../../docs/dns-forward.md")
	lab.Must(t, err)
	_, below, found := strings.Cut(string(page), "\n**"+name+"**")
	_, block, opened := strings.Cut(below, "\n```\n")
	block, _, closed := strings.Cut(block, "```\n")
	if !found || !opened || !closed {
		t.Fatalf("docs/dns-forward.md shows nothing for %s", name)
	}
	return block
}

// TestForwarders: DNS servers with the lines of docs/dns-forward.md answer for names and addresses of Berth's
// networks, even if they refuse other private addresses.
func TestForwarders(t *testing.T) {
	berth, dir := buildBerth(t), t.TempDir()
	clear := func() { _ = exec.Command("ip", "addr", "del", "192.168.1.2/32", "dev", "lo").Run() }
	clear()
	t.Cleanup(clear)
	run(t, "ip link set lo up && ip addr add 192.168.1.2/32 dev lo")
	socket := filepath.Join(dir, "a.sock")
	background(t, berth, "serve", "--state", filepath.Join(dir, "state"), "--plugin-socket", filepath.Join(dir, "p.sock"),
		"--admin-socket", socket, "--docker-host", "none", "--dns-listen", "192.168.1.2:5354", "--dns-zone", "lan.example")
	within(t, 5*time.Second, "the daemon", func() error {
		return exec.Command(berth, "network", "ls", "--admin-socket", socket).Run()
	})
	for _, words := range []string{"network create home --subnet 192.168.1.0/24", "network create back --subnet 10.1.0.0/16",
		"reservation add home --owner web --ip 192.168.1.50", "reservation add back --owner shop/db/1 --ip 10.1.2.3"} {
		run(t, berth+" "+words+" --admin-socket "+socket)
	}
	for _, f := range forwarders {
		t.Run(f.name, func(t *testing.T) {
			lines := filepath.Join(t.TempDir(), "berth.conf")
			lab.Must(t, os.WriteFile(lines, []byte(shownFor(t, f.name)), 0o600))
			words := f.command(t, t.TempDir(), lines)
			background(t, words[0], words[1:]...)
			r := &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, network, _ string) (net.Conn, error) {
				return new(net.Dialer).DialContext(ctx, network, "127.0.0.1:53")
			}}
			for name, want := range map[string]string{"web.home.lan.example.": "192.168.1.50",
				"web.lan.example.": "192.168.1.50", "1.db.shop.back.lan.example.": "10.1.2.3"} {
				within(t, 10*time.Second, name, func() error {
					got, err := r.LookupHost(t.Context(), name)
					if err != nil || len(got) != 1 || got[0] != want {
						return fmt.Errorf("%s is at %v (%w), not %s", name, got, err, want)
					}
					return nil
				})
			}
			for at, want := range map[string]string{"192.168.1.50": "web.home.lan.example.",
				"10.1.2.3": "1.db.shop.back.lan.example."} {
				if got, err := r.LookupAddr(t.Context(), at); err != nil || len(got) != 1 || got[0] != want {
					t.Errorf("%s is called %v (%v), not %s", at, got, err, want)
				}
			}
			if got, err := r.LookupHost(t.Context(), "nobody.home.lan.example."); err == nil {
				t.Errorf("nobody is at %v", got)
			}
		})
	}
}

// background runs a program until the test ends. If the test fails, it shows the program's output.
func background(t *testing.T, program string, words ...string) {
	t.Helper()
	p := lab.Start(t, exec.Command(program, words...))
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("%s:\n%s", filepath.Base(program), p.Log())
		}
	})
}
