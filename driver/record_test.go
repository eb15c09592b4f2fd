//go:build record

package driver

import (
	"bytes"
	"context"
	"crypto/rand"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/txtar"
)

// The recorder writes the fixtures of TestWire. It is a plugin of the engine that passes each call to a Berth and
// records what was sent.
//
//	go test -tags record -run TestRecord ./driver -args -image IMAGE [-engine unix://SOCKET] [-plugins DIR] [-restart COMMAND]
//
// The image needs /pause, which sleeps, and exits with status 1 when called as "/pause fail". COMMAND is run with the
// argument stop, kill or start, for an engine that may be stopped. Never use the machine's own engine.
var (
	recordEngine  = flag.String("engine", "", "the engine, if not the default one")
	recordPlugins = flag.String("plugins", "/run/docker/plugins", "where it looks for plugins' sockets")
	recordImage   = flag.String("image", "", "an image with /pause")
	recordRestart = flag.String("restart", "", "command that stops, kills and starts the engine")
	recordDriver  = flag.String("driver", "",
		"a managed plugin that passes all calls on to DIR/recorder.sock, as swarm needs one")
	recordOnly  = flag.String("situation", "", "record only this one")
	recordSwarm = flag.Bool("swarm", false, "the engine is a swarm manager: record only its situations")
)

// recorder is the plugin.
type recorder struct {
	t      *testing.T
	name   string // of the plugin
	mu     sync.Mutex
	bench  *bench
	calls  *txtar.Archive
	names  *poolNames
	prefix string // of the objects that it creates in the engine
}

func (r *recorder) ServeHTTP(w http.ResponseWriter, q *http.Request) {
	body, err := io.ReadAll(q.Body)
	if err != nil {
		r.t.Errorf("reading a body: %v", err)
	}
	method := strings.TrimPrefix(q.URL.Path, "/")
	r.mu.Lock()
	defer r.mu.Unlock()
	r.calls.Files = append(r.calls.Files, txtar.File{
		Name: fmt.Sprintf("%02d %s", len(r.calls.Files)+1, method), Data: []byte(r.names.names(string(body))),
	})
	q.Body = io.NopCloser(bytes.NewReader(body))
	answer := httptest.NewRecorder()
	r.bench.handler.ServeHTTP(answer, q)
	r.names.learn(method, answer.Body.Bytes())
	for key, values := range answer.Header() {
		w.Header()[key] = values
	}
	w.WriteHeader(answer.Code)
	w.Write(answer.Body.Bytes())
}

// situation is one file of recorded calls.
type situation struct {
	name  string
	about string
	// Lines of docker arguments. "!" marks one that must fail, "@" the restart command, "+" a change of the plan. $N is
	// the prefix, $D the driver, $I the image.
	script string
}

func TestRecord(t *testing.T) {
	r := &recorder{t: t, name: "berth-rec-" + strings.ToLower(rand.Text()[:6])}
	r.reset()
	path := filepath.Join(*recordPlugins, r.name+".sock")
	if *recordDriver != "" {
		r.name, path = *recordDriver, filepath.Join(*recordPlugins, "recorder.sock")
	}
	l, err := net.Listen("unix", path)
	must(t, err)
	server := &http.Server{Handler: r}
	go server.Serve(l)
	t.Cleanup(func() { server.Close(); os.Remove(path) })
	if *recordDriver != "" { // the driver calls the engine when it is enabled, and the recorder must answer then
		r.run("plugin disable -f " + *recordDriver + "\nplugin enable " + *recordDriver)
	}
	version, err := r.docker("version", "-f", "{{.Server.Version}}")
	if err != nil {
		t.Fatal(err, version)
	}
	version, _, _ = strings.Cut(strings.TrimSpace(version), "+")
	dir := filepath.Join("testdata/wire", version)
	must(t, os.MkdirAll(dir, 0o755))
	for i, s := range situations() {
		if *recordOnly != "" && s.name != *recordOnly {
			continue
		}
		r.reset()
		r.prefix = fmt.Sprintf("berth-rec-%s-%d", strings.ToLower(rand.Text()[:4]), i)
		r.run(s.script)
		r.mu.Lock()
		r.calls.Comment = []byte(fmt.Sprintf("# %s\n# Recorded from Docker Engine %s:\n%s", s.about, version,
			commented(s.script)))
		err := os.WriteFile(filepath.Join(dir, s.name+".txtar"), txtar.Format(r.calls), 0o644)
		r.mu.Unlock()
		must(t, err)
	}
}

func (r *recorder) reset() {
	b := macBench(r.t)
	b.avoid = []netip.Prefix{}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.bench, r.calls, r.names = b, new(txtar.Archive), new(poolNames)
}

func (r *recorder) run(script string) {
	for line := range strings.Lines(script) {
		line = strings.TrimSpace(line)
		if line == "" {
			continue
		}
		rest, fails := strings.CutPrefix(line, "!")
		var out string
		var err error
		if wait, ok := strings.CutPrefix(rest, "%"); ok { // this waits for the engine itself, which reports nothing
			var d time.Duration
			d, err = time.ParseDuration(wait)
			time.Sleep(d)
		} else if edit, ok := strings.CutPrefix(rest, "+"); ok {
			r.edit(edit)
		} else if command, ok := strings.CutPrefix(rest, "@"); ok {
			raw, e := exec.Command("sh", "-c", *recordRestart+" "+command).CombinedOutput()
			out, err = string(raw), e
		} else if api, ok := strings.CutPrefix(rest, "curl "); ok {
			out, err = r.curl(r.fill(api))
		} else {
			out, err = r.docker(strings.Fields(r.fill(rest))...)
		}
		if (err != nil) != fails {
			r.t.Errorf("docker %s: %v: %s", line, err, out)
		}
	}
}

// edit changes the plan: OPERATION and its fields.
func (r *recorder) edit(s string) {
	op, fields, _ := strings.Cut(s, " ")
	r.mu.Lock()
	defer r.mu.Unlock()
	r.bench.edit(op, fields)
	r.calls.Files = append(r.calls.Files, txtar.File{
		Name: fmt.Sprintf("%02d edit %s", len(r.calls.Files)+1, op), Data: []byte(fields + "\n"),
	})
}

func (r *recorder) fill(s string) string {
	return strings.NewReplacer("$N", r.prefix, "$D", r.name, "$I", *recordImage).Replace(s)
}

func (r *recorder) docker(args ...string) (string, error) {
	cmd := exec.CommandContext(context.Background(), "docker", args...)
	if *recordEngine != "" {
		cmd.Env = append(os.Environ(), "DOCKER_HOST="+*recordEngine)
	}
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// curl posts to the engine's API what the command line cannot express: PATH and BODY.
func (r *recorder) curl(arg string) (string, error) {
	path, body, _ := strings.Cut(arg, " ")
	socket := strings.TrimPrefix(*recordEngine, "unix://")
	if socket == "" {
		socket = "/var/run/docker.sock"
	}
	out, err := exec.Command("curl", "-sSf", "--unix-socket", socket, "-H", "Content-Type: application/json",
		"-d", body, "http://docker"+path).CombinedOutput()
	return string(out), err
}

func commented(script string) string {
	var b strings.Builder
	for line := range strings.Lines(script) {
		if line = strings.TrimSpace(line); line != "" && line[0] != '%' && line[0] != '+' {
			line = strings.NewReplacer("$N", "net", "$D", "berth", "$I", "image").Replace(line)
			fmt.Fprintf(&b, "#   %s\n", line)
		}
	}
	return b.String()
}
