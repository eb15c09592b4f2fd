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

// patience is far more than anything here takes. It only ends a test that would hang.
const patience = 2 * time.Minute

// program is the daemon that TestMain builds.
var program string

func TestMain(m *testing.M) { os.Exit(lab.Main(m, &program)) }

// daemon is a Berth all of whose doors are open.
type daemon struct {
	*lab.Process
	t      testing.TB
	dir    string
	remote string // where the admin API is spoken over TLS
	scrape string // where metrics are told
	names  string // where names are answered
	token  string // of an admin
	roots  *x509.CertPool
}

// withNames is the flag by which start has names answered, at an address of its own.
const withNames = "--dns-listen"

// start starts one with further flags, and waits until it serves.
func start(t testing.TB, flags ...string) *daemon {
	t.Helper()
	dir, err := os.MkdirTemp("", "berth-doors") // the path of a socket must be short
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

// certify makes a certificate for the address 127.0.0.1, which vouches for itself.
func (d *daemon) certify() {
	d.t.Helper()
	own, err := lab.Authority{}.Sign(x509.Certificate{Subject: pkix.Name{CommonName: "berth"},
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true})
	lab.Must(d.t, err, lab.WritePair(own, d.file("cert.pem"), d.file("key.pem")))
	d.roots = x509.NewCertPool()
	d.roots.AddCert(own.Leaf)
}

// memory is what a process has resident, in MiB: now, and at most since it began (proc(5), VmRSS and VmHWM).
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
