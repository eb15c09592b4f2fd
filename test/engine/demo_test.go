//go:build engine

package engine

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// `make demo` works twice in a row and shows the container's address as a lease. `make demo-clean` removes everything.
func TestDemo(t *testing.T) {
	t.Parallel()
	choosing.Lock() // Berth chooses the subnet of the demonstration
	defer choosing.Unlock()
	for range 2 {
		out, err := demo("up")
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		shown := regexp.MustCompile(`inet ([0-9.]+)/\d+ `).FindStringSubmatch(out)
		if shown == nil || !regexp.MustCompile(`(?m)^`+regexp.QuoteMeta(shown[1])+`\s.* `+
			regexp.QuoteMeta(demoName)+` +automatic `).MatchString(out) {
			t.Errorf("the container's address is not among the leases, with its name:\n%s", out)
		}
		if !strings.Contains(out, "make demo-clean") {
			t.Errorf("it does not say how to undo it:\n%s", out)
		}
	}
	if out, err := demo("down"); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, path := range []string{"/run/" + demoName, "/var/lib/" + demoName,
		filepath.Join(pluginDir, demoName+".sock")} {
		if _, err := os.Stat(path); err == nil {
			t.Errorf("%s is left", path)
		}
	}
	for _, list := range [][]string{
		{"ps", "--all", "--format", "{{.Names}}"}, {"network", "ls", "--format", "{{.Name}}"},
		{"images", "--format", "{{.Repository}}"},
	} {
		if out, err := machineEngine.Docker(list...); err != nil || strings.Contains(out, demoName) {
			t.Errorf("docker %s shows what is left: %s (%v)", strings.Join(list, " "), out, err)
		}
	}
}
