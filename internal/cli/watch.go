package cli

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"strings"
	"time"

	"golang.org/x/term"
)

// watchEvery is how long a screen stands.
const watchEvery = 3 * time.Second

// What a terminal is told (ECMA-48; the alternate screen is xterm's).
const (
	enterScreen = "\x1b[?1049h\x1b[?25l" // another screen, without a cursor
	leaveScreen = "\x1b[?25h\x1b[?1049l"
	toBegin     = "\x1b[H"
	clearLine   = "\x1b[K"
	clearRest   = "\x1b[J"
)

// Watch has fn write again and again, on a screen of its own, until q, Ctrl-C or a signal, and leaves the terminal as
// it was. Where the output is no terminal it is written once.
func (p *Program) Watch(ctx context.Context, fn func(context.Context, io.Writer) error) error {
	out, ok := p.Out.(*os.File)
	if !ok || !term.IsTerminal(int(out.Fd())) {
		return fn(ctx, p.Out)
	}
	ctx, stop := UntilSignal(ctx)
	defer stop()
	entered := false
	defer func() {
		if entered {
			_, _ = io.WriteString(out, leaveScreen)
		}
	}()
	for ; ; PauseFor(ctx, watchEvery) {
		var text bytes.Buffer
		if err := fn(ctx, &text); ctx.Err() != nil {
			return nil // somebody has ended it
		} else if err != nil && !errors.As(err, new(Difference)) { // which the rows show
			return err
		}
		if !entered {
			if _, err := io.WriteString(out, enterScreen); err != nil {
				return err
			}
			entered = true
			if in, ok := p.in.(*os.File); ok && term.IsTerminal(int(in.Fd())) {
				was, err := term.MakeRaw(int(in.Fd()))
				if err != nil {
					return err
				}
				defer func() { _ = term.Restore(int(in.Fd()), was) }()
				go awaitKey(in, stop)
			}
		}
		if _, err := io.WriteString(out, screen(text.String(), out)); err != nil {
			return err
		}
	}
}

// awaitKey ends a screen with q, Ctrl-C or Ctrl-D. It waits for a key when the process ends.
func awaitKey(in io.Reader, stop func()) {
	key := make([]byte, 1)
	for {
		if n, err := in.Read(key); err != nil || n == 1 && strings.ContainsAny(string(key), "qQ\x03\x04") {
			stop()
			return
		}
	}
}

// screen is a text over the one before, as many lines as the terminal has.
func screen(text string, out *os.File) string {
	_, height, err := term.GetSize(int(out.Fd()))
	if err != nil || height < 1 {
		height = 24
	}
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	return toBegin + strings.Join(lines[:min(len(lines), height)], clearLine+"\r\n") + clearLine + clearRest
}
