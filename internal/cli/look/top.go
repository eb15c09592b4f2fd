package look

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"berth/internal/admin/api"
	"berth/internal/admin/client"
	"berth/internal/cli"
	"berth/internal/ipam"

	"github.com/spf13/cobra"
	"golang.org/x/term"
)

const topHelp = `Shows on one screen, anew every few seconds, which networks are the fullest, who has the most addresses
(a Compose project, else the first part of an owner, else a container), and how many addresses were taken and
given back in the last minute, ten minutes and hour. q or Ctrl-C ends it.

With --once, or where the output is no terminal, it is shown once.`

// The rows of each table where there is no screen to fill, and what a screen has besides rows.
const (
	onceRows  = 10
	otherRows = 12
	leastRows = 3
)

// shortest is how often a screen may be drawn.
const shortest = time.Second

// TopCommand is `berth top`.
func TopCommand(p *cli.Program) *cobra.Command {
	var once bool
	var every time.Duration
	cmd := cli.Verb{Use: "top", Short: "Show what is nearly full, and who takes the most", Long: topHelp,
		Example: "  berth top\n  berth top --interval 10s\n  berth top --once"}.Command(p)
	cmd.Flags().BoolVar(&once, "once", false, "show it once, and end")
	cmd.Flags().DurationVar(&every, "interval", 3*time.Second, "how `long` a screen stands")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if every < shortest {
			return cli.Usage(cmd, fmt.Errorf("--interval is %s and must be at least %s", every, shortest))
		}
		return p.Ask(cmd, func(ctx context.Context, c *client.Client) error {
			if out, ok := p.Out.(*os.File); ok && !once && term.IsTerminal(int(out.Fd())) {
				return (&screen{p: p, c: c, in: os.Stdin, out: out, every: every}).run(ctx)
			}
			pic, err := take(ctx, c, p.Now())
			if err != nil {
				return err
			}
			return p.Say(pic.lines(p.Use, onceRows))
		})
	}
	return cmd
}

// take asks the daemon for a picture.
func take(ctx context.Context, c *client.Client, now time.Time) (pic picture, err error) {
	pic.at = now
	if pic.status, err = c.Status(ctx); err != nil {
		return pic, err
	}
	if pic.networks, err = c.Networks(ctx, ""); err != nil {
		return pic, err
	}
	if pic.leases, err = c.Leases(ctx, ipam.LeaseFilter{}); err != nil {
		return pic, err
	}
	pic.events, err = c.Events(ctx, ipam.EventFilter{Since: now.Add(-periods[len(periods)-1].long), Last: api.MaxEvents,
		Verbs: []ipam.Verb{ipam.LeaseTaken, ipam.LeaseReleased}})
	return pic, err
}

// screen is a terminal on which pictures are drawn.
type screen struct {
	p       *cli.Program
	c       *client.Client
	in, out *os.File
	every   time.Duration
}

// What a terminal is told (ECMA-48; the alternate screen is xterm's).
const (
	enterScreen = "\x1b[?1049h\x1b[?25l" // another screen, without a cursor
	leaveScreen = "\x1b[?25h\x1b[?1049l"
	toBegin     = "\x1b[H"
	clearLine   = "\x1b[K"
	clearRest   = "\x1b[J"
)

// run draws pictures until q, Ctrl-C or a signal, and leaves the terminal as it was. Keys are read from the first
// picture on: until then Ctrl-C is a signal.
func (s *screen) run(ctx context.Context) error {
	ctx, stop := cli.UntilSignal(ctx)
	defer stop()
	pic, err := take(ctx, s.c, s.p.Now())
	if err != nil {
		return ended(ctx, err)
	}
	if _, err := io.WriteString(s.out, enterScreen); err != nil {
		return err
	}
	defer func() { _, _ = io.WriteString(s.out, leaveScreen) }()
	if err := s.draw(&pic); err != nil {
		return err
	}
	if term.IsTerminal(int(s.in.Fd())) {
		was, err := term.MakeRaw(int(s.in.Fd()))
		if err != nil {
			return err
		}
		defer func() { _ = term.Restore(int(s.in.Fd()), was) }()
		go s.read(stop)
	}
	for {
		cli.PauseFor(ctx, s.every)
		if pic, err = take(ctx, s.c, s.p.Now()); err != nil {
			return ended(ctx, err)
		}
		if err := s.draw(&pic); err != nil {
			return err
		}
	}
}

// ended is nil where an error is that somebody has ended the screen.
func ended(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// read ends the screen with q, Ctrl-C or Ctrl-D. It waits for a key when the process ends.
func (s *screen) read(stop func()) {
	key := make([]byte, 1)
	for {
		if n, err := s.in.Read(key); err != nil || n == 1 && strings.ContainsAny(string(key), "qQ\x03\x04") {
			stop()
			return
		}
	}
}

// draw draws a picture over the one before.
func (s *screen) draw(pic *picture) error {
	width, height, err := term.GetSize(int(s.out.Fd()))
	if err != nil || width < 1 || height < 1 {
		width, height = 80, 24
	}
	lines := pic.lines(s.p.Use, max((height-otherRows)/2, leastRows))
	text := toBegin + strings.Join(cutTo(lines, width, height), clearLine+"\r\n") + clearLine + clearRest
	_, err = io.WriteString(s.out, text)
	return err
}
