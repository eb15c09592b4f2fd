package rollout

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"time"

	"berth/internal/deploy"
	"berth/internal/deploy/scene"
)

// snapshot runs a command on the host while a container is stopped, with the paths of its volumes. If it fails or takes
// too long, the instance fails.
func (r *run) snapshot(ctx context.Context, one *Instance, c *scene.Container) error {
	hook := r.hook(one, func(s *Service) *deploy.Hook { return s.Snapshot })
	if hook == nil {
		return nil
	}
	if err := r.may(ctx); err != nil {
		return err
	}
	r.tell(Event{Step: saving, Instance: one.Owner})
	if err := runHook(ctx, hook, environment(r.plan, one, c)); err != nil {
		return fmt.Errorf("the snapshot failed, so the container is unchanged: %w", err)
	}
	return nil
}

// environment returns the variables for a snapshot's command, with BERTH_VOLUME_KEY for each volume in the files.
func environment(p *Plan, one *Instance, c *scene.Container) []string {
	all := []string{"BERTH_PROJECT=" + p.Project, "BERTH_SERVICE=" + one.Service, "BERTH_INSTANCE=" + one.Owner,
		"BERTH_CONTAINER=" + one.Name}
	for _, m := range p.service(one.Service).Mounts {
		i := slices.IndexFunc(c.Volumes, func(v scene.Volume) bool { return v.Target == m.Target })
		if i >= 0 {
			all = append(all, "BERTH_VOLUME_"+variable(m.Key)+"="+c.Volumes[i].Path)
		}
	}
	return all
}

// variable returns a key in the form of a variable's name: data-2 is DATA_2.
func variable(key string) string {
	return strings.Map(func(c rune) rune {
		switch {
		case c >= 'a' && c <= 'z':
			return c - 'a' + 'A'
		case c >= 'A' && c <= 'Z', c >= '0' && c <= '9':
			return c
		}
		return '_'
	}, key)
}

// pipesAfter is how long processes that a command has left may keep its output open.
const pipesAfter = 2 * time.Second

// runHook runs a command on the host. When its time is over, it kills the command with all processes that it has
// started.
func runHook(ctx context.Context, hook *deploy.Hook, environ []string) error {
	ctx, cancel := context.WithTimeout(ctx, hook.Timeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, hook.Command[0], hook.Command[1:]...)
	cmd.Env = append(os.Environ(), environ...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = pipesAfter
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	err := cmd.Run()
	switch {
	case err == nil:
		return nil
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		err = fmt.Errorf("it has not ended within %s", hook.Timeout)
	case ctx.Err() != nil:
		return ctx.Err()
	}
	lines := strings.Split(strings.TrimSpace(said.String()), "\n")
	if last := lines[len(lines)-1]; last != "" {
		return fmt.Errorf("%w; it said %q", err, last)
	}
	return err
}
