package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"berth/internal/webhook"
)

// TestWebhooksPage: the lines in docs/webhooks.md that make a secret make a valid one. TestServeLines checks the
// page's flags, and testdata/webhook.txtar runs its check of a signature.
func TestWebhooksPage(t *testing.T) {
	page, err := os.ReadFile("../../docs/webhooks.md")
	fine(t, err)
	dir := t.TempDir()
	made := 0
	for line := range strings.Lines(string(page)) {
		line = strings.TrimSpace(line)
		if strings.HasSuffix(line, " /etc/berth/webhook.secret") && !strings.HasPrefix(line, "berth ") {
			made++
			out, err := exec.Command("sh", "-c", strings.ReplaceAll(line, "/etc/berth", dir)).CombinedOutput()
			if err != nil {
				t.Errorf("%s: %v: %s", line, err, out)
			}
		}
	}
	if made != 2 {
		t.Errorf("%d lines make a secret", made)
	}
	if _, err := readWebhookSecret(filepath.Join(dir, "webhook.secret")); err != nil {
		t.Error(err)
	}
	if _, err := webhook.ParseSecret("whsec_"); err == nil {
		t.Error("an empty secret is taken")
	}
}
