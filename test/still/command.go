package still

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Version is the version of the compose command, which also made the containers.
const Version = "5.5.0"

// Command is a compose command that prints its version and the hashes of services, and does nothing else.
type Command struct{ dir string }

// NewCommand writes the command into dir.
func NewCommand(dir string) (*Command, error) {
	c := &Command{dir}
	return c, os.WriteFile(c.script(), fmt.Appendf(nil, `case "$*" in
*"version --short") echo %s ;;
*"config --hash *") if [ -f %[2]s/refusal ]; then cat %[2]s/refusal >&2; exit 15; fi; cat %[2]s/hashes ;;
*) echo "this compose command does nothing: $*" >&2; echo "$*" >>%[2]s/asked; exit 1 ;;
esac
`, Version, dir), 0o600)
}

func (c *Command) script() string { return filepath.Join(c.dir, "compose.sh") }

// Words are its command line.
func (c *Command) Words() string { return "sh " + c.script() }

// Hashes sets the hashes that it prints.
func (c *Command) Hashes(hashes map[string]string) error {
	var lines strings.Builder
	for _, service := range slices.Sorted(maps.Keys(hashes)) {
		fmt.Fprintf(&lines, "%s %s\n", service, hashes[service])
	}
	return os.WriteFile(filepath.Join(c.dir, "hashes"), []byte(lines.String()), 0o600)
}

// Refuse makes it refuse the files with these words. Empty words make it accept them.
func (c *Command) Refuse(words string) error {
	file := filepath.Join(c.dir, "refusal")
	if words == "" {
		return os.RemoveAll(file)
	}
	return os.WriteFile(file, []byte(words+"\n"), 0o600)
}

// Asked is everything else that it was asked to do, one per line.
func (c *Command) Asked() string {
	text, err := os.ReadFile(filepath.Join(c.dir, "asked"))
	if err != nil {
		return ""
	}
	return string(text)
}
