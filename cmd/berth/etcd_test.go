package main

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

// scriptEtcd is the etcd of a script.
type scriptEtcd struct {
	dir     string
	url     string // of its clients
	args    []string
	process *exec.Cmd // nil: it does not run
}

type etcdKey struct{}

// etcdCommand is `etcd VERB` of a script:
//
//	etcd start [FLAG...]   starts one with no data, with further flags; its URL is in $ETCD
//	etcd stop, cont        it does not answer, and answers again (SIGSTOP, SIGCONT)
//	etcd kill, again       it ends without a word, and starts again on what it has; etcd/ in $WORK is that
func etcdCommand(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) == 0 {
		ts.Fatalf("usage: etcd start|stop|cont|kill|again [FLAG...]")
	}
	e := ts.Value(etcdKey{}).(*scriptEtcd)
	switch verb := args[0]; verb {
	case "start":
		ts.Check(e.choose(args[1:]))
		ts.Check(e.start())
		ts.Setenv("ETCD", e.url)
	case "stop":
		ts.Check(e.process.Process.Signal(syscall.SIGSTOP))
	case "cont":
		ts.Check(e.process.Process.Signal(syscall.SIGCONT))
	case "kill":
		e.end()
	case "again":
		ts.Check(e.start())
	default:
		ts.Fatalf("etcd has no verb %s", verb)
	}
}

// etcdProgram finds etcd: the one that scripts/needs has brought, or the system's.
func etcdProgram() (string, error) {
	own, err := filepath.Abs("../../build/tools/etcd/etcd")
	if err != nil {
		return "", err
	}
	if _, err := os.Stat(own); err == nil {
		return own, nil
	}
	path, err := exec.LookPath("etcd")
	if err != nil {
		return "", fmt.Errorf("%w; `scripts/needs test` brings an etcd", err)
	}
	return path, nil
}

// choose finds two ports that nobody uses at the moment.
func (e *scriptEtcd) choose(flags []string) error {
	var urls []string
	for range 2 {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return err
		}
		defer l.Close()
		urls = append(urls, "http://"+l.Addr().String())
	}
	e.url = urls[0]
	e.args = append([]string{"--data-dir", filepath.Join(e.dir, "etcd"), "--listen-client-urls", urls[0], "--advertise-client-urls", urls[0],
		"--listen-peer-urls", urls[1], "--initial-advertise-peer-urls", urls[1], "--initial-cluster", "default=" + urls[1], "--log-level", "error"}, flags...)
	return nil
}

// start starts it, and waits until it serves.
func (e *scriptEtcd) start() error {
	program, err := etcdProgram()
	if err != nil {
		return err
	}
	said, err := os.Create(filepath.Join(e.dir, "etcd.log"))
	if err != nil {
		return err
	}
	defer said.Close()
	e.process = exec.Command(program, e.args...)
	e.process.Stdout, e.process.Stderr = said, said
	if err := e.process.Start(); err != nil {
		return err
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: time.Second}
	for until := time.Now().Add(20 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		healthy, err := e.healthy(client)
		if healthy {
			return nil
		}
		if time.Now().After(until) {
			return errors.Join(errors.New("etcd does not serve"), err)
		}
	}
}

func (e *scriptEtcd) healthy(client *http.Client) (bool, error) {
	res, err := client.Get(e.url + "/health")
	if err != nil {
		return false, err
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	return strings.Contains(string(body), `"true"`), err
}

// end kills it where it runs.
func (e *scriptEtcd) end() {
	if e.process == nil {
		return
	}
	_ = e.process.Process.Kill() // it may have ended
	_ = e.process.Wait()         // which says that it was killed
	e.process = nil
}
