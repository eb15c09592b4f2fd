package scene

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/moby/moby/api/pkg/stdcopy"
	"github.com/moby/moby/client"
)

// Exec runs a command in a running container and waits for its end. Its error has the exit code and the last output, or
// says that the time is over. In that case the command continues until its container stops, because the engine cannot
// end a command.
func (e *Engine) Exec(ctx context.Context, id string, command []string, timeout time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	said, code, err := e.exec(ctx, id, command)
	switch {
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return fmt.Errorf("it has not ended within %s%s", timeout, lastSaid(said))
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil:
		return err
	case code != 0:
		return fmt.Errorf("it ended with exit code %d%s", code, lastSaid(said))
	}
	return nil
}

func (e *Engine) exec(ctx context.Context, id string, command []string) (said []byte, code int, err error) {
	made, err := e.api.ExecCreate(ctx, id, client.ExecCreateOptions{Cmd: command, AttachStdout: true,
		AttachStderr: true})
	if err != nil {
		return nil, 0, err
	}
	line, err := e.api.ExecAttach(ctx, made.ID, client.ExecAttachOptions{})
	if err != nil {
		return nil, 0, err
	}
	defer line.Close()
	stop := context.AfterFunc(ctx, line.Close)
	defer stop()
	var out tail
	if _, err := stdcopy.StdCopy(&out, &out, line.Reader); err != nil && !errors.Is(err, io.EOF) {
		return out.kept, 0, err
	}
	// Its output has ended; the exit code follows a moment later.
	for {
		shown, err := e.api.ExecInspect(ctx, made.ID, client.ExecInspectOptions{})
		if err != nil || !shown.Running {
			return out.kept, shown.ExitCode, err
		}
		select {
		case <-ctx.Done():
			return out.kept, 0, ctx.Err()
		case <-time.After(lookEvery):
		}
	}
}

// tail keeps the last bytes written to it.
type tail struct{ kept []byte }

// mostKept is the number of bytes that a tail keeps.
const mostKept = 4 << 10

// Write implements io.Writer.
func (t *tail) Write(p []byte) (int, error) {
	t.kept = append(t.kept, p...)
	t.kept = t.kept[max(0, len(t.kept)-mostKept):]
	return len(p), nil
}

// lastSaid returns the last line of a command's output, as the end of a sentence.
func lastSaid(said []byte) string {
	lines := strings.Split(strings.TrimSpace(string(bytes.ToValidUTF8(said, nil))), "\n")
	if last := lines[len(lines)-1]; last != "" {
		return fmt.Sprintf("; it said %q", last)
	}
	return ""
}
