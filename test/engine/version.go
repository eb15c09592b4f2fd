//go:build engine

package engine

import (
	"encoding/json"
	"flag"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
)

var skippedFile = flag.String("skipped", "", "write the tests that the engine's version skips, and why, to this `file`")

// engineVersion is the version of the engine under test, such as 20.10.24+dfsg1, and engineMajor its first number.
// engineAPI is the minor version of its API (1.N).
var (
	engineVersion string
	engineMajor   int
	engineAPI     int
)

// readVersion asks the engine for its version.
func readVersion(e Engine) error {
	answer, err := e.api(http.MethodGet, "/version", nil)
	if err != nil {
		return err
	}
	var version struct{ Version, APIVersion string }
	if err := json.Unmarshal(answer, &version); err != nil {
		return err
	}
	engineVersion = version.Version
	major, _, _ := strings.Cut(engineVersion, ".")
	if engineMajor, err = strconv.Atoi(major); err != nil {
		return fmt.Errorf("the engine's version is %q: %w", engineVersion, err)
	}
	if _, err := fmt.Sscanf(version.APIVersion, "1.%d", &engineAPI); err != nil {
		return fmt.Errorf("the version of the engine's API is %q: %w", version.APIVersion, err)
	}
	return nil
}

// keepsMACs reports whether the engine keeps a configured MAC when it connects a container again.
func keepsMACs() bool { return engineAPI < 44 || engineAPI >= 54 }

// A subject is what a test is about and only some engines have.
type subject struct {
	name  string
	since int // the first version of the engine with it
	gone  int // the first version of the engine without it; 0: none
}

var (
	names       = subject{name: "engines that send the names of containers", since: 29}
	noNames     = subject{name: "engines that send no names of containers", gone: 29}
	compose1    = subject{name: "docker-compose 1.29, which recreates no containers there ('ContainerConfig')", gone: 26}
	addressMACs = subject{name: "engines that derive the MAC of a container from its address", gone: 28}
)

// there reports whether the engine has it.
func (s subject) there() bool { return engineMajor >= s.since && (s.gone == 0 || engineMajor < s.gone) }

// only skips a test about a subject on an engine that does not have it. The end of the run lists these tests.
func only(t *testing.T, about subject) {
	t.Helper()
	if about.there() {
		return
	}
	skipped.Lock()
	skipped.tests = append(skipped.tests, fmt.Sprintf("%s is about %s", t.Name(), about.name))
	skipped.Unlock()
	t.Skipf("about %s; this is %s", about.name, engineVersion)
}

// skipped holds the tests that only has skipped.
var skipped struct {
	sync.Mutex
	tests []string
}

// reportSkipped writes them to -skipped.
func reportSkipped() error {
	if *skippedFile == "" {
		return nil
	}
	slices.Sort(skipped.tests)
	text := fmt.Sprintf("Docker Engine %s: %d tests skipped because of its version\n", engineVersion, len(skipped.tests))
	for _, line := range skipped.tests {
		text += "  " + line + "\n"
	}
	return os.WriteFile(*skippedFile, []byte(text), 0o644)
}
