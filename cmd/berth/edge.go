package main

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"os/exec"
	"slices"

	"berth/internal/admin/client"
	"berth/internal/cli"
	"berth/internal/edge"
	"berth/internal/edge/command"
	"berth/internal/edge/follow"
	"berth/internal/edge/nft"
	"berth/internal/ipam"

	"github.com/sirupsen/logrus"
)

const edgeHelp = `Maps elastic addresses on this host. The edge gets the mappings and each change of them from
the daemon, writes them to the kernel with nftables, and reports which mappings are in force. It needs CAP_NET_ADMIN,
CAP_NET_RAW and the program nft.

With --provider exec a program makes the mappings instead, such as a client of a router, of a BGP speaker or of a
cloud's API. The edge runs it with one of these words:
  set      apply the whole wanted state, JSON on standard input, and remove
           everything else
  renew    {"until": N} on standard input: the state is now valid until N
           (nanoseconds since boot); exit with 3 if it has expired already
  enabled  print true if anything of the state is in force, otherwise false
  remove   remove everything
The edge itself then needs no capabilities.

The edge also asks the DHCP servers on this host's LANs for the addresses of networks with dhcp=INTERFACE, and probes
addresses of networks with --probe INTERFACE. This needs only CAP_NET_RAW. With --provider none the edge does only
this, on hosts without elastic addresses.

The edge runs in the foreground. When it ends, or while the daemon is unreachable, all mappings stay, so an upgrade
cuts no connection. It restores mappings that other programs remove. --remove removes all mappings.`

// edgeFlags are the flags of edge.
type edgeFlags struct {
	once, dryRun, remove bool
	provider, program    string
}

// The providers.
const (
	providerNftables = "nftables"
	providerExec     = "exec"
	providerNone     = "none"
)

// providers returns all providers.
func providers() []string { return []string{providerNftables, providerExec, providerNone} }

// check refuses invalid combinations of flags.
func (f *edgeFlags) check() error {
	switch {
	case f.remove && (f.once || f.dryRun):
		return errors.New("--remove cannot be combined with --once or --dry-run")
	case !slices.Contains(providers(), f.provider):
		return fmt.Errorf("--provider is %q; it must be %s, %s or %s", f.provider, providerNftables,
			providerExec, providerNone)
	case f.provider == providerNone && (f.once || f.dryRun || f.remove):
		return errors.New("--provider none maps nothing, so it cannot be combined with --once, --dry-run or --remove")
	case f.provider == providerExec && f.program == "":
		return errors.New("--provider exec runs a program; name it with --exec")
	case f.provider != providerExec && f.program != "":
		return errors.New("--exec needs --provider exec")
	}
	return nil
}

func edgeCommand() cli.Row {
	flags := edgeFlags{provider: providerNftables}
	return cli.Verb{Use: "edge", Short: "Map elastic addresses on this host, and probe its LANs",
		Long: edgeHelp,
		Example: "  berth edge\n  berth edge --once\n  berth edge --dry-run\n  berth edge --remove\n" +
			"  berth edge --provider exec --exec /usr/local/bin/map-at-the-router\n  berth edge --provider none",
		Flags: cli.Flags{
			cli.Flag(&flags.once, "once", "make the mappings that the daemon wants now, and exit"),
			cli.Flag(&flags.dryRun, "dry-run", "show the mappings that the daemon wants, one per line; change nothing"),
			cli.Flag(&flags.remove, "remove", "remove all mappings, and exit"),
			cli.Flag(&flags.provider, "provider", "how to map: `nftables|exec|none`").Words(providers()...),
			cli.Flag(&flags.program, "exec", "the `PROGRAM` that --provider exec runs")},
		Check: func(*cli.Run) error { return flags.check() },
		Run: func(r *cli.Run) error {
			r, stop := r.UntilSignal()
			defer stop()
			log, err := cli.NewLog(r.Stderr, "info", "text", cli.IsJournal(r.Stderr, r.Env("JOURNAL_STREAM")))
			if err != nil {
				return err
			}
			return runEdge(r, flags, log)
		}}
}

func runEdge(r *cli.Run, flags edgeFlags, log *logrus.Entry) error {
	if flags.provider == providerNone {
		log.Info("the edge asks DHCP servers and probes addresses on this host's LANs, and maps nothing")
		return speakOnLANs(r, r.Program, log)
	}
	d := &edgeDaemon{p: r.Program}
	defer d.close()
	cfg := follow.Config{News: d.news, Report: d.report, Log: log}
	if flags.dryRun {
		cfg.News = d.look
		s, err := follow.New(cfg).Wanted(r)
		if err != nil {
			return err
		}
		return showEdge(r.Program, &s)
	}
	provider, repair, end, err := flags.open(log)
	if err != nil {
		return err
	}
	defer end()
	if flags.remove {
		if err := provider.Remove(r); err != nil {
			return err
		}
		if err := d.report(r, ipam.EdgeReport{Whole: true}); err != nil {
			log.WithError(err).Warn("the edge removed all mappings, but could not report this to the daemon")
		}
		return nil
	}
	cfg.Provider, cfg.Repair = provider, repair
	if flags.once {
		return follow.New(cfg).Once(r)
	}
	log.Info("the edge maps elastic addresses, and asks DHCP servers and probes addresses on this host's LANs")
	return together(r, follow.New(cfg).Run, func(ctx context.Context) error { return speakOnLANs(ctx, r.Program, log) })
}

// open opens the provider, and returns the function that repairs its mappings. A program has no repairs.
func (f *edgeFlags) open(log *logrus.Entry) (p edge.Provider, repair func(context.Context) error, end func(),
	err error) {
	if f.provider == providerExec {
		path, err := exec.LookPath(f.program)
		if err != nil {
			return nil, nil, nil, fmt.Errorf("cannot find the program of --exec: %w", err)
		}
		return command.New(path), nil, func() {}, nil
	}
	kernel, err := nft.New(nft.Config{Tell: func(n edge.Notice) { tellNotice(log, n) }})
	if err != nil {
		return nil, nil, nil, err
	}
	return kernel, kernel.Run, func() { kernel.Close() }, nil
}

// showEdge writes a line for each mapping.
func showEdge(p *cli.Program, s *edge.State) error {
	for _, m := range s.Mappings {
		way := "in and out"
		switch {
		case m.EgressOnly:
			way = "out only"
		case m.Staged:
			way = "out, and in when the container runs here"
		}
		if _, err := fmt.Fprintf(p.Out, "%s  %s  %s\n", m.Elastic, m.Guest, way); err != nil {
			return err
		}
	}
	return nil
}

func tellNotice(log *logrus.Entry, n edge.Notice) {
	switch n.Kind {
	case edge.Contested:
		log.Warnf("another machine (MAC %s) also answers for %s on %s", n.MAC, n.Address, n.Device)
	case edge.Repaired:
		log.Warnf("the edge restored mappings: %s", n.Text)
	default:
		log.Warnf("the edge cannot restore mappings: %s", n.Text)
	}
}

// edgeDaemon is the daemon of this host. It is located again if it does not answer.
type edgeDaemon struct {
	p *cli.Program
	c *client.Client // nil: not located yet
}

func (d *edgeDaemon) find(ctx context.Context) (*client.Client, error) {
	if d.c == nil {
		c, err := d.p.Connect(ctx)
		if err != nil {
			return nil, err
		}
		d.c = c
	}
	return d.c, nil
}

func (d *edgeDaemon) close() {
	if d.c != nil {
		d.c.Close()
		d.c = nil
	}
}

// news yields the daemon's news. Each call starts again.
func (d *edgeDaemon) news(ctx context.Context) iter.Seq2[ipam.EdgeNews, error] {
	return d.ask(ctx, false)
}

// look yields the daemon's current state.
func (d *edgeDaemon) look(ctx context.Context) iter.Seq2[ipam.EdgeNews, error] {
	return d.ask(ctx, true)
}

func (d *edgeDaemon) ask(ctx context.Context, looks bool) iter.Seq2[ipam.EdgeNews, error] {
	d.close()
	c, err := d.find(ctx)
	if err != nil {
		return func(yield func(ipam.EdgeNews, error) bool) { yield(ipam.EdgeNews{}, err) }
	}
	return c.EdgeNews(ctx, looks)
}

func (d *edgeDaemon) report(ctx context.Context, r ipam.EdgeReport) error {
	c, err := d.find(ctx)
	if err != nil {
		return err
	}
	return c.ReportEdge(ctx, r)
}
