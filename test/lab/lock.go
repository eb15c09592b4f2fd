package lab

import (
	"net"
	"time"
)

// Exclusive makes the caller the only run of a suite on the machine, after waiting for an earlier run. The lock is
// an abstract socket with the suite's name: it ends with its process and leaves no file.
func Exclusive(suite string) (release func() error, err error) {
	err = Eventually(5*time.Minute, func() error {
		l, err := net.Listen("unix", "@"+suite)
		if err == nil {
			release = l.Close
		}
		return err
	})
	return release, err
}
