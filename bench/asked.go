package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"time"
)

// How many containers are idle on the network of the one that starts, and how often it does.
var idleBeside = []int{0, 8, 1000}

const startsBeside = 60

// measureAsked times RequestAddress as an engine waits for it that sends no names, when one container starts: of a
// daemon that asks the engine who it is, against one that asks nothing.
func measureAsked(e env) (rows []row, err error) {
	image, err := busyboxImage()
	if err != nil {
		return nil, err
	}
	if err := runDocker(image, "import", "-", benchName); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, runDocker(nil, "image", "rm", benchName)) }()
	asked, err := startTimed(e, benchName+"-asked", "10.214.16.0/20")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, asked.stop()) }()
	none, err := startTimed(e, benchName+"-none", "10.214.32.0/20", "--docker-host", "none")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, none.stop()) }()

	for _, idle := range idleBeside {
		if err := asked.fill(idle); err != nil {
			return nil, err
		}
		with, without, err := startsOf(asked, none)
		if err != nil {
			return nil, err
		}
		half, most := at(with, 50)-at(without, 50), at(with, 99)-at(without, 99)
		bound, met := "p50 12 ms, p99 60 ms", half <= 12*time.Millisecond && most <= 60*time.Millisecond
		if idle > 8 { // the engine's list of a thousand containers alone takes longer than that
			bound, met = "p99 250 ms", most <= 250*time.Millisecond
		}
		rows = append(rows, row{fmt.Sprintf("RequestAddress without a name, %d idle containers beside: longer than where "+
			"nobody is asked", idle), bound,
			fmt.Sprintf("p50 %.1f ms (%.1f against %.1f), p99 %.1f ms (%.1f against %.1f)", ms(half), ms(at(with, 50)),
				ms(at(without, 50)), ms(most), ms(at(with, 99)), ms(at(without, 99))), verdict(met)})
	}
	return rows, nil
}

// startsOf starts and stops the container of each in turn, and returns how long their requests took, in order.
func startsOf(asked, none *timed) (with, without []time.Duration, err error) {
	for range startsBeside {
		for _, t := range []*timed{asked, none} {
			if err := errors.Join(runDocker(nil, "start", t.name), runDocker(nil, "stop", "--time", "0", t.name)); err != nil {
				return nil, nil, err
			}
		}
	}
	with, without = asked.taken(), none.taken()
	if len(with) < startsBeside || len(without) < startsBeside {
		return nil, nil, fmt.Errorf("%d and %d requests came of %d starts", len(with), len(without), startsBeside)
	}
	return with, without, nil
}

// at is the percentile of durations in order.
func at(all []time.Duration, percent int) time.Duration { return all[(len(all)-1)*percent/100] }

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// timed is a daemon, with a network and a container of the same name, whose requests go through a socket on which
// they are timed.
type timed struct {
	name   string
	daemon *exec.Cmd
	server *http.Server
	undo   [][]string // of docker

	mu   sync.Mutex
	took []time.Duration
}

func startTimed(e env, name, subnet string, flags ...string) (*timed, error) {
	socket := filepath.Join(e.dir, name+".sock")
	t := &timed{name: name, daemon: exec.Command(e.berth, append([]string{"serve", "--state", filepath.Join(e.dir, name),
		"--plugin-socket", socket, "--admin-socket", filepath.Join(e.dir, name+"-admin.sock"),
		"--log-level", "warning"}, flags...)...)}
	t.daemon.Stderr = os.Stderr
	if err := t.daemon.Start(); err != nil {
		return nil, err
	}
	err := awaitSocket(socket)
	if err == nil {
		err = t.listen(socket)
	}
	for _, step := range [][]string{
		{"network", "create", "--ipam-driver", name, "--subnet", subnet, name},
		{"create", "--name", name, "--network", name, benchName, "/busybox", "sleep", "1000000"},
	} {
		if err == nil {
			err = runDocker(nil, step...)
		}
	}
	if err != nil {
		return nil, errors.Join(err, t.stop())
	}
	return t, nil
}

// listen passes on what the engine sends, and notes how long each request for a container's address takes.
func (t *timed) listen(to string) error {
	proxy := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: "berth"})
	proxy.Transport = &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", to)
	}}
	l, err := net.Listen("unix", filepath.Join("/run/docker/plugins", t.name+".sock"))
	if err != nil {
		return err
	}
	t.server = &http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(
		func(w http.ResponseWriter, r *http.Request) {
			begun := time.Now()
			proxy.ServeHTTP(w, r)
			if r.URL.Path == "/IpamDriver.RequestAddress" {
				t.mu.Lock()
				defer t.mu.Unlock()
				t.took = append(t.took, time.Since(begun))
			}
		})}
	go func() { _ = t.server.Serve(l) }()
	return nil
}

// fill makes containers on the network until so many besides its own are there, and forgets what was timed.
func (t *timed) fill(idle int) error {
	for n := len(t.undo); n < idle; n++ {
		name := t.name + "-" + strconv.Itoa(n)
		if err := runDocker(nil, "create", "--name", name, "--network", t.name, benchName, "/busybox", "true"); err != nil {
			return err
		}
		t.undo = append(t.undo, []string{"rm", name})
	}
	t.taken()
	return nil
}

// taken returns what was timed, in order, and forgets it.
func (t *timed) taken() []time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	all := t.took
	t.took = nil
	slices.SortFunc(all, cmp.Compare)
	return all
}

func (t *timed) stop() (err error) {
	for _, args := range append(t.undo, []string{"rm", "--force", t.name}, []string{"network", "rm", t.name}) {
		err = errors.Join(err, runDocker(nil, args...))
	}
	if t.server != nil {
		err = errors.Join(err, t.server.Close())
	}
	return errors.Join(err, t.daemon.Process.Signal(syscall.SIGTERM), t.daemon.Wait())
}
