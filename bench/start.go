package main

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"sync"
	"syscall"
	"time"

	"berth/internal/ipam"
)

const startLeases = 65_536

// measureStart times the daemon over a state of 65,536 leases.
func measureStart(e env) ([]row, error) {
	state := filepath.Join(e.dir, "state")
	if err := fillState(state); err != nil {
		return nil, err
	}
	info, err := os.Stat(filepath.Join(state, "berth.db"))
	if err != nil {
		return nil, err
	}
	var ready []time.Duration
	var resident []float64
	for range 9 {
		s, err := startOnce(e, state)
		if err != nil {
			return nil, err
		}
		ready, resident = append(ready, s.ready), append(resident, s.resident)
	}
	ms, rss, file := median(ready), median(resident), float64(info.Size())/(1<<20)
	return []row{
		{"start: ready with 65,536 leases on disk, file checked", "250 ms", fmt.Sprintf("%d ms", ms.Milliseconds()),
			verdict(ms <= 250*time.Millisecond)},
		{"start: resident then", "48 MiB", fmt.Sprintf("%.1f MiB", rss), verdict(rss <= 48)},
		{"start: state file, events included", "48 MiB", fmt.Sprintf("%.1f MiB", file), verdict(file <= 48)},
	}, nil
}

// fillState takes the leases by 16 callers, each take an event besides.
func fillState(state string) error {
	ctx := context.Background()
	s, closeStore, err := openService(ctx, state, false)
	if err != nil {
		return err
	}
	defer closeStore()
	grant, err := s.RequestPool(ctx,
		ipam.PoolRequest{Space: ipam.LocalSpace, CIDR: netip.MustParsePrefix("10.0.0.0/15")})
	if err != nil {
		return err
	}
	const callers = 16
	mac := make(macs, callers)
	errs := make([]error, callers)
	var wg sync.WaitGroup
	for i := range callers {
		wg.Go(func() {
			for range startLeases / callers {
				if _, errs[i] = s.RequestAddress(ctx,
					ipam.AddressRequest{Pool: grant.ID, MAC: mac.next(i)}); errs[i] != nil {
					return
				}
			}
		})
	}
	wg.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// started is how a daemon has started.
type started struct {
	ready    time.Duration // from exec to its first answer
	used     time.Duration // of the processor, until then
	resident float64       // memory after that, in MiB
}

// startOnce starts the daemon, and ends it.
func startOnce(e env, state string, flags ...string) (s started, err error) {
	socket := filepath.Join(e.dir, "plugin.sock")
	cmd := exec.Command(e.berth, append([]string{"serve", "--state", state, "--plugin-socket", socket,
		"--admin-socket", filepath.Join(e.dir, "admin.sock"), "--log-level", "warning"}, flags...)...)
	cmd.Stderr = os.Stderr
	start := time.Now()
	if err := cmd.Start(); err != nil {
		return s, err
	}
	defer cmd.Wait()
	defer cmd.Process.Signal(syscall.SIGTERM)
	c := newSocketClient(socket, 1)
	for {
		if conn, err := net.Dial("unix", socket); err == nil {
			conn.Close()
			break
		}
		if time.Since(start) > 30*time.Second {
			return s, fmt.Errorf("the daemon does not answer on %s", socket)
		}
		time.Sleep(time.Millisecond)
	}
	if err := c.call("GetCapabilities", nil, nil); err != nil {
		return s, err
	}
	s.ready = time.Since(start)
	c.CloseIdleConnections()
	if s.used, err = processorTime(cmd.Process.Pid); err != nil {
		return s, err
	}
	s.resident, err = residentOf(cmd.Process.Pid)
	return s, err
}

// residentOf is how much memory a process has, in MiB.
func residentOf(pid int) (float64, error) { return memoryOf(pid, "VmRSS") }

// memoryOf is how much memory of a kind a process has, as the kernel's status of it calls that, in MiB.
func memoryOf(pid int, kind string) (float64, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, err
	}
	m := regexp.MustCompile(kind + `:\s+(\d+) kB`).FindSubmatch(text)
	if m == nil {
		return 0, fmt.Errorf("no %s in the status of process %d", kind, pid)
	}
	kb, err := strconv.Atoi(string(m[1]))
	return float64(kb) / 1024, err
}
