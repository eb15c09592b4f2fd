package doors

import (
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"berth/internal/admin/api"
	"berth/internal/admin/client"
	"berth/test/lab"
)

// patience is far longer than anything here takes. It only ends a hanging test.
const patience = 2 * time.Minute

// program is the daemon that TestMain builds.
var program string

func TestMain(m *testing.M) { os.Exit(lab.Main(m, &program)) }

// daemon is a Berth with all its listeners open.
type daemon struct {
	*lab.Process
	t      testing.TB
	dir    string
	remote string // address of the admin API over TLS
	scrape string // address of the metrics
	names  string // address of the name server
	token  string // of an admin
	roots  *x509.CertPool
}

// withNames is the flag that makes start serve names, at a free address.
const withNames = "--dns-listen"

// start starts a daemon with further flags and waits until it serves.
func start(t testing.TB, flags ...string) *daemon {
	t.Helper()
	dir, err := os.MkdirTemp("", "berth-doors") // socket paths must be short
	lab.Must(t, err)
	t.Cleanup(func() { os.RemoveAll(dir) })
	d := &daemon{t: t, dir: dir,
		remote: lab.Free(t), scrape: lab.Free(t), names: lab.Free(t)}
	d.certify()
	d.launch(flags)
	c := client.New(d.admin())
	defer c.Close()
	d.Await(t, func() error {
		_, err := c.Status(t.Context())
		return err
	})
	made, err := c.CreateToken(t.Context(), api.TokenRequest{Name: "doors", Role: api.RoleAdmin})
	lab.Must(t, err)
	d.token = made.Token
	return d
}

func (d *daemon) plugin() string { return filepath.Join(d.dir, "berth.sock") }
func (d *daemon) admin() string  { return filepath.Join(d.dir, "admin.sock") }

func (d *daemon) launch(flags []string) {
	d.t.Helper()
	args := []string{"serve", "--state", filepath.Join(d.dir, "state"), "--host", "alpha", "--docker-host", "none",
		"--plugin-socket", d.plugin(), "--admin-socket", d.admin(), "--log-level", "warning",
		"--admin-listen", d.remote, "--admin-cert", d.file("cert.pem"), "--admin-key", d.file("key.pem"),
		"--metrics-listen", d.scrape}
	for _, flag := range flags {
		if args = append(args, flag); flag == withNames {
			args = append(args, d.names, "--dns-zone", "lan.example")
		}
	}
	d.Process = lab.Start(d.t, exec.Command(program, args...))
}

func (d *daemon) file(name string) string { return filepath.Join(d.dir, name) }

// certify makes a self-signed certificate for 127.0.0.1.
func (d *daemon) certify() {
	d.t.Helper()
	own, err := lab.Authority{}.Sign(x509.Certificate{Subject: pkix.Name{CommonName: "berth"},
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true})
	lab.Must(d.t, err, lab.WritePair(own, d.file("cert.pem"), d.file("key.pem")))
	d.roots = x509.NewCertPool()
	d.roots.AddCert(own.Leaf)
}

// memory is the resident memory of a process, in MiB: now, and the most since its start (proc(5), VmRSS and
// VmHWM).
type memory struct{ now, most float64 }

var resident = regexp.MustCompile(`Vm(RSS|HWM):\s+(\d+) kB`)

func (d *daemon) memory() (m memory) {
	d.t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", d.Cmd.Process.Pid))
	lab.Must(d.t, err)
	for _, found := range resident.FindAllStringSubmatch(string(text), -1) {
		kib, err := strconv.Atoi(found[2])
		lab.Must(d.t, err)
		if found[1] == "RSS" {
			m.now = float64(kib) / 1024
		} else {
			m.most = float64(kib) / 1024
		}
	}
	if m.now == 0 || m.most == 0 {
		d.t.Fatalf("how much memory it has is not in %s", strings.TrimSpace(string(text)))
	}
	return m
}
