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

// maxOutput is how much is logged of what a hook writes, in bytes.
const maxOutput = 4096

// drain is how long something that left the hook's process group may hold its output after the hook's end.
const drain = time.Second

// errLate is the end of a hook that ran for too long.
var errLate = errors.New("it ran for too long and was killed")

// run runs a program and returns what it wrote. Its whole process group is killed when it ends or its time is up,
// whichever is first: what a hook starts does not outlive it, unless it leaves the group (setsid(1)).
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
	// The process is not waited for yet, so that its number can be nobody else's, nor that of its group.
	_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
	<-ended
	err := cmd.Wait()
	switch {
	case late:
		err = fmt.Errorf("%w after %s", errLate, bound)
	case errors.Is(err, exec.ErrWaitDelay):
		err = nil // it ended well, and something that it has started holds its output
	}
	return out.text(), err
}

// await returns when a child has ended, and leaves it to be waited for.
func await(pid int) {
	for {
		err := unix.Waitid(unix.P_PID, pid, nil, unix.WEXITED|unix.WNOWAIT, nil)
		if !errors.Is(err, unix.EINTR) {
			return
		}
	}
}

// output keeps the beginning of what is written to it.
type output struct {
	kept []byte
	more int // bytes that were not kept
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
