package cli

import (
	"bytes"
	"errors"
	"io"
	"os"
	"strings"
	"time"

	"golang.org/x/term"
)

// watchEvery is the time between two screens.
const watchEvery = 3 * time.Second

// Control sequences of the terminal (ECMA-48; the alternate screen is xterm's).
const (
	enterScreen = "\x1b[?1049h\x1b[?25l" // the alternate screen, without a cursor
	leaveScreen = "\x1b[?25h\x1b[?1049l"
	toBegin     = "\x1b[H"
	clearLine   = "\x1b[K"
	clearRest   = "\x1b[J"
)

// Watch calls fn repeatedly to fill the alternate screen, until q, Ctrl-C or a signal. Then it restores the terminal.
// If the output is no terminal, it calls fn once.
func (r *Run) Watch(fn func(*Run, io.Writer) error) error {
	out, ok := r.Out.(*os.File)
	if !ok || !term.IsTerminal(int(out.Fd())) {
		return fn(r, r.Out)
	}
	r, stop := r.UntilSignal()
	defer stop()
	entered := false
	defer func() {
		if entered {
			_, _ = io.WriteString(out, leaveScreen)
		}
	}()
	for ; ; PauseFor(r, watchEvery) {
		var text bytes.Buffer
		if err := fn(r, &text); r.Err() != nil {
			return nil // the user has ended it
		} else if err != nil && !errors.As(err, new(Difference)) { // the rows show a Difference
			return err
		}
		if !entered {
			if _, err := io.WriteString(out, enterScreen); err != nil {
				return err
			}
			entered = true
			if in, ok := r.in.(*os.File); ok && term.IsTerminal(int(in.Fd())) {
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

// awaitKey calls stop at q, Ctrl-C or Ctrl-D. It may still wait for a key when the process ends.
func awaitKey(in io.Reader, stop func()) {
	key := make([]byte, 1)
	for {
		if n, err := in.Read(key); err != nil || n == 1 && strings.ContainsAny(string(key), "qQ\x03\x04") {
			stop()
			return
		}
	}
}

// screen is a text that overwrites the one before, cut to the terminal's lines.
func screen(text string, out *os.File) string {
	_, height, err := term.GetSize(int(out.Fd()))
	if err != nil || height < 1 {
		height = 24
	}
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	return toBegin + strings.Join(lines[:min(len(lines), height)], clearLine+"\r\n") + clearLine + clearRest
}
