package main

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"berth/test/lab"

	"github.com/rogpeppe/go-internal/testscript"
)

// scriptEtcd is the etcd of a script.
type scriptEtcd struct {
	dir     string
	url     string // of its clients
	health  string // the URL that says whether it serves
	args    []string
	process *exec.Cmd // nil: it does not run
}

type etcdKey struct{}

// etcdCommand is `etcd VERB` of a script:
//
//	etcd start [FLAG...]   starts an etcd without data; its URL is in $ETCD. With --cert-file it speaks TLS
//	etcd stop, cont        suspends and resumes it (SIGSTOP, SIGCONT)
//	etcd guard USER WORD   requires users and passwords from now on; this user may do anything, but only under berth/
//	etcd fill, room        uses up its quota (start it with a small one), and frees space again
//	etcd kill, again       kills it, and starts it again on its data, which is in etcd/ in $WORK
//	etcd save FILE         saves a snapshot of its data
//	etcd restore FILE      kills it, and starts it again on that snapshot
func etcdCommand(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) == 0 {
		ts.Fatalf("usage: etcd start|stop|cont|guard|fill|room|kill|again|save|restore [ARG...]")
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
	case "guard":
		ts.Check(e.guard(args[1], args[2]))
	case "kill":
		e.end()
	case "again":
		ts.Check(e.start())
	case "fill":
		ts.Check(e.fill())
	case "room":
		ts.Check(e.makeRoom())
	case "save":
		ts.Check(e.control("--endpoints="+e.url, "snapshot", "save", ts.MkAbs(args[1])))
	case "restore":
		e.end()
		data := filepath.Join(e.dir, "etcd")
		ts.Check(os.RemoveAll(data))
		ts.Check(e.control("snapshot", "restore", ts.MkAbs(args[1]), "--data-dir="+data, "--initial-cluster="+
			e.flag("initial-cluster"),
			"--initial-advertise-peer-urls="+e.flag("initial-advertise-peer-urls")))
		ts.Check(e.start())
	default:
		ts.Fatalf("etcd has no verb %s", verb)
	}
}

// control runs etcdctl.
func (e *scriptEtcd) control(args ...string) error {
	program, err := lab.Tool("etcdctl")
	if err != nil {
		return err
	}
	cmd := exec.Command(program, args...)
	cmd.Env = append(os.Environ(), "ETCDCTL_API=3")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("etcdctl: %w\n%s", err, out)
	}
	return nil
}

// flag is the value of one of etcd's flags.
func (e *scriptEtcd) flag(name string) string {
	at := slices.Index(e.args, "--"+name)
	return e.args[at+1]
}

// choose finds ports that are free at the moment.
func (e *scriptEtcd) choose(flags []string) error {
	scheme, urls := "http://", []string(nil)
	if slices.ContainsFunc(flags, func(f string) bool { return strings.HasPrefix(f, "--cert-file") }) {
		scheme = "https://"
	}
	for range 3 {
		address, err := lab.FreeAddress()
		if err != nil {
			return err
		}
		urls = append(urls, address)
	}
	e.url = scheme + urls[0]
	peer, probe := "http://"+urls[1], "http://"+urls[2]
	e.health = probe + "/health"
	e.args = append([]string{"--data-dir", filepath.Join(e.dir, "etcd"), "--listen-client-urls", e.url,
		"--advertise-client-urls", e.url,
		"--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer, "--initial-cluster", "default=" +
			peer, "--listen-metrics-urls", probe,
		"--log-level", "error"}, flags...)
	return nil
}

// start starts it, and waits until it serves.
func (e *scriptEtcd) start() error {
	program, err := lab.Tool("etcd")
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
	e.process.Env = append(os.Environ(), "NOTIFY_SOCKET=") // which belongs to a daemon
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
	res, err := client.Get(e.health)
	if err != nil {
		return false, err
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	return strings.Contains(string(body), `"true"`), err
}

// guard makes etcd require users and passwords, and creates one user who may read and write keys that begin with
// berth/, and nothing else.
func (e *scriptEtcd) guard(user, password string) error {
	flags := []string{"--endpoints=" + e.url}
	if strings.HasPrefix(e.url, "https:") { // with the files that certs makes
		for flag, file := range map[string]string{"cacert": "ca.pem", "cert": "admin.pem", "key": "admin.key"} {
			flags = append(flags, "--"+flag+"="+filepath.Join(e.dir, file))
		}
	}
	for line := range strings.Lines(`role add USER
		role grant-permission USER --prefix=true readwrite berth/
		user add USER:WORD
		user grant-role USER USER
		user add root:of-etcd
		user grant-role root root
		auth enable`) {
		words := strings.Fields(line)
		for i := range words {
			words[i] = strings.NewReplacer("USER", user, "WORD", password).Replace(words[i])
		}
		if err := e.control(append(flags, words...)...); len(words) > 0 && err != nil {
			return err
		}
	}
	return nil
}

// end kills etcd if it runs.
func (e *scriptEtcd) end() {
	if e.process == nil {
		return
	}
	_ = e.process.Process.Kill() // it may have ended already
	_ = e.process.Wait()         // which reports that it was killed
	e.process = nil
}
