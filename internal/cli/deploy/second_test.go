package deploy_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"berth/internal/admin/client"
)

// turning is a compose command that gives another hash for web from the Nth time on, as after a deploy by somebody
// else. It makes nothing.
const turning = `case "$*" in
*"version --short") echo 5.5.0 ;;
*"config --hash *") echo x >>%[1]s; if [ $(wc -l <%[1]s) -lt %[2]d ]; then echo web h-web; else echo web %[3]s; fi ;;
*) echo "nothing is made here" >&2; exit 1 ;;
esac
`

// TestApplySecond: if things have changed by the time a deploy has the lock, a deploy with --yes does what is
// needed now. A saved plan is refused, and leaves nothing reserved (BD-1).
func TestApplySecond(t *testing.T) {
	for what, c := range map[string]struct {
		saved bool
		runs  bool // the container is as the other deploy made it
		code  int
		says  string
		owner string // the owner with a reservation afterwards
		did   string
	}{
		"a plan of its own": {false, false, 1, "nothing is made here", "shop/web/1", "failed"},
		"nothing is left":   {false, true, 0, "nothing to do", "shop/web/1", "done"},
		"a plan that is set": {true, false, 1, "the configuration of web has changed; run the command again", "",
			"refused"},
	} {
		t.Run(what, func(t *testing.T) {
			h := enter(t)
			h.plan("front", "10.8.0.0/24", "10.8.0.10+10")
			h.file("services: {web: {image: x, networks: [front]}}" + networks)
			h.engine.Images["x"] = "sha256:x"
			seen, first, now := filepath.Join(t.TempDir(), "seen"), 2, "h-now"
			var args []string
			if c.saved {
				args, first = []string{filepath.Join(t.TempDir(), "plan")}, 3
			}
			if c.runs { // the first look still has the old files, for which it is to be recreated
				h.asWanted("10.8.0.10")
				h.engine.Containers[0].Hash = now
			}
			script := filepath.Join(t.TempDir(), "compose.sh")
			h.must(os.WriteFile(script, fmt.Appendf(nil, turning, seen, first, now), 0o600))
			compose := []string{"--compose-command", "sh " + script}
			if c.saved {
				h.berth("plan", append(compose, "-o", args[0])...)
			}
			code, out, said := h.berth("apply", append(append(compose, "--yes"), args...)...)
			if code != c.code || !strings.Contains(out+said, c.says) {
				t.Errorf("it ends with %d: %s%s", code, out, said)
			}
			k := client.New(h.socket)
			defer k.Close()
			reserved, err := k.Reservations(t.Context(), "", "")
			h.must(err)
			owner := ""
			for i := range reserved {
				owner += reserved[i].Owner
			}
			if owner != c.owner {
				t.Errorf("reserved is something for %q, and was to be for %q", owner, c.owner)
			}
			runs, err := k.DeployRuns(t.Context(), "shop", 0)
			if err != nil || len(runs) != 1 || string(runs[0].Outcome) != c.did {
				t.Errorf("told of it is %+v, %v", runs, err)
			}
		})
	}
}
