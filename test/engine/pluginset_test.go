//go:build engine

package engine

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"berth/test/ground"
	"berth/test/sockets"
)

// What the managed plugin is told with `docker plugin set` of receivers, of Prometheus and of names holds on a real
// engine: a receiver on the host gets the events of a network and a container, signed by the secret in the plugin's
// state, and the host's own address answers with metrics, and for the container's name.
func TestPluginSettings(t *testing.T) {
	t.Parallel()
	name := prefix + "told:latest"
	if err := makePlugin(machineEngine, name, binary); err != nil {
		t.Fatal(err)
	}
	p := &Plugin{Name: name, Sockets: pluginDir, engine: machineEngine, binary: binary}
	p.removedAfter(t)
	if err := p.Enable(); err != nil { // its state is there from now on
		t.Fatal(err)
	}
	key := make([]byte, 32)
	if _, err := rand.Read(key); err != nil {
		t.Fatal(err)
	}
	state, err := p.state()
	if err != nil {
		t.Fatal(err)
	}
	secret := "whsec_" + base64.StdEncoding.EncodeToString(key)
	if err := os.WriteFile(filepath.Join(state, "webhook.secret"), []byte(secret+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	messages := make(chan string, 1000) // of the receiver: what came, or what was wrong with it
	receiver := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		messages <- genuine(r, key)
	}))
	t.Cleanup(receiver.Close)
	metrics, names := sockets.Free(t), sockets.Free(t)
	if err := p.Disable(); err != nil {
		t.Fatal(err)
	}
	if _, err := machineEngine.Docker("plugin", "set", name, "BERTH_WEBHOOK="+receiver.URL+"/berth",
		"BERTH_WEBHOOK_SECRET_FILE=/var/lib/berth/webhook.secret", "BERTH_METRICS_LISTEN="+metrics,
		"BERTH_DNS_LISTEN="+names, "BERTH_DNS_ZONE=lan.example", "BERTH_DNS_ALLOW=198.51.100.0/24"); err != nil {
		t.Fatal(err)
	}
	if err := p.Enable(); err != nil {
		t.Fatal(err)
	}

	h := enterPlanned(t, machineEngine, p, 93)
	n := h.network("--subnet", h.v4("0/25"))
	a := h.address(h.container(n), n)
	told(t, messages, "subnet.create "+h.v4("0/25"))
	told(t, messages, "lease.take "+a)

	planned := h.plan("--subnet", h.v4("128/25"))
	h.berth("reservation", "add", planned, "--owner", "printer", "--ip", h.v4("200"))
	host, port, err := net.SplitHostPort(names)
	if err != nil {
		t.Fatal(err)
	}
	h.answers(host, "-p "+port+" printer."+planned+".lan.example", h.v4("200"))

	resp, err := http.Get("http://" + metrics + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
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

// state is where the host has the directory that the plugin calls /var/lib/berth: as docs/webhooks.md says it.
func (p *Plugin) state() (string, error) {
	root, err := p.engine.Docker("info", "-f", "{{.DockerRootDir}}")
	return filepath.Join(root, "plugins", p.ID, "propagated-mount"), err
}

// genuine is what a message tells, its verb and its address or subnet, where its signature is by the key: Standard
// Webhooks.
func genuine(r *http.Request, key []byte) string {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return err.Error()
	}
	mac := hmac.New(sha256.New, key)
	fmt.Fprintf(mac, "%s.%s.%s", r.Header.Get("webhook-id"), r.Header.Get("webhook-timestamp"), body)
	want := "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
	if got := r.Header.Get("webhook-signature"); got != want {
		return fmt.Sprintf("%q is no signature of %s", got, body)
	}
	var m struct {
		Type string
		Data struct{ Address, Subnet string }
	}
	if err := json.Unmarshal(body, &m); err != nil {
		return fmt.Sprintf("%s: %v", body, err)
	}
	if m.Data.Address != "" {
		return m.Type + " " + m.Data.Address
	}
	return m.Type + " " + m.Data.Subnet
}

// told waits for a message.
func told(t *testing.T, messages <-chan string, want string) {
	t.Helper()
	var before []string
	limit := time.After(ground.Patient(20 * time.Second))
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
