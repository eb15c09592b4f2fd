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
	// expired is the exit status by which a program says that a renewal came too late.
	expired = 3
	// drain is how long something that the program has started may hold its output after its end.
	drain = time.Second
	// told is how much of what a program writes is told where it fails, in bytes.
	told = 4096
)

// Provider is an edge.Provider.
type Provider struct {
	path string
	args []string
	one  sync.Mutex // the program is not run twice at a time
}

// New makes one of a program, which is not run yet.
func New(path string, args ...string) *Provider {
	return &Provider{path: path, args: slices.Clone(args)}
}

// Set is edge.Provider's.
func (p *Provider) Set(ctx context.Context, s edge.State) error {
	err := s.Check()
	if err != nil {
		return err
	}
	// A program reads lists, also where they are empty.
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

// Renew is edge.Provider's.
func (p *Provider) Renew(ctx context.Context, until edge.Moment) error {
	now, err := edge.Now()
	if err != nil {
		return err
	}
	if until <= now {
		return edge.ErrExpired
	}
	_, err = p.run(ctx, "renew", struct {
		Until edge.Moment `json:"until"`
	}{until})
	if ended := (*exec.ExitError)(nil); errors.As(err, &ended) && ended.ExitCode() == expired {
		return edge.ErrExpired
	}
	return err
}

// Enabled is edge.Provider's.
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
		return false, fmt.Errorf("%s enabled answered %.100q; it is to write true or false", p.path, answer)
	}
}

// Remove is edge.Provider's.
func (p *Provider) Remove(ctx context.Context) error {
	_, err := p.run(ctx, "remove", nil)
	return err
}

// run calls the program. It ends with the context, and all that it has started with it.
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
		err = nil // it ended well, and something that it has started holds its output
	}
	if err != nil {
		text := strings.TrimSpace(errs.String())
		return "", fmt.Errorf("%s %s: %w: %s", p.path, word, err, text[:min(len(text), told)])
	}
	return out.String(), nil
}
