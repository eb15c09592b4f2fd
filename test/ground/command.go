package ground

import (
	"bytes"
	"fmt"
	"os/exec"
	"strings"
)

// Output runs a command, and returns what it wrote to its standard output, trimmed. An error holds what it wrote to
// standard error.
func Output(cmd *exec.Cmd) (string, error) {
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	if err != nil {
		err = fmt.Errorf("%s: %w: %s", strings.Join(cmd.Args, " "), err, strings.TrimSpace(errs.String()))
	}
	return strings.TrimSpace(out.String()), err
}
