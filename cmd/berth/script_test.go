package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
	_ "time/tzdata" // a minimal Debian has no time zones

	"berth/internal/admin/client"
	"berth/test/lab"

	"github.com/rogpeppe/go-internal/testscript"
	"go.uber.org/goleak"
)

// leakTested runs the tests and then checks for leaked goroutines.
type leakTested struct{ m *testing.M }

func (l leakTested) Run() int {
	visit, err := exec.LookPath("visit") // another name of this program, like berth
	if err == nil {
		err = os.Symlink(visit, filepath.Join(filepath.Dir(visit), "berth"))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	debug.SetGCPercent(1000) // each command line leaves a tree of commands; collecting them took most of the time
	code := l.m.Run()
	if err := goleak.Find(); err != nil && code == 0 {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return code
}

func TestMain(m *testing.M) {
	if filepath.Base(os.Args[0]) == "berth" { // started as berth; in scripts `berth` alone is a command (here_test.go)
		onEmptyHost()
	}
	time.Local = time.UTC // scripts set TZ for the same
	testscript.Main(leakTested{m}, map[string]func(){"visit": visit})
}

// TestScripts runs testdata/*.txtar. A script that starts a daemon has it to itself:
//
//	berth ARG...                runs a command line in this process (here_test.go)
//	exits CODE berth ARG...     the same, and checks the exit code; `exits CODE exec ...` for processes
//	until REGEXP berth ARG...   runs a command until it prints a matching line
//	exec berth serve &daemon&   serves on the sockets in $WORK that the environment names
//	ready                       waits until the daemon is ready (sd_notify)
//	call METHOD JSON            calls its plugin socket, and prints the answer; keeps the PoolID in $POOL
//	certs, remote LOG           for a daemon on the network (certs_test.go)
//	engine VERB ...             a Docker Engine for the daemon (engine_test.go)
//	prometheus VERB ...         a Prometheus that scrapes the daemon (prometheus_test.go)
//	receiver VERB ...           a receiver of webhooks (webhook_test.go)
//	etcd VERB ...               an etcd that daemons share (etcd_test.go)
//	answers LOG NAME TYPE WANT  queries a name until the daemon answers WANT; LOG has its address (dns_test.go)
//	readyz STATUS LINE          checks the daemon's readiness probe; the answer begins with LINE
//	terminate [HUP]             sends it SIGTERM, or SIGHUP; `wait daemon` then checks for exit code 0
//	forms, views                check that JSON, YAML and the page agree (forms_test.go)
//	crowd SOCKET N              opens connections and keeps them until the script ends (crowd_test.go)
func TestScripts(t *testing.T) {
	testscript.Run(t, scriptParams("testdata"))
}

func scriptParams(dir string) testscript.Params {
	return testscript.Params{
		Dir:                 dir,
		RequireExplicitExec: true,
		Setup:               setUpScript,
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"ready": ready, "call": call, "mode": mode, "readyz": readyz, "socket": leaveSocket, "terminate": terminate,
			"crowd": crowd, "await": await, "ask": ask, "forms": forms, "views": views,
			"certs": certs, "remote": remote, "keep": keep, "engine": engine, "etcd": etcdCommand,
			"berth": berthCommand, "exits": exits, "until": until,
			"prometheus": prometheusCommand, "receiver": receiverCommand, "answers": answers,
		},
	}
}

type notifyKey struct{}

func setUpScript(env *testscript.Env) error {
	notify, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: env.WorkDir + "/notify", Net: "unixgram"})
	if err != nil {
		return err
	}
	env.Defer(func() { notify.Close() })
	env.Values[notifyKey{}] = notify
	stand := newScriptEngine(env)
	env.Defer(stand.stop)
	env.Values[engineKey{}] = stand
	etcd := &scriptEtcd{dir: env.WorkDir}
	env.Defer(etcd.end)
	env.Values[etcdKey{}] = etcd
	prometheus := &scriptPrometheus{dir: env.WorkDir}
	env.Defer(prometheus.stop)
	env.Values[prometheusKey{}] = prometheus
	receiver := &scriptReceiver{dir: env.WorkDir, verify: "../../docs/webhooks.md"}
	env.Defer(receiver.stop)
	env.Values[receiverKey{}] = receiver
	env.Setenv("NOTIFY_SOCKET", env.WorkDir+"/notify")
	golden, err := filepath.Abs("../../internal/golden/1.0") // for documents of 1.0
	if err != nil {
		return err
	}
	env.Setenv("GOLDEN", golden)
	env.Setenv("BERTH_STATE", env.WorkDir+"/state")
	env.Setenv("BERTH_PLUGIN_SOCKET", env.WorkDir+"/plugin.sock")
	env.Setenv("BERTH_ADMIN_SOCKET", env.WorkDir+"/admin.sock")
	env.Setenv("BERTH_HOST", "alpha")
	env.Setenv("BERTH_DOCKER_HOST", "none") // scripts must not use the machine's own engine
	env.Setenv("TZ", "UTC")
	env.Setenv("GOGC", "400")                 // processes are short and many
	env.Setenv("GORACE", "atexit_sleep_ms=0") // or each command takes a second under the race detector
	return nil
}

// ready waits until the daemon reports that it serves.
func ready(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) > 0 {
		ts.Fatalf("usage: ready")
	}
	notify := ts.Value(notifyKey{}).(*net.UnixConn)
	ts.Check(notify.SetReadDeadline(time.Now().Add(20 * time.Second)))
	b := make([]byte, 256)
	n, err := notify.Read(b)
	ts.Check(err)
	if got := string(b[:n]); got != "READY=1" {
		ts.Fatalf("the daemon said %q", got)
	}
}

// terminate sends SIGTERM, or SIGHUP, to the process that answers on the admin socket.
func terminate(ts *testscript.TestScript, neg bool, args []string) {
	end := syscall.SIGTERM
	switch {
	case len(args) == 1 && args[0] == "HUP" && !neg:
		end = syscall.SIGHUP
	case neg || len(args) > 0:
		ts.Fatalf("usage: terminate [HUP]")
	}
	c := client.New(ts.Getenv("BERTH_ADMIN_SOCKET"))
	defer c.Close()
	v, err := c.Version(context.Background())
	ts.Check(err)
	ts.Check(syscall.Kill(v.PID, end))
}

// readyz STATUS LINE compares the answer of the daemon's probe.
func readyz(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: readyz STATUS LINE")
	}
	status, line := asksAPI(ts, http.MethodGet, "/readyz", "")
	if strconv.Itoa(status) != args[0] || !strings.HasPrefix(line, args[1]) {
		ts.Fatalf("readyz: %d %s", status, line)
	}
}

// call sends one message to the plugin socket.
func call(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) != 2 {
		ts.Fatalf("usage: [!] call METHOD JSON")
	}
	body := strings.ReplaceAll(args[1], "POOL", ts.Getenv("POOL"))
	res, err := lab.Over(ts.Getenv("BERTH_PLUGIN_SOCKET")).Post("http://plugin/IpamDriver."+args[0], "application/json",
		strings.NewReader(body))
	ts.Check(err)
	defer res.Body.Close()
	answer, err := io.ReadAll(res.Body)
	ts.Check(err)
	_, err = ts.Stdout().Write(answer)
	ts.Check(err)
	if (res.StatusCode == http.StatusOK) == neg {
		ts.Fatalf("%s was answered with %s", args[0], res.Status)
	}
	var pool struct{ PoolID string }
	if json.Unmarshal(answer, &pool) == nil && pool.PoolID != "" {
		ts.Setenv("POOL", pool.PoolID)
	}
}

// mode FILE MODE compares the mode of a file as `ls -l` shows it.
func mode(ts *testscript.TestScript, _ bool, args []string) {
	info, err := os.Lstat(ts.MkAbs(args[0]))
	ts.Check(err)
	if got := info.Mode().String(); got != args[1] {
		ts.Fatalf("%s has the mode %s, not %s", args[0], got, args[1])
	}
}

// leaveSocket PATH leaves a socket without a listener there, as a crash does.
func leaveSocket(ts *testscript.TestScript, _ bool, args []string) {
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: ts.MkAbs(args[0]), Net: "unix"})
	ts.Check(err)
	l.SetUnlinkOnClose(false)
	ts.Check(l.Close())
}

// await FILE TEXT waits until a background command has written the text.
func await(ts *testscript.TestScript, _ bool, args []string) {
	again := time.NewTicker(10 * time.Millisecond)
	defer again.Stop()
	late := time.After(20 * time.Second)
	for {
		b, err := os.ReadFile(ts.MkAbs(args[0]))
		if err == nil && strings.Contains(string(b), args[1]) {
			return
		}
		select {
		case <-again.C:
		case <-late:
			ts.Fatalf("%s does not hold %q: %s", args[0], args[1], b)
		}
	}
}

// fine ends a test on an error.
func fine(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
