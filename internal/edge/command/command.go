package command

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"berth/internal/edge"
)

const (
	// expired is the exit status of a program for a late renewal.
	expired = 3
	// drain is how long a child process of the program may keep its output open after the program's end.
	drain = time.Second
	// told is the maximum length of a program's output in an error, in bytes.
	told = 4096
)

// Provider is an edge.Provider.
type Provider struct {
	path string
	args []string
	one  sync.Mutex // one run of the program at a time
}

// New returns a Provider for a program. It does not run the program yet.
func New(path string, args ...string) *Provider {
	return &Provider{path: path, args: slices.Clone(args)}
}

// Set implements edge.Provider.
func (p *Provider) Set(ctx context.Context, s edge.State) error {
	err := s.Check()
	if err != nil {
		return err
	}
	// In JSON the lists are never null.
	s.Ranges, s.Mappings = orNone(s.Ranges), orNone(s.Mappings)
	_, err = p.run(ctx, "set", s)
	return err
}

func orNone[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}

// Renew implements edge.Provider.
func (p *Provider) Renew(ctx context.Context, until edge.BootTime) error {
	now, err := edge.Now()
	if err != nil {
		return err
	}
	if until <= now {
		return edge.ErrExpired
	}
	_, err = p.run(ctx, "renew", struct {
		Until edge.BootTime `json:"until"`
	}{until})
	if ended := (*exec.ExitError)(nil); errors.As(err, &ended) && ended.ExitCode() == expired {
		return edge.ErrExpired
	}
	return err
}

// Enabled implements edge.Provider.
func (p *Provider) Enabled(ctx context.Context) (bool, error) {
	out, err := p.run(ctx, "enabled", nil)
	if err != nil {
		return false, err
	}
	switch answer := strings.TrimSpace(out); answer {
	case "true":
		return true, nil
	case "false":
		return false, nil
	default:
		return false, fmt.Errorf("%s enabled answered %.100q; it must write true or false", p.path, answer)
	}
}

// Remove implements edge.Provider.
func (p *Provider) Remove(ctx context.Context) error {
	_, err := p.run(ctx, "remove", nil)
	return err
}

// run runs the program. When ctx ends, it ends with all its child processes.
func (p *Provider) run(ctx context.Context, word string, input any) (string, error) {
	p.one.Lock()
	defer p.one.Unlock()
	cmd := exec.CommandContext(ctx, p.path, append(slices.Clone(p.args), word)...)
	if input != nil {
		b, err := json.Marshal(input)
		if err != nil {
			return "", err
		}
		cmd.Stdin = bytes.NewReader(append(b, '\n'))
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = drain
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	if errors.Is(err, exec.ErrWaitDelay) {
		err = nil // it succeeded, and a child process keeps its output open
	}
	if err != nil {
		text := strings.TrimSpace(errs.String())
		return "", fmt.Errorf("%s %s: %w: %s", p.path, word, err, text[:min(len(text), told)])
	}
	return out.String(), nil
}
