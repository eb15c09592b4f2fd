//go:build engine

package engine

import (
	"cmp"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"berth/test/lab"
)

// Settings of a managed plugin (`docker plugin set`) work on a real engine. A receiver on the host gets signed events
// of a network and a container, with the secret in the plugin's state. The host's own address serves metrics and
// names.
func TestPluginSettings(t *testing.T) {
	t.Parallel()
	name := prefix + "told:latest"
	lab.Must(t, makePlugin(machineEngine, name, binary))
	p := &Plugin{Name: name, Sockets: pluginDir, engine: machineEngine, binary: binary}
	p.removedAfter(t)
	if err := p.Enable(); err != nil { // this creates its state
		t.Fatal(err)
	}
	state, err := p.state()
	lab.Must(t, err)
	const secret = "whsec_c2VjcmV0IG9mIHRoZSB0ZXN0cyBvZiB0aGUgZW5naW5l"
	lab.Must(t, os.WriteFile(filepath.Join(state, "webhook.secret"), []byte(secret+"\n"), 0o600))
	messages := make(chan string, 1000) // "TYPE ADDRESS" or "TYPE SUBNET" of each signed message to the receiver
	receiver := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		var m struct {
			Type string
			Data struct{ Address, Subnet string }
		}
		if json.NewDecoder(r.Body).Decode(&m) == nil && r.Header.Get("webhook-signature") != "" {
			messages <- m.Type + " " + cmp.Or(m.Data.Address, m.Data.Subnet)
		}
	}))
	t.Cleanup(receiver.Close)
	metrics, names := lab.Free(t), lab.Free(t)
	lab.Must(t, p.Disable())
	if _, err := machineEngine.Docker("plugin", "set", name, "BERTH_WEBHOOK="+receiver.URL+"/berth",
		"BERTH_WEBHOOK_SECRET_FILE=/var/lib/berth/webhook.secret", "BERTH_METRICS_LISTEN="+metrics,
		"BERTH_DNS_LISTEN="+names, "BERTH_DNS_ZONE=lan.example", "BERTH_DNS_ALLOW=198.51.100.0/24"); err != nil {
		t.Fatal(err)
	}
	lab.Must(t, p.Enable())

	h := enter(t, machineEngine, p, 93)
	n := h.network("--subnet", h.v4("0/25"))
	a := h.address(h.container(n), n)
	told(t, messages, "subnet.create "+h.v4("0/25"))
	told(t, messages, "lease.take "+a)

	planned := h.plan("--subnet", h.v4("128/25"))
	h.berth("reservation", "add", planned, "--owner", "printer", "--ip", h.v4("200"))
	host, port, err := net.SplitHostPort(names)
	lab.Must(t, err)
	h.answers(host, "-p "+port+" printer."+planned+".lan.example", h.v4("200"))

	resp, err := http.Get("http://" + metrics + "/metrics")
	lab.Must(t, err)
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("metrics: %s (%v)\n%s", resp.Status, err, text)
	}
	for _, want := range []string{"berth_build_info{", `berth_requests_total{op="RequestAddress",result="ok"} `,
		`subnet="` + h.v4("0/25") + `"`, "berth_webhook_failures_total 0\n"} {
		if !strings.Contains(string(text), want) {
			t.Errorf("the metrics have no %s:\n%s", want, text)
		}
	}
}

// state returns the host's path of the plugin's /var/lib/berth, as docs/webhooks.md describes.
func (p *Plugin) state() (string, error) {
	root, err := p.engine.Docker("info", "-f", "{{.DockerRootDir}}")
	return filepath.Join(root, "plugins", p.ID, "propagated-mount"), err
}

// told waits for a message.
func told(t *testing.T, messages <-chan string, want string) {
	t.Helper()
	var before []string
	limit := time.After(lab.Patient(20 * time.Second))
	for {
		select {
		case got := <-messages:
			if got == want {
				return
			}
			before = append(before, got)
		case <-limit:
			t.Fatalf("%s did not come, but %q", want, before)
		}
	}
}
