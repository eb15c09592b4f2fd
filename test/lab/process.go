package lab

import (
	"fmt"
	"os/exec"
	"sync"
	"syscall"
	"testing"
	"time"
)

// Process is a program that runs beside a test.
type Process struct {
	Cmd   *exec.Cmd
	log   tail
	ended chan struct{} // closed when it has ended; err then says how
	err   error
}

// Start starts a program, and kills it when the test ends. The Process keeps its output.
func Start(t testing.TB, cmd *exec.Cmd) *Process {
	t.Helper()
	p := &Process{Cmd: cmd, ended: make(chan struct{})}
	cmd.Stdout, cmd.Stderr = &p.log, &p.log
	cmd.WaitDelay = time.Second
	if err := cmd.Start(); err != nil {
		t.Fatalf("start %s: %v", cmd, err)
	}
	go func() {
		p.err = cmd.Wait()
		close(p.ended)
	}()
	t.Cleanup(p.Kill)
	return p
}

// Ended returns a channel that is closed when the program has ended.
func (p *Process) Ended() <-chan struct{} { return p.ended }

// Err is how the program ended.
func (p *Process) Err() error { return p.err }

// Log is the beginning and the end of its output.
func (p *Process) Log() string { return p.log.String() }

// Kill ends it like a crash.
func (p *Process) Kill() {
	_ = p.Cmd.Process.Kill() // it may have ended
	<-p.ended
}

// Killed returns an error unless Kill ended the program.
func (p *Process) Killed() error {
	select {
	case <-p.ended:
	default:
		return fmt.Errorf("process %d runs", p.Cmd.Process.Pid)
	}
	if status, ok := p.Cmd.ProcessState.Sys().(syscall.WaitStatus); !ok || status.Signal() != syscall.SIGKILL {
		return fmt.Errorf("process %d ended by itself: %v\n%s", p.Cmd.Process.Pid, p.err, p.Log())
	}
	return nil
}

// Signal sends it a signal.
func (p *Process) Signal(t testing.TB, s syscall.Signal) {
	t.Helper()
	if err := p.Cmd.Process.Signal(s); err != nil {
		t.Errorf("%v:\n%s", err, p.Log())
	}
}

// Stop ends it with SIGTERM, and fails the test if it ends with an error.
func (p *Process) Stop(t testing.TB) {
	t.Helper()
	p.Signal(t, syscall.SIGTERM)
	select {
	case <-p.ended:
	case <-time.After(Patient(10 * time.Second)):
		t.Fatalf("it does not end on SIGTERM:\n%s", p.Log())
	}
	if p.err != nil {
		t.Errorf("it ended with %v:\n%s", p.err, p.Log())
	}
}

// Await waits until try succeeds, and ends the test if the program ends first.
func (p *Process) Await(t testing.TB, try func() error) {
	t.Helper()
	AwaitOf(t, "the program", try, p)
}

// AwaitOf waits until try succeeds, and ends the test if one of the programs ends first. It tries often: crash
// tests need the moments right after a start.
func AwaitOf(t testing.TB, what string, try func() error, of ...*Process) {
	t.Helper()
	for deadline := time.Now().Add(Patient(10 * time.Second)); ; time.Sleep(2 * time.Millisecond) {
		err := try()
		if err == nil {
			return
		}
		logs := ""
		for _, p := range of {
			logs += p.Log()
			select {
			case <-p.ended:
				t.Fatalf("%s: %v: it ended (%v):\n%s", what, err, p.err, p.Log())
			default:
			}
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s: not in time: %v\n%s", what, err, logs)
		}
	}
}

// tail keeps the beginning and the end of an output.
type tail struct {
	mu   sync.Mutex
	text []byte
}

func (l *tail) Write(p []byte) (int, error) {
	const most = 64 << 10
	l.mu.Lock()
	defer l.mu.Unlock()
	l.text = append(l.text, p...)
	if len(l.text) > most {
		l.text = append(append(l.text[:most/4:most/4], "\n...\n"...), l.text[len(l.text)-most/2:]...)
	}
	return len(p), nil
}

func (l *tail) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return string(l.text)
}
