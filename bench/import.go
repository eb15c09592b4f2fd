package main

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"berth/internal/ipam"
)

// The plan that is imported: so many subnets, each with a gateway, a pool and so many reservations.
const (
	importSubnets      = 5_000
	importReservations = 20 // in each
	importNetwork      = 100
)

// importDocument describes a part of the plan: the subnets from one on.
func importDocument(from, n int) []byte {
	var b bytes.Buffer
	b.WriteString("version: 1\nnetworks:\n")
	for at := from; at < from+n; at += importNetwork {
		fmt.Fprintf(&b, "- name: net%d\n  subnets:\n", at)
		of := min(importNetwork, from+n-at)
		for i := at; i < at+of; i++ {
			fmt.Fprintf(&b, "    - {cidr: 10.%d.%d.0/24, name: s%d, gateway: 10.%d.%d.1, pool: true}\n", i/256, i%256,
				i, i/256, i%256)
		}
		b.WriteString("  reservations:\n")
		for i := at; i < at+of; i++ {
			for r := range importReservations {
				fmt.Fprintf(&b, "    - {owner: shop/web%d/%d, address: 10.%d.%d.%d}\n", i, r, i/256, i%256, r+10)
			}
		}
	}
	return b.Bytes()
}

// served is a daemon of this benchmark's own.
type served struct {
	cmd           *exec.Cmd
	plugin, admin string
}

func (e env) serve(dir string, flags ...string) (*served, error) {
	s := &served{plugin: filepath.Join(dir, "plugin.sock"), admin: filepath.Join(dir, "admin.sock")}
	s.cmd = exec.Command(e.berth, append([]string{"serve", "--state", filepath.Join(dir, "state"), "--plugin-socket",
		s.plugin, "--admin-socket", s.admin, "--log-level", "warning"}, flags...)...)
	s.cmd.Stderr = os.Stderr
	if err := s.cmd.Start(); err != nil {
		return nil, err
	}
	return s, s.answers()
}

// answers waits until something listens on the socket.
func (s *served) answers() error {
	for start := time.Now(); ; time.Sleep(time.Millisecond) {
		if conn, err := net.Dial("unix", s.plugin); err == nil {
			return conn.Close()
		}
		if time.Since(start) > 30*time.Second {
			s.stop()
			return fmt.Errorf("nothing answers on %s", s.plugin)
		}
	}
}

func (s *served) stop() {
	_ = s.cmd.Process.Signal(syscall.SIGTERM) // it may have ended
	_ = s.cmd.Wait()
}

// berth runs a command on the daemon and returns how long it took.
func (e env) run(s *served, args ...string) (time.Duration, error) {
	start := time.Now()
	out, err := exec.Command(e.berth, append(args, "--admin-socket", s.admin)...).CombinedOutput()
	if err != nil {
		return 0, fmt.Errorf("berth %s: %w: %s", strings.Join(args, " "), err, out)
	}
	return time.Since(start), nil
}

func measureImport(e env) ([]row, error) {
	var rows []row
	for _, m := range e.media() {
		r, err := importRow(e, m)
		if err != nil {
			return nil, err
		}
		rows = append(rows, r)
	}
	for _, callers := range []int{1, 16} {
		r, err := beside(e, callers)
		if err != nil {
			return nil, err
		}
		rows = append(rows, r)
	}
	return rows, nil
}

// importRow imports the whole plan into an empty daemon and exports it again, by the command.
func importRow(e env, m medium) (row, error) {
	dir := filepath.Join(m.path, "whole")
	if err := os.Mkdir(dir, 0o700); err != nil {
		return row{}, err
	}
	s, err := e.serve(dir)
	if err != nil {
		return row{}, err
	}
	defer s.stop()
	document, again := filepath.Join(dir, "plan.yaml"), filepath.Join(dir, "again.yaml")
	if err := os.WriteFile(document, importDocument(0, importSubnets), 0o600); err != nil {
		return row{}, err
	}
	in, err := e.run(s, "plan", "import", document)
	if err != nil {
		return row{}, err
	}
	out, err := e.run(s, "plan", "export", "-o", again)
	if err != nil {
		return row{}, err
	}
	if text, err := os.ReadFile(again); err != nil ||
		bytes.Count(text, []byte("owner: ")) != importSubnets*importReservations {
		return row{}, fmt.Errorf("the export is not the plan that was imported: %w", err)
	}
	total := in + out
	return row{fmt.Sprintf("berth plan import and export of %d subnets with %d reservations: %s", importSubnets,
		importSubnets*importReservations, m.name), "10 s",
		fmt.Sprintf("%.1f s (import %.1f s, export %.1f s)", total.Seconds(), in.Seconds(), out.Seconds()),
		verdict(total < 10*time.Second)}, nil
}

// besideRounds is how often the latency is compared; each imports another part of the plan.
const besideRounds = 5

// beside compares the latency of RequestAddress during an import with that without one.
func beside(e env, callers int) (row, error) {
	dir := filepath.Join(e.dir, fmt.Sprintf("beside-%d", callers))
	if err := os.Mkdir(dir, 0o700); err != nil {
		return row{}, err
	}
	s, err := e.serve(dir)
	if err != nil {
		return row{}, err
	}
	defer s.stop()
	c := newSocketClient(s.plugin, callers)
	pool, err := c.pool("100.64.0.0/10", nil)
	if err != nil {
		return row{}, err
	}
	taker := &latencies{callers: callers, mac: make(macs, callers),
		take: func(mac ipam.MAC) error { return c.take(pool, mac) }}
	var without, during, ratios, took []float64
	for i := range besideRounds {
		document := filepath.Join(dir, "part.yaml")
		if err := os.WriteFile(document, importDocument(i*importSubnets/besideRounds, importSubnets/besideRounds),
			0o600); err != nil {
			return row{}, err
		}
		alone, err := taker.during(func() error { time.Sleep(2 * e.round); return nil })
		if err != nil {
			return row{}, err
		}
		beside, err := taker.during(func() error {
			d, err := e.run(s, "plan", "import", document)
			took = append(took, d.Seconds())
			return err
		})
		if err != nil {
			return row{}, err
		}
		a, b := alone.Seconds()*1000, beside.Seconds()*1000
		without, during, ratios = append(without, a), append(during, b), append(ratios, b/a)
	}
	ratio := median(ratios)
	noun := "callers"
	if callers == 1 {
		noun = "caller"
	}
	return row{fmt.Sprintf("p99 of RequestAddress over the socket during an import, against without one, %d %s: on "+
		"this disk", callers, noun), "3x",
		fmt.Sprintf("%.1fx (%.2f ms, %.2f ms without; %d subnets in %.1f s meanwhile)", ratio, median(during),
			median(without), importSubnets/besideRounds, median(took)),
		verdict(ratio <= 3)}, nil
}

// latencies has callers take addresses while something is done.
type latencies struct {
	callers int
	mac     macs
	take    func(ipam.MAC) error
}

// during returns the 99th percentile of the latency while fn runs.
func (l *latencies) during(fn func() error) (time.Duration, error) {
	ctx, cancel := context.WithCancel(context.Background())
	all, errs := make([][]time.Duration, l.callers), make([]error, l.callers)
	var wg sync.WaitGroup
	for i := range l.callers {
		wg.Go(func() {
			for ctx.Err() == nil {
				start := time.Now()
				if errs[i] = l.take(l.mac.next(i)); errs[i] != nil {
					return
				}
				all[i] = append(all[i], time.Since(start))
			}
		})
	}
	err := fn()
	cancel()
	wg.Wait()
	for _, failed := range errs {
		if err == nil {
			err = failed
		}
	}
	sorted := slices.Sorted(slices.Values(slices.Concat(all...)))
	if err != nil {
		return 0, err
	}
	if len(sorted) == 0 {
		return 0, nil
	}
	return sorted[len(sorted)*99/100], nil
}
