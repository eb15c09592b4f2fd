//go:build page

package page

import (
	"bufio"
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"berth/internal/admin/client"
	"berth/test/lab"
)

var binary = flag.String("berth", "../../bin/berth", "the berth to look at")

// evil is a note by an attacker: a page that shows it as anything but text writes to the browser's log.
const evil = `<img src=x onerror=console.error('broken-in')><script>console.error('broken-in')</script>'"&`

// long is the longest name of a network, without a place for a line break.
var long = strings.Repeat("n", 60) + "-63"

// site is a daemon with data, and its page.
type site struct {
	t      *testing.T
	dir    string
	plugin *http.Client
	link   string // with the secret
}

func openSite(t *testing.T) *site { return openWith(t, (*site).furnish) }

// openWith opens a daemon and fills it with furnish.
func openWith(t *testing.T, furnish func(*site)) *site {
	t.Helper()
	dir, err := os.MkdirTemp("", "berth-page") // a socket needs a short path
	lab.Must(t, err)
	t.Cleanup(func() { os.RemoveAll(dir) })
	s := &site{t: t, dir: dir}
	s.remember()
	s.start("serve", "--state", filepath.Join(dir, "state"), "--plugin-socket", filepath.Join(dir, "plugin.sock"),
		"--admin-socket", s.socket(), "--docker-host", "none", "--host", "alpha")
	s.plugin = lab.Over(filepath.Join(dir, "plugin.sock"))
	s.await()
	furnish(s)
	out := s.start("page", "--admin-socket", s.socket())
	line, err := bufio.NewReader(out).ReadString('\n')
	lab.Must(t, err)
	go func() { _, _ = io.Copy(io.Discard, out) }()
	s.link = strings.TrimSpace(line)
	return s
}

func (s *site) socket() string { return filepath.Join(s.dir, "admin.sock") }

// start runs a command of berth until the test ends, and returns its standard output.
func (s *site) start(args ...string) io.Reader {
	s.t.Helper()
	cmd := exec.Command(*binary, args...)
	var log bytes.Buffer
	cmd.Stderr = &log
	out, err := cmd.StdoutPipe()
	lab.Must(s.t, err)
	lab.Must(s.t, cmd.Start())
	s.t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGINT)
		if err := cmd.Wait(); err != nil {
			s.t.Errorf("berth %s: %v\n%s", args[0], err, log.String())
		}
	})
	return out
}

// await waits until the daemon answers.
func (s *site) await() {
	c := client.New(s.socket())
	defer c.Close()
	for end := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		_, err := c.Version(s.t.Context())
		if err == nil {
			return
		}
		if time.Now().After(end) {
			s.t.Fatal(err)
		}
	}
}

// berth runs a command and waits for its end.
func (s *site) berth(args ...string) string {
	s.t.Helper()
	cmd := exec.Command(*binary, append(args, "--admin-socket", s.socket())...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		s.t.Fatalf("berth %q: %v\n%s", args, err, out)
	}
	return string(out)
}

// call makes a call of the driver protocol.
func (s *site) call(method string, message map[string]any) map[string]any {
	s.t.Helper()
	var answer map[string]any
	lab.Must(s.t, lab.Call(s.plugin, method, message, &answer))
	return answer
}

// take takes n addresses of a network like the containers of a service.
func (s *site) take(network, subnet, service string, n int) (addresses []string) {
	s.t.Helper()
	pool := s.call("RequestPool", map[string]any{"AddressSpace": "local", "Pool": subnet, "Options": map[string]string{
		"network": network}})["PoolID"] // named, as this machine may have a route there
	for i := range n {
		got := s.call("RequestAddress", map[string]any{"PoolID": pool, "Options": map[string]string{
			"com.docker.network.endpoint.name":       fmt.Sprintf("%s-%d", service, i+1),
			"com.docker.network.endpoint.macaddress": fmt.Sprintf("02:42:%02x:00:00:%02x", len(network), i+1)}})
		address, _, _ := strings.Cut(got["Address"].(string), "/")
		addresses = append(addresses, address)
	}
	for _, address := range addresses[:n/3] { // a third of them has ended again
		s.call("ReleaseAddress", map[string]any{"PoolID": pool, "Address": address})
	}
	return addresses
}

// remember writes the use of some networks over the last day, as the daemon would do.
func (s *site) remember() {
	type ring struct {
		At     int64  `json:"at"`
		Values []byte `json:"values"`
	}
	all := map[string][3]ring{}
	for name, now := range map[string]int{"local\nfront": 10, "local\nshop-web": 10, "local\nshop-db": 92,
		"local\noffice": 56} {
		var of [3]ring
		for n, seconds := range []int64{60, 900, 3600} {
			of[n].At = time.Now().Unix() / seconds
			most := []int{60, 96, 168}[n]
			for k := range most {
				of[n].Values = append(of[n].Values, byte(now*(most+k)/(2*most)+k/7%3))
			}
		}
		all[name] = of
	}
	text, err := json.Marshal(all)
	if err == nil {
		err = os.Mkdir(filepath.Join(s.dir, "state"), 0o700)
	}
	if err == nil {
		err = os.WriteFile(filepath.Join(s.dir, "state", "trend.json"), text, 0o600)
	}
	lab.Must(s.t, err)
}

// shop adds the networks of a small, realistic shop.
func (s *site) shop() {
	s.t.Helper()
	for _, args := range [][]string{
		{"network", "create", "shop-web", "--subnet", "10.20.0.0/24,name=web,gateway=10.20.0.1", "--tag", "stage=live"},
		{"pool", "add", "shop-web", "10.20.0.16-10.20.0.199", "--name", "web"},
		{"exclusion", "add", "shop-web", "10.20.0.60-10.20.0.67", "--note", "load balancers"},
		{"reservation", "add", "shop-web", "--owner", "mail", "--ip", "10.20.0.20", "--note", "allowed by the firewall"},
		{"reservation", "add", "shop-web", "--owner", "shop/search/1", "--ip", "10.20.0.21"},
		{"subnet", "add", "shop-web", "2001:db8:20::/64", "--gateway", "2001:db8:20::1", "--name", "web6", "--pool"},
		{"network", "create", "shop-db", "--subnet", "10.20.1.0/28,gateway=10.20.1.1,pool=10.20.1.2-10.20.1.13", "--tag",
			"stage=live"},
		{"network", "create", "office", "--subnet", "192.168.50.0/24,pool=192.168.50.100-192.168.50.119", "--tag", "site=hq"},
		{"exclusion", "add", "office", "192.168.50.100-192.168.50.103", "--note", "printers"},
		{"address", "take", "office", "--owner", "scanner", "--ip", "192.168.50.12"},
	} {
		s.berth(args...)
	}
	s.take("shop-web", "10.20.0.0/24", "shop-web", 24)
	s.take("shop-db", "10.20.1.0/28", "shop-db", 11)
	s.take("shop-db", "10.20.1.0/28", "shop-cache", 4)
	s.take("office", "192.168.50.0/24", "wiki", 13)
}

// furnish adds data for each view.
func (s *site) furnish() {
	s.t.Helper()
	for _, args := range [][]string{
		{"network", "create", "front", "--subnet", "192.0.2.0/24,name=lan,gateway=192.0.2.1", "--tag", "site=a"},
		{"pool", "add", "front", "192.0.2.10-192.0.2.200", "--name", "web"},
		{"exclusion", "add", "front", "192.0.2.60+5", "--note", evil},
		{"reservation", "add", "front", "--owner", "mail", "--ip", "192.0.2.20", "--note", evil},
		{"reservation", "add", "front", "--owner", "shop/web/1", "--ip", "web"},
		{"subnet", "add", "front", "2001:db8:20::/64", "--gateway", "2001:db8:20::1", "--name", "six", "--pool"},
		{"address", "take", "front", "--owner", "a-very-long-name-of-something-that-is-no-container-at-all", "--ip", "web"},
		{"network", "create", "tight", "--subnet", "198.51.100.0/28,pool=198.51.100.2-198.51.100.12"},
		{"network", "create", long, "--subnet",
			"10.77.0.0/16,pool=10.77.0.0/16", "--tag", "owner=somebody"},
	} {
		s.berth(args...)
	}
	s.take("front", "192.0.2.0/24", "shop-web", 24)
	s.take("tight", "198.51.100.0/28", "db", 10)
	s.take(long, "10.77.0.0/16", "batch", 40)
}
