//go:build machine

package machine

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"berth/test/lab"
)

// terminal makes a terminal: one end for the user, and one for the program.
func terminal() (person, program *os.File, err error) {
	person, err = os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		return nil, nil, err
	}
	number, err := unix.IoctlGetInt(int(person.Fd()), unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(int(person.Fd()), unix.TIOCSPTLCK, 0)
	}
	if err == nil {
		program, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|syscall.O_NOCTTY, 0)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("no terminal: %w", err)
	}
	return person, program, nil
}

// answer is what a user types after a program's question.
type answer struct{ asked, typed string }

// converse runs a line on a terminal of the machine, and answers its questions in this order.
func (m *Machine) converse(line string, answers ...answer) (string, error) {
	person, program, err := terminal()
	if err != nil {
		return "", err
	}
	defer person.Close()
	args := m.command("sh", "-c", "cd /root; "+line)
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = program, program, program
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	err = cmd.Start()
	program.Close()
	if err != nil {
		return "", err
	}
	var lock sync.Mutex
	var shown strings.Builder
	read := make(chan struct{})
	go func() { // until the last program with this terminal ends
		defer close(read)
		b := make([]byte, 1024)
		for {
			n, err := person.Read(b)
			lock.Lock()
			shown.Write(b[:n])
			lock.Unlock()
			if err != nil {
				return
			}
		}
	}()
	screen := func() string {
		lock.Lock()
		defer lock.Unlock()
		return shown.String()
	}
	seen := 0
	for _, a := range answers {
		err := lab.Eventually(20*time.Second, func() error {
			at := strings.Index(screen()[seen:], a.asked)
			if at < 0 {
				return fmt.Errorf("%s does not ask %q: %s", line, a.asked, screen())
			}
			seen += at + len(a.asked)
			return nil
		})
		if err != nil {
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
			return screen(), err
		}
		if _, err := person.WriteString(a.typed + "\n"); err != nil {
			return screen(), err
		}
	}
	err = cmd.Wait()
	<-read
	if err != nil {
		err = fmt.Errorf("%s: %w\n%s", line, err, screen())
	}
	return screen(), err
}
