//go:build engine

package engine

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"berth/test/lab"
)

// base holds all files of the tests. Each process that they start has it in its arguments or works in a namespace of
// the tests, and has a file in base/pids.
const base = "/var/tmp/berth-t"

// Process is a program that the tests started and that runs beside them.
type Process struct {
	Name string // of its pid file and its log
	cmd  *exec.Cmd
	done chan struct{} // closed when it ends
}

// startProcess runs a program with its output in base/logs/NAME.log. It has files open, from 3 on. It may outlive the
// function, not the tests.
func startProcess(name string, files []*os.File, program string, args ...string) (*Process, error) {
	for _, dir := range []string{"logs", "pids"} {
		if err := os.MkdirAll(filepath.Join(base, dir), 0o700); err != nil {
			return nil, err
		}
	}
	p := &Process{Name: name, cmd: exec.Command(program, args...), done: make(chan struct{})}
	log, err := os.OpenFile(p.logPath(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	p.cmd.Stdout, p.cmd.Stderr = log, log
	p.cmd.ExtraFiles = files
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	go func() {
		_ = p.cmd.Wait() // the log shows how it ended
		close(p.done)
	}()
	pid := strconv.Itoa(p.Pid())
	return p, os.WriteFile(filepath.Join(base, "pids", name), []byte(pid), 0o600)
}

func (p *Process) logPath() string { return filepath.Join(base, "logs", p.Name+".log") }

// Pid returns the process id.
func (p *Process) Pid() int { return p.cmd.Process.Pid }

// Log returns the output so far.
func (p *Process) Log() string {
	b, err := os.ReadFile(p.logPath())
	if err != nil {
		return err.Error()
	}
	return string(b)
}

// Signal sends a signal and returns when the process has ended. If it does not end within wait, it gets SIGKILL.
func (p *Process) Signal(sig syscall.Signal, wait time.Duration) error {
	if err := p.cmd.Process.Signal(sig); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	select {
	case <-p.done:
		return nil
	case <-time.After(lab.Patient(wait)):
		_ = p.cmd.Process.Kill()
		<-p.done
		return fmt.Errorf("%s (pid %d) did not end within %s of signal %v", p.Name, p.Pid(), wait, sig)
	}
}

// ended reports whether the process is gone.
func (p *Process) ended() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

// killRecorded ends the processes that an interrupted run left: those of base/pids, if their arguments show that they
// are still the tests' processes.
func killRecorded() {
	files, _ := filepath.Glob(filepath.Join(base, "pids", "*"))
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			continue
		}
		pid, err := strconv.Atoi(strings.TrimSpace(string(b)))
		if err != nil {
			continue
		}
		cmdline, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		if bytes.Contains(cmdline, []byte(base)) {
			killAndWait(pid)
		}
	}
}

// killAndWait ends processes, which need not be our children.
func killAndWait(pids ...int) {
	for _, pid := range pids {
		_ = syscall.Kill(pid, syscall.SIGKILL) // it may be gone
	}
	_ = lab.Eventually(10*time.Second, func() error {
		for _, pid := range pids {
			if processAlive(pid) {
				return fmt.Errorf("pid %d is still there", pid)
			}
		}
		return nil
	})
}

// processAlive reports whether pid runs. A zombie does not run.
func processAlive(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	_, after, _ := strings.Cut(string(stat), ") ")
	return !strings.HasPrefix(after, "Z")
}
