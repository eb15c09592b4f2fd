package lab

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"time"
)

// Run runs a program that takes at most within on an idle machine, with a standard input, and returns its output
// like Output.
func Run(within time.Duration, stdin io.Reader, program string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), Patient(within))
	defer cancel()
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Stdin = stdin
	cmd.WaitDelay = 5 * time.Second
	return Output(cmd)
}

// Output runs a command and returns its standard output, trimmed. An error contains its standard error.
func Output(cmd *exec.Cmd) (string, error) {
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	if err != nil {
		err = fmt.Errorf("%s: %w: %s", strings.Join(cmd.Args, " "), err, strings.TrimSpace(errs.String()))
	}
	return strings.TrimSpace(out.String()), err
}
