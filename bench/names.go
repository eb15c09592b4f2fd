package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"berth/internal/admin/client"
	"berth/internal/ipam"
	"berth/test/sockets"

	"github.com/miekg/dns"
)

// Of what names are measured: those of the plan of a scrape.
const (
	nameAskers   = 4
	nameWindow   = 16 // questions that each asker has open at a time
	nameChanges  = 200
	nameMeasured = 5 * time.Second
)

// measureNames measures how many questions a daemon answers in a second of one core, and how soon after a commit a name
// is there, and is gone.
func measureNames(e env) ([]row, error) {
	at, err := sockets.FreeAddress()
	if err != nil {
		return nil, err
	}
	s, err := e.servePools("--dns-listen", at, "--dns-zone", "bench.example")
	if err != nil {
		return nil, err
	}
	defer s.stop()
	out, err := exec.Command(e.berth, "dns", "ls", "--filter", "kind=long", "--format", "{{.Name}}", "--admin-socket",
		s.admin).Output()
	if err != nil {
		return nil, fmt.Errorf("berth dns ls: %w", err)
	}
	names := strings.Fields(string(out))
	perCore, perSecond, err := askNames(at, s.cmd.Process.Pid, names)
	if err != nil {
		return nil, err
	}
	there, gone, err := changeNames(s, at, ipam.LocalSpace)
	if err != nil {
		return nil, err
	}
	farThere, farGone, err := changeFar(e)
	if err != nil {
		return nil, err
	}
	return []row{
		{fmt.Sprintf("names answered by UDP at %d names, in a second of one core", len(names)), "20k",
			fmt.Sprintf("%.0fk of the daemon's processor time (%.0fk a second beside those who ask)", perCore/1000,
				perSecond/1000), verdict(perCore >= 20_000)},
		{"a name is answered after the commit; is gone: p50, p99, longest", "100 ms; 1 s",
			fmt.Sprintf("%s; %s", lags(there), lags(gone)),
			verdict(slices.Max(there) <= 100*time.Millisecond && slices.Max(gone) <= time.Second)},
		{"the same on another host, over etcd (three members)", "1 s; 1 s",
			fmt.Sprintf("%s; %s", lags(farThere), lags(farGone)),
			verdict(slices.Max(farThere) <= time.Second && slices.Max(farGone) <= time.Second)},
	}, nil
}

func lags(all []time.Duration) string {
	slices.Sort(all)
	ms := func(d time.Duration) float64 { return d.Seconds() * 1000 }
	return fmt.Sprintf("%.1f, %.1f, %.1f ms", ms(all[len(all)/2]), ms(all[len(all)*99/100]), ms(all[len(all)-1]))
}

// askNames asks for all the names in turn, and returns how many were answered in a second of the daemon's processor
// time, and in a second.
func askNames(at string, pid int, names []string) (perCore, perSecond float64, err error) {
	var questions [][]byte
	for _, name := range names {
		q := new(dns.Msg)
		q.SetQuestion(dns.Fqdn(name), dns.TypeA)
		wire, err := q.Pack()
		if err != nil {
			return 0, 0, err
		}
		questions = append(questions, wire)
	}
	before, err := processorTime(pid)
	if err != nil {
		return 0, 0, err
	}
	begun := time.Now()
	var answered atomic.Int64
	errs := make([]error, nameAskers)
	var wg sync.WaitGroup
	for i := range nameAskers {
		wg.Go(func() {
			errs[i] = askFor(at, questions, i*len(questions)/nameAskers, begun.Add(nameMeasured), &answered)
		})
	}
	wg.Wait()
	took := time.Since(begun)
	after, err := processorTime(pid)
	n := float64(answered.Load())
	return n / (after - before).Seconds(), n / took.Seconds(), errors.Join(append(errs, err)...)
}

// askFor asks until a time, with a window of open questions, and counts the answers that have an address.
func askFor(at string, questions [][]byte, from int, until time.Time, answered *atomic.Int64) error {
	c, err := net.Dial("udp", at)
	if err != nil {
		return err
	}
	defer c.Close()
	buf := make([]byte, 1232)
	for time.Now().Before(until) {
		for range nameWindow {
			if _, err := c.Write(questions[from%len(questions)]); err != nil {
				return err
			}
			from++
		}
		for range nameWindow {
			if err := c.SetReadDeadline(time.Now().Add(10 * time.Second)); err != nil {
				return err
			}
			n, err := c.Read(buf)
			if err != nil {
				return fmt.Errorf("a question was not answered: %w", err)
			}
			if n < 12 || buf[3]&15 != 0 || buf[7] == 0 { // the code, and how many answers there are
				return fmt.Errorf("an answer without an address: % x", buf[:n])
			}
			answered.Add(1)
		}
	}
	return nil
}

// processorTime is how much a process has had, in ticks of 10 ms.
func processorTime(pid int) (time.Duration, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, err
	}
	fields := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
	user, err := strconv.Atoi(fields[11])
	if err != nil {
		return 0, err
	}
	system, err := strconv.Atoi(fields[12])
	return time.Duration(user+system) * 10 * time.Millisecond, err
}

// changeFar does what changeNames does with two hosts on one etcd: one makes the changes, the other one is asked.
func changeFar(e env) (there, gone []time.Duration, err error) {
	etcd, err := embedded(filepath.Join(e.dir, "etcd"))
	if err != nil {
		return nil, nil, err
	}
	defer func() { err = errors.Join(err, etcd.stop()) }()
	at, err := sockets.FreeAddress()
	if err != nil {
		return nil, nil, err
	}
	var hosts []*served
	for _, flags := range [][]string{{"--host", "alpha"},
		{"--host", "beta", "--dns-listen", at, "--dns-zone", "bench.example"}} {
		dir := filepath.Join(e.dir, flags[1])
		if err := os.Mkdir(dir, 0o700); err != nil {
			return nil, nil, err
		}
		s, err := e.serve(dir, append(flags, "--store", "etcd", "--etcd-endpoints", strings.Join(etcd.endpoints, ","))...)
		if err != nil {
			return nil, nil, err
		}
		defer s.stop()
		hosts = append(hosts, s)
	}
	return changeNames(hosts[0], at, ipam.GlobalSpace)
}

// changeNames has addresses taken and given back, and returns how long after each answer that is what is said of the
// name.
func changeNames(s *served, at, space string) (there, gone []time.Duration, err error) {
	ctx := context.Background()
	c := client.New(s.admin)
	defer c.Close()
	create := &ipam.CreateNetwork{Name: "changing", Space: space,
		Subnets: []ipam.SubnetSpec{{CIDR: netip.MustParsePrefix("10.200.0.0/24"), Pool: true}}}
	if _, err := c.Edit(ctx, client.EditOptions{}, create); err != nil {
		return nil, nil, err
	}
	for i := range nameChanges + 1 {
		lag, err := changeName(ctx, c, at, &ipam.TakeAddress{Network: "changing", Owner: "changer"}, true)
		if err != nil {
			return nil, nil, err
		}
		there = append(there, lag)
		if lag, err = changeName(ctx, c, at, &ipam.ReleaseAddress{Network: "changing", Owner: "changer"},
			false); err != nil {
			return nil, nil, err
		}
		if gone = append(gone, lag); i == 0 { // a daemon that has just begun may not have read yet what there is
			there, gone = nil, nil
		}
	}
	return there, gone, nil
}

// changeName makes an edit, and asks until it is seen.
func changeName(ctx context.Context, c *client.Client, at string, edit ipam.Edit, there bool) (time.Duration, error) {
	if _, err := c.Edit(ctx, client.EditOptions{}, edit); err != nil {
		return 0, err
	}
	begun := time.Now()
	q := new(dns.Msg)
	q.SetQuestion("changer.changing.bench.example.", dns.TypeA)
	for {
		m, err := dns.Exchange(q, at)
		if err != nil {
			return 0, err
		}
		if (len(m.Answer) > 0) == there {
			return time.Since(begun), nil
		}
		if time.Since(begun) > 10*time.Second {
			return 0, errors.New("what was committed is not seen in 10 s")
		}
	}
}
