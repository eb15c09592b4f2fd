package doors

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"berth/internal/admin/api"
	"berth/internal/admin/client"
	"berth/test/sockets"
)

// patience is far more than anything here takes. It only ends a test that would hang.
const patience = 2 * time.Minute

// program is the daemon that TestMain builds.
var program string

func TestMain(m *testing.M) { os.Exit(buildAndRun(m)) }

func buildAndRun(m *testing.M) int {
	dir, err := os.MkdirTemp("", "berth-doors")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	program = filepath.Join(dir, "berth")
	// `go run` keeps the program that it has linked, which `go build` does not.
	if out, err := exec.Command("go", "run", "-exec", "cp", "berth/cmd/berth", program).CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "building the daemon: %v\n%s", err, out)
		return 1
	}
	return m.Run()
}

// daemon is a Berth all of whose doors are open.
type daemon struct {
	t      testing.TB
	dir    string
	cmd    *exec.Cmd
	ended  chan struct{}
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
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	d := &daemon{t: t, dir: dir, ended: make(chan struct{}),
		remote: sockets.Free(t), scrape: sockets.Free(t), names: sockets.Free(t)}
	d.certify()
	d.launch(flags)
	c := client.New(d.admin())
	defer c.Close()
	d.await(func() error {
		_, err := c.Status(t.Context())
		return err
	})
	made, err := c.CreateToken(t.Context(), api.TokenRequest{Name: "doors", Role: api.RoleAdmin})
	if err != nil {
		t.Fatal(err)
	}
	d.token = made.Token
	return d
}

func (d *daemon) plugin() string { return filepath.Join(d.dir, "berth.sock") }
func (d *daemon) admin() string  { return filepath.Join(d.dir, "admin.sock") }
func (d *daemon) log() string    { return filepath.Join(d.dir, "log") }

func (d *daemon) launch(flags []string) {
	d.t.Helper()
	log, err := os.Create(d.log())
	if err != nil {
		d.t.Fatal(err)
	}
	defer log.Close()
	args := []string{"serve", "--state", filepath.Join(d.dir, "state"), "--host", "alpha", "--docker-host", "none",
		"--plugin-socket", d.plugin(), "--admin-socket", d.admin(), "--log-level", "warning",
		"--admin-listen", d.remote, "--admin-cert", d.file("cert.pem"), "--admin-key", d.file("key.pem"),
		"--metrics-listen", d.scrape}
	for _, flag := range flags {
		if args = append(args, flag); flag == withNames {
			args = append(args, d.names, "--dns-zone", "lan.example")
		}
	}
	d.cmd = exec.Command(program, args...)
	d.cmd.Stdout, d.cmd.Stderr = log, log
	if err := d.cmd.Start(); err != nil {
		d.t.Fatal(err)
	}
	go func() {
		_ = d.cmd.Wait()
		close(d.ended)
	}()
	d.t.Cleanup(func() {
		_ = d.cmd.Process.Signal(syscall.SIGKILL) // it may have ended already
		<-d.ended
	})
}

func (d *daemon) file(name string) string { return filepath.Join(d.dir, name) }

// await tries until it is nil, and fails the test where the daemon ends before.
func (d *daemon) await(try func() error) {
	d.t.Helper()
	for deadline := time.Now().Add(patience); ; time.Sleep(2 * time.Millisecond) {
		err := try()
		if err == nil {
			return
		}
		select {
		case <-d.ended:
			d.t.Fatalf("the daemon ended:\n%s", d.logged())
		default:
		}
		if time.Now().After(deadline) {
			d.t.Fatalf("not within %s: %v\n%s", patience, err, d.logged())
		}
	}
}

// logged is the end of the log.
func (d *daemon) logged() string {
	text, err := os.ReadFile(d.log())
	if err != nil {
		return err.Error()
	}
	return string(text[max(0, len(text)-4000):])
}

// certify makes a certificate for the address 127.0.0.1, which vouches for itself.
func (d *daemon) certify() {
	d.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	d.check(err)
	c := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "berth"},
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, c, c, &key.PublicKey, key)
	d.check(err)
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	d.check(err)
	cert := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	d.check(os.WriteFile(d.file("cert.pem"), cert, 0o600))
	d.check(os.WriteFile(d.file("key.pem"), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret}), 0o600))
	d.roots = x509.NewCertPool()
	d.roots.AppendCertsFromPEM(cert)
}

func (d *daemon) check(err error) {
	d.t.Helper()
	if err != nil {
		d.t.Fatal(err)
	}
}

// memory is what a process has resident, in MiB: now, and at most since it began (proc(5), VmRSS and VmHWM).
type memory struct{ now, most float64 }

var resident = regexp.MustCompile(`Vm(RSS|HWM):\s+(\d+) kB`)

func (d *daemon) memory() (m memory) {
	d.t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", d.cmd.Process.Pid))
	d.check(err)
	for _, found := range resident.FindAllStringSubmatch(string(text), -1) {
		kib, err := strconv.Atoi(found[2])
		d.check(err)
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
