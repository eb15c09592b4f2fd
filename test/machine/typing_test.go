//go:build machine

package machine

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"berth/test/lab"
)

// reader is the machine of a user who has installed Berth and types the lines of further pages.
func reader(t *testing.T, name string) *Harness {
	t.Helper()
	m, err := newMachine(name)
	h := enter(t, m, err)
	t.Cleanup(func() { h.must(h.Remove()) })
	h.must(h.Boot())
	h.must(h.install(binary))
	h.must(h.importImage())
	return h
}

// hasImages gives the machine substitutes for images that pages name.
func (h *Harness) hasImages(names ...string) {
	h.Helper()
	for _, name := range names {
		_, err := h.In("sh", "-c", `tar -C /root/image -c . | docker import --change `+
			`'CMD ["sh", "-c", "trap exit TERM; while :; do sleep 1000 & wait; done"]' - `+name)
		h.must(err)
	}
}

// shows are the blocks of a page below a heading. It fails unless there are n of them.
func (h *Harness) shows(page, below string, n int) (texts []string) {
	h.Helper()
	all, err := lab.Shows(page, below)
	h.must(err)
	for _, one := range all {
		texts = append(texts, one.Text)
	}
	if len(texts) != n {
		h.Fatalf("%s shows %d blocks below %q, and this test knows %d: %q", page, len(texts), below, n, texts)
	}
	return texts
}

// lines are the lines of a block. It fails unless there are n of them.
func (h *Harness) lines(block string, n int) []string {
	h.Helper()
	lines := lab.LinesOf(block)
	if len(lines) != n {
		h.Fatalf("this test knows %d lines of %q", n, lines)
	}
	return lines
}

// types runs a whole block in a shell, unchanged, and returns all output.
func (h *Harness) types(block string) string {
	h.Helper()
	out, err := h.In("sh", "-ec", "exec 2>&1; cd /root; "+block)
	if err != nil {
		h.Fatalf("%s\n%v\n%s", block, err, out)
	}
	h.Logf("%s\n%s", strings.TrimSpace(block), out)
	return out
}

// answers types a line that asks questions on the terminal, and types the answers.
func (h *Harness) answers(line string, answers ...answer) {
	h.Helper()
	out, err := h.converse(line, answers...)
	h.must(err)
	h.Logf("%s\n%s", line, out)
}

// plans runs the Berth commands that a page shows below a heading, except those that the page shows as refused.
func (h *Harness) plans(page, below string) {
	h.Helper()
	all, err := lab.Shows(page, below)
	h.must(err)
	for _, block := range all {
		if block.Language != "console" {
			continue
		}
		for _, one := range strings.Split("\n"+block.Text, "\n$ ")[1:] {
			line, says, _ := strings.Cut(one, "\n")
			if !strings.Contains("\n"+says, "\nberth: ") {
				h.types(line)
			}
		}
	}
}

// writes puts a file onto the machine.
func (h *Harness) writes(name, text string, mode os.FileMode) {
	h.Helper()
	path := h.root(name)
	h.must(os.MkdirAll(filepath.Dir(path), 0o755))
	h.must(os.WriteFile(path, []byte(text), mode))
}

// meanwhile runs a line that does not end by itself until seen succeeds, and ends it like Ctrl-C.
func (h *Harness) meanwhile(line string, seen func(said string) error) {
	h.Helper()
	said, err := os.Create(filepath.Join(h.dir, "said"))
	h.must(err)
	defer said.Close()
	args := h.command("sh", "-c", "cd /root; echo $$ >meanwhile; exec "+line+" 2>&1")
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Stdout = said
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	h.must(cmd.Start())
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	saying := func() string {
		b, _ := os.ReadFile(said.Name())
		return string(b)
	}
	err = lab.Eventually(20*time.Second, func() error {
		select {
		case err := <-ended:
			ended <- err
			return lab.Final(fmt.Errorf("it has ended: %v", err))
		default:
			return seen(saying())
		}
	})
	if err != nil {
		h.Errorf("%s: %v\n%s", line, err, saying())
	}
	if _, err := h.In("sh", "-c", "kill -INT $(cat /root/meanwhile)"); err != nil {
		h.Error(err)
	}
	if err := <-ended; err != nil {
		h.Errorf("%s ends with %v\n%s", line, err, saying())
	}
	h.Logf("%s\n%s", line, saying())
}

// network is the path of the machine's network namespace.
func (m *Machine) network() string { return fmt.Sprintf("/proc/%d/ns/net", m.init) }

// listens listens on an address of the machine; the test process answers there.
func (h *Harness) listens(address string) net.Listener {
	h.Helper()
	l, err := lab.In(h.network(), func() (net.Listener, error) { return net.Listen("tcp", address) })
	h.must(err)
	return l
}

// visits requests a link from the machine like a browser without cookies, and follows no redirect.
func (m *Machine) visits(link string) (*http.Response, error) {
	transport := &http.Transport{DisableKeepAlives: true,
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			return lab.In(m.network(), func() (net.Conn, error) {
				return new(net.Dialer).DialContext(ctx, network, address)
			})
		}}
	req, err := http.NewRequest(http.MethodGet, link, nil)
	if err != nil {
		return nil, err
	}
	res, err := transport.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	return res, res.Body.Close()
}

// allUnits are the units of `make install`, in the order of the pages.
const allUnits = "berth.socket berth-mac.socket berth-admin.socket berth.service"

// fresh deletes Berth's state and settings, and starts it again.
func (h *Harness) fresh() {
	h.Helper()
	h.stopped()
	h.types("rm -rf /var/lib/berth/* /etc/default/berth")
	h.started()
}

func (h *Harness) stopped() {
	h.Helper()
	h.types("systemctl stop " + allUnits)
}

// started starts Berth and waits until it answers.
func (h *Harness) started() {
	h.Helper()
	h.types("systemctl reset-failed; systemctl start " + allUnits)
	lab.Await(h, 20*time.Second, func() error {
		_, err := h.Berth("version", "--format", "{{.Daemon.Version}}")
		return err
	})
}
