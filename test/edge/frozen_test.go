//go:build edge

package edge_test

import (
	"bufio"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"berth/internal/edge"
	"berth/internal/edge/nft"
	"berth/test/lab"
)

var rounds = flag.Int("rounds", 5, "how often an edge is frozen or killed")

// order is a line that a child reads. It answers each with a line.
type order struct {
	Set   *edge.State    `json:",omitempty"`
	Renew *edge.BootTime `json:",omitempty"`
}

// beChild runs an edge in its own process, so that it can be frozen and killed.
func beChild() int {
	p, err := nft.New(nft.Config{})
	if err != nil {
		fmt.Println(err)
		return 1
	}
	go func() { _ = p.Run(context.Background()) }()
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var o order
		err := json.Unmarshal(lines.Bytes(), &o)
		switch {
		case err != nil:
		case o.Set != nil:
			err = p.Set(context.Background(), *o.Set)
		case o.Renew != nil:
			err = p.Renew(context.Background(), *o.Renew)
		}
		fmt.Println(strings.ReplaceAll(fmt.Sprint(err), "\n", " "))
	}
	return 0
}

// process is a child.
type process struct {
	cmd    *exec.Cmd
	mu     sync.Mutex
	orders io.Writer
	lines  *bufio.Scanner
}

func startChild(t *testing.T) *process {
	t.Helper()
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = append(os.Environ(), child+"=1")
	cmd.Stderr = os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // it ends when its input ends
	orders, err := cmd.StdinPipe()
	lab.Must(t, err)
	answers, err := cmd.StdoutPipe()
	lab.Must(t, err)
	lab.Must(t, cmd.Start())
	p := &process{cmd: cmd, orders: orders, lines: bufio.NewScanner(answers)}
	t.Cleanup(func() { p.signal(syscall.SIGKILL); _ = cmd.Wait() })
	return p
}

func (p *process) signal(s syscall.Signal) { _ = syscall.Kill(-p.cmd.Process.Pid, s) }

// do gives an order and waits for its answer.
func (p *process) do(o order) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.send(o)
	if !p.lines.Scan() {
		return "gone"
	}
	return p.lines.Text()
}

func (p *process) send(o order) {
	b, err := json.Marshal(o)
	if err == nil {
		_, _ = p.orders.Write(append(b, '\n'))
	}
}

// TestFrozen: an edge that is frozen or killed at any moment is taken over, and two hosts never answer: neither
// while it is frozen, nor when it continues with late orders (MetalLB #589, #740, #2838; kube-vip #1418, #1579;
// keepalived #2387). Only the kernel can ensure that.
func TestFrozen(t *testing.T) {
	newLab(t)
	dockerIPTables(t)
	script(t, "ip netns exec other sysctl -qw net.ipv4.conf.eth0.arp_notify=0")
	ours := macOf(t, "")
	w := watchAddress(t, elastic4)
	const session = 1200 * time.Millisecond
	s := mapped(edge.Withdraw)
	p := startChild(t)
	for round := range *rounds {
		s.Until = soon(t, session)
		if answer := p.do(order{Set: &s}); answer != "<nil>" {
			t.Fatalf("round %d: %s", round, answer)
		}
		begin := time.Now()
		within(t, time.Second, "an answer", func() error {
			if w.answers(elastic4, ours, begin) == 0 {
				return fmt.Errorf("none")
			}
			return nil
		})
		until := s.Until
		for range 3 + rand.IntN(3) {
			time.Sleep(time.Duration(rand.IntN(200)) * time.Millisecond)
			until = soon(t, session)
			answer := p.do(order{Renew: &until})
			if strings.Contains(answer, "expired") { // on a busy machine this test waited longer than a session
				s.Until = until
				answer = p.do(order{Set: &s})
			}
			if answer != "<nil>" {
				t.Fatalf("round %d: %s", round, answer)
			}
		}
		killed := round%3 == 2
		if killed {
			p.signal(syscall.SIGKILL)
		} else { // frozen in the middle of a renewal, with more waiting
			until = soon(t, session)
			p.send(order{Renew: &until})
			time.Sleep(time.Duration(rand.IntN(8000)) * time.Microsecond)
			p.signal(syscall.SIGSTOP)
			p.send(order{Renew: &until})
			p.send(order{Set: &s})
		}
		time.Sleep(until.Sub(soon(t, 0)) + late)
		p = takenOver(t, w, p, round, killed)
		run(t, "ip -n other addr del 10.9.0.100/32 dev eth0")
	}
}

// takenOver gives the address to the other host. Then the frozen edge continues, or the killed one restarts.
func takenOver(t *testing.T, w *watch, p *process, round int, killed bool) *process {
	t.Helper()
	ours, theirs, taker := macOf(t, ""), macOf(t, other), socketIn(t, other)
	theirMAC, err := net.ParseMAC(theirs)
	lab.Must(t, err)
	taken := time.Now()
	if n := w.answers(elastic4, ours, taken.Add(-50*time.Millisecond)); n > 0 {
		t.Errorf("round %d: still %d answers when another host takes over", round, n)
	}
	run(t, "ip -n other addr add 10.9.0.100/32 dev eth0")
	sendARP(t, taker, 2, theirMAC, elastic4, elastic4)
	if killed {
		p = startChild(t)
	} else {
		time.Sleep(time.Duration(rand.IntN(200)) * time.Millisecond)
		p.signal(syscall.SIGCONT)
		for range 3 {
			p.lines.Scan()
			if said := p.lines.Text(); !strings.Contains(said, "nil") && !strings.Contains(said, "expired") {
				t.Errorf("round %d: it answered %q to an order of before", round, said)
			}
		}
	}
	time.Sleep(700 * time.Millisecond)
	if n := w.answers(elastic4, ours, taken); n > 0 {
		t.Errorf("round %d: two answered: %d times the old one, %d times the new one", round, n,
			w.answers(elastic4, theirs, taken))
	}
	if w.answers(elastic4, theirs, taken) == 0 {
		t.Errorf("round %d: the new one did not answer", round)
	}
	return p
}
