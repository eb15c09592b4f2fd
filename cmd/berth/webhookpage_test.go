package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"berth/internal/webhook"
)

// TestWebhooksPage: what docs/webhooks.md has a reader run makes a secret that is taken, and is flags that there are.
// Its check of a signature is run by testdata/webhook.txtar.
func TestWebhooksPage(t *testing.T) {
	page, err := os.ReadFile("../../docs/webhooks.md")
	fine(t, err)
	dir := t.TempDir()
	serves, made := 0, 0
	for i, block := range strings.Split(string(page), "\n```") {
		if i%2 == 0 || !strings.HasPrefix(block, "\n") { // prose, or in a language of its own
			continue
		}
		for line := range strings.Lines(strings.TrimPrefix(block, "\n")) {
			line = strings.TrimSpace(line)
			switch {
			case strings.HasPrefix(line, "berth serve "):
				serves++
				if _, err := parse(t, nil, "serve", strings.Fields(line)[2:]...); err != nil {
					t.Errorf("%s: %v", line, err)
				}
			case strings.HasSuffix(line, " /etc/berth/webhook.secret"):
				made++
				out, err := exec.Command("sh", "-c", strings.ReplaceAll(line, "/etc/berth", dir)).CombinedOutput()
				if err != nil {
					t.Errorf("%s: %v: %s", line, err, out)
				}
			}
		}
	}
	if serves != 2 || made != 2 {
		t.Errorf("%d lines with berth serve, %d others", serves, made)
	}
	if _, err := readWebhookSecret(filepath.Join(dir, "webhook.secret")); err != nil {
		t.Error(err)
	}
	if _, err := webhook.ParseSecret("whsec_"); err == nil {
		t.Error("an empty secret is taken")
	}
}
