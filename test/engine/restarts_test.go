//go:build engine

package engine

import (
	"errors"
	"flag"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"berth/test/lab"
)

var restartStarts = flag.Int("restart.starts", 0,
	"how many containers TestRestarts starts for each signal; 0: its own number")

// TestRestarts: a daemon is restarted all the time, with and without a socket that systemd holds, while eight containers
// stop and start. After SIGTERM no start is refused, and none of a named container gets another address. After SIGKILL
// the engine repeats the call whose connection broke with an empty body, which Berth refuses; nothing else is refused.
func TestRestarts(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		signal string
		held   bool // systemd has the socket
		number int
	}{
		{signal: "SIGTERM", number: 235},
		{signal: "SIGKILL", number: 236},
		{signal: "SIGTERM", held: true, number: 149},
		{signal: "SIGKILL", held: true, number: 150},
	} {
		signal := c.signal
		t.Run(fmt.Sprintf("%s/held %v", signal, c.held), func(t *testing.T) {
			t.Parallel()
			d := daemon(t, fmt.Sprint("restarts", c.number), pluginDir, comesBackFlags...)
			end := d.Stop
			if signal == "SIGKILL" {
				end = d.Kill
			}
			if c.held {
				lab.Must(t, d.Stop())
				d.holdSocket(t)
				lab.Must(t, d.Revive())
			}
			h := enter(t, machineEngine, d, c.number)
			n := h.network("--subnet", h.v4("0/24"))
			var all []string
			for range 8 {
				all = append(all, h.container(n))
			}
			had := h.where(n, all)
			starts := sample(*restartStarts, 16, 200)
			var refused, broken, changed atomic.Int64
			var working sync.WaitGroup
			for i, c := range all {
				working.Go(func() {
					for range starts / len(all) {
						if _, err := h.Engine.Docker("stop", "--time", "0", c); err != nil {
							h.Errorf("%s: %v", c, err)
						}
						_, err := h.Engine.Docker("start", c)
						for err != nil && cutShort(err) {
							broken.Add(1)
							_, err = h.Engine.Docker("start", c)
						}
						if err != nil {
							refused.Add(1)
							h.Logf("%s: %v", c, err)
						} else if ep, err := h.Engine.Endpoint(c, n); err != nil || ep.IPAddress != had[i] {
							changed.Add(1)
						}
					}
				})
			}
			done := make(chan struct{})
			go func() { working.Wait(); close(done) }()
			restarts, away := 0, time.Duration(0)
			for ended := false; !ended; {
				select {
				case <-done:
					ended = true
				// The engine tries five times in 15 s. It must find the daemon, however slow the machine is.
				case <-time.After(max(500*time.Millisecond, 4*away)):
					begun := time.Now()
					lab.Must(h, end(), d.Revive())
					restarts, away = restarts+1, time.Since(begun)
				}
			}
			h.Logf("%d starts, %d restarts by %s: %d refused, %d broken off, %d with another address", starts, restarts,
				signal, refused.Load(), broken.Load(), changed.Load())
			if refused.Load() > 0 || signal == "SIGTERM" && broken.Load() > 0 || names.there() && changed.Load() > 0 {
				h.Error("a start was refused, or a container has another address")
			}
			h.leasesAreWhatRuns(n, all)
		})
	}
}

// cutShort reports whether a start failed because Berth was killed while it answered.
func cutShort(err error) bool {
	return strings.Contains(err.Error(), "repeat your command") ||
		strings.HasSuffix(strings.TrimSpace(err.Error()), "EOF")
}

// leasesAreWhatRuns waits until each container's address is leased to it, and no other address but the gateway's.
func (h *Harness) leasesAreWhatRuns(network string, all []string) {
	h.Helper()
	lab.Await(h, 3*time.Minute, func() error {
		var wrong []error
		has := h.where(network, all)
		leases := h.leases(h.v4("0/24"))
		for i, at := range has {
			own := slices.IndexFunc(leases, func(l Lease) bool { return l.Address == at })
			if own < 0 || leases[own].Name != all[i] {
				wrong = append(wrong, fmt.Errorf("%s of %s is not leased to it", at, all[i]))
			}
		}
		slices.Sort(has)
		if len(slices.Compact(has)) != len(all) {
			wrong = append(wrong, fmt.Errorf("two have one address: %v", has))
		}
		if len(leases) != len(all)+1 {
			wrong = append(wrong, fmt.Errorf("leases: %+v", leases))
		}
		return errors.Join(wrong...)
	})
}

// TestRestoredBackup: a backup from before five containers is restored, and five more start. None gets an address of
// the first five, also not by --ip, from the first start on. Then what runs is leased to what runs.
func TestRestoredBackup(t *testing.T) {
	t.Parallel()
	d := daemon(t, "restored", pluginDir)
	h := enter(t, machineEngine, d, 238)
	n := h.network("--subnet", h.v4("0/24"), "--ip-range", h.v4("16/28"))
	old := filepath.Join(t.TempDir(), "old.db")
	h.berth("state", "backup", old)
	var all []string
	for range 5 {
		all = append(all, h.container(n))
	}
	first := h.where(n, all)
	lab.Must(t, d.Stop())
	_, err := lab.Run(20*time.Second, nil, binary, "state", "restore", old, "--state", d.state(), "--force")
	lab.Must(t, err)
	lab.Must(t, d.Revive())
	h.refused([]string{first[0], all[0]}, containerCommand(h.name(), n, "--ip", first[0])...)
	for range 5 {
		name := h.name()
		h.docker(containerCommand(name, n)...)
		all = append(all, name)
	}
	if has := h.where(n, all); !slices.Equal(has[:5], first) {
		t.Errorf("the first five had %v, and have %v", first, has[:5])
	}
	h.leasesAreWhatRuns(n, all)
}
