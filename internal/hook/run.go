package hook

import (
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// maxOutput is the maximum number of logged bytes of a hook's output.
const maxOutput = 4096

// drain is how long a process outside the hook's process group may keep its output open after the hook's end.
const drain = time.Second

// errLate is the error of a hook that exceeded its time limit.
var errLate = errors.New("it ran for too long and was killed")

// run runs a program and returns its output. When the program ends or its time is over, its process group is killed. So
// its child processes end with it, unless they leave the group (setsid(1)).
func run(program string, env []string, bound time.Duration,
	after func(time.Duration) <-chan time.Time) (string, error) {
	var out output
	cmd := exec.Command(program)
	cmd.Env, cmd.Dir = env, "/"
	cmd.Stdout, cmd.Stderr = &out, &out
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.WaitDelay = drain
	if err := cmd.Start(); err != nil {
		return "", err
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		await(cmd.Process.Pid)
	}()
	late := false
	select {
	case <-ended:
	case <-after(bound):
		late = true
	}
	// The process is not reaped yet, so its number and that of its group cannot belong to others.
	_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
	<-ended
	err := cmd.Wait()
	switch {
	case late:
		err = fmt.Errorf("%w after %s", errLate, bound)
	case errors.Is(err, exec.ErrWaitDelay):
		err = nil // it succeeded, and a child process keeps its output open
	}
	return out.text(), err
}

// await waits for the end of a child process and does not reap it.
func await(pid int) {
	for {
		err := unix.Waitid(unix.P_PID, pid, nil, unix.WEXITED|unix.WNOWAIT, nil)
		if !errors.Is(err, unix.EINTR) {
			return
		}
	}
}

// output keeps the first bytes written to it.
type output struct {
	kept []byte
	more int // number of discarded bytes
}

func (o *output) Write(b []byte) (int, error) {
	n := min(len(b), maxOutput-len(o.kept))
	o.kept = append(o.kept, b[:n]...)
	o.more += len(b) - n
	return len(b), nil
}

func (o *output) text() string {
	text := strings.TrimSpace(strings.ToValidUTF8(string(o.kept), "?"))
	if o.more > 0 {
		text += fmt.Sprintf(" ... and %d bytes more", o.more)
	}
	return text
}
