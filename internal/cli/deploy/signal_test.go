package deploy_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"berth/internal/admin/client"
)

// interrupting is a compose command that interrupts its caller when it has to make something, and continues.
const interrupting = `case "$*" in
*"version --short") echo 5.5.0 ;;
*"config --hash *") echo web h-web ;;
*) kill -INT $PPID; exec sleep 600 ;;
esac
`

// TestApplyInterrupted: a signal ends a deploy like a failure. Running work is ended, and the lock is given back
// at once, with a report of what was done.
func TestApplyInterrupted(t *testing.T) {
	h := enter(t)
	h.plan("front", "10.8.0.0/24", "10.8.0.10+10")
	h.engine.Images["x"] = "sha256:x"
	h.file("services: {web: {image: x, networks: [front]}}" + networks)
	script := filepath.Join(t.TempDir(), "compose.sh")
	h.must(os.WriteFile(script, []byte(interrupting), 0o600))
	code, _, said := h.berth("apply", "--yes", "--compose-command", "sh "+script)
	if code != 130 || !strings.Contains(said, "interrupted; completed steps stay; run the command again for the rest") {
		t.Errorf("it ends with %d: %s", code, said)
	}
	c := client.New(h.socket)
	defer c.Close()
	locks, err := c.Deploys(t.Context())
	if err != nil || len(locks) > 0 {
		t.Errorf("it is locked still: %v, %v", locks, err)
	}
	runs, err := c.DeployRuns(t.Context(), "shop", 0)
	if err != nil || len(runs) != 1 || runs[0].Outcome != "failed" {
		t.Errorf("told of it is %+v, %v", runs, err)
	}
}
