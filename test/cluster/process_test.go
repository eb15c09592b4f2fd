package cluster

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// patience is far more than anything here takes. It only ends a test that would hang.
const patience = 60 * time.Second

// process is one life of a program that a test started.
type process struct {
	cmd   *exec.Cmd
	log   lockedBuffer
	ended chan struct{} // closed when it has ended; then err is how
	err   error
}

func startProcess(t testing.TB, words []string) *process {
	t.Helper()
	p := &process{cmd: exec.Command(words[0], words[1:]...), ended: make(chan struct{})}
	p.cmd.Stdout, p.cmd.Stderr = &p.log, &p.log
	p.cmd.WaitDelay = time.Second
	if err := p.cmd.Start(); err != nil {
		t.Fatalf("start %s: %v", words, err)
	}
	go func() {
		p.err = p.cmd.Wait()
		close(p.ended)
	}()
	t.Cleanup(p.kill)
	return p
}

// kill ends it as a crash does. It may have ended already.
func (p *process) kill() {
	p.cmd.Process.Kill()
	<-p.ended
}

// killed is nil when a kill is what ended it.
func (p *process) killed() error {
	select {
	case <-p.ended:
	default:
		return fmt.Errorf("process %d runs", p.cmd.Process.Pid)
	}
	if status, ok := p.cmd.ProcessState.Sys().(syscall.WaitStatus); !ok || status.Signal() != syscall.SIGKILL {
		return fmt.Errorf("process %d ended by itself: %v\n%s", p.cmd.Process.Pid, p.err, p.log.String())
	}
	return nil
}

func (p *process) signal(t testing.TB, s syscall.Signal) {
	t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil {
		t.Errorf("%v:\n%s", err, p.log.String())
	}
}

// stopped is nil when the kernel says that the process is stopped.
func (p *process) stopped() error {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.cmd.Process.Pid))
	if err != nil {
		return err
	}
	_, state, _ := strings.Cut(string(text), ") ")
	if !strings.HasPrefix(state, "T") {
		return fmt.Errorf("process %d is not stopped: %.1s", p.cmd.Process.Pid, state)
	}
	return nil
}

// await tries until it is nil, and fails the test where that takes too long or one of the processes ends before.
func await(t testing.TB, what string, try func() error, of ...*process) {
	t.Helper()
	deadline := time.Now().Add(patience)
	for {
		err := try()
		if err == nil {
			return
		}
		for _, p := range of {
			select {
			case <-p.ended:
				t.Fatalf("%s: it ended (%v):\n%s", what, p.err, p.log.String())
			default:
			}
		}
		if time.Now().After(deadline) {
			logs := ""
			for _, p := range of {
				logs += p.log.String()
			}
			t.Fatalf("%s: not within %s: %v\n%s", what, patience, err, logs)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// lockedBuffer takes a log while others read it, and keeps its beginning and end.
type lockedBuffer struct {
	mu   sync.Mutex
	text []byte
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	const most = 64 << 10
	l.mu.Lock()
	defer l.mu.Unlock()
	l.text = append(l.text, p...)
	if len(l.text) > most {
		l.text = append(append(l.text[:most/4:most/4], "\n...\n"...), l.text[len(l.text)-most/2:]...)
	}
	return len(p), nil
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return string(l.text)
}
