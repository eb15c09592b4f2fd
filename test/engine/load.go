//go:build engine

package engine

import (
	"errors"
	"flag"
	"fmt"
	"syscall"
	"time"
)

var busyLoops = flag.Int("load", 0, "how many busy loops run beside all tests, for two hours at most")

// busy starts the loops that keep the machine busy, and returns what ends them.
func busy() (end func() error, err error) {
	var all []*Process
	end = func() error {
		var errs []error
		for _, p := range all {
			errs = append(errs, p.Signal(syscall.SIGTERM, 10*time.Second))
		}
		return errors.Join(errs...)
	}
	for i := range *busyLoops {
		// the last word is for those who look for what an interrupted run left
		p, err := startProcess(fmt.Sprint("busy", i), nil, "timeout", "2h", "sh", "-c", "while :; do :; done", base)
		if err != nil {
			return nil, errors.Join(err, end())
		}
		all = append(all, p)
	}
	return end, nil
}
