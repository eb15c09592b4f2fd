// Package witness has the command that reports the containers of an engine to a daemon that cannot read that engine. It
// changes nothing in the engine unless --put-back is given and the daemon asks for it. It survives an outage of either
// side.
//
// witness.go reads the flags. onlooker.go sends a view of the engine after each change; relay.go forwards each event at
// once while the daemon listens.
package witness

import (
	"strings"
	"time"

	"berth/internal/cli"
	"berth/internal/docker/pin"
	"berth/internal/docker/putback"
)

const witnessHelp = `Reads the Docker Engine and reports to the daemon which container has which address. It is
for a daemon
that has no access to the engine: the one of the package (berth-witness.service does this there) and a managed plugin.
With it "berth lease ls" shows names, "berth check" can compare, and containers of an engine before 29 are recognized.

It changes one thing in the engine. If a container got another address than its reserved one, because several started
at once, it moves the container to its own address right after the start. --put-back all does so for last addresses,
too, if the daemon's setting allows it. --put-back off never does.

It runs in the foreground and ends at SIGTERM or SIGINT. It reports each event at once, and the whole state at its
start, after changes, and at least every --every. If the engine or the daemon is unreachable, it logs that once and
retries. Every flag is also a variable: BERTH_ and its name.`

// witnessFlags are the flags of witness.
type witnessFlags struct {
	engine cli.EngineFlags
	every  time.Duration

	putBack putback.Flag
}

// Command is `berth witness`.
func Command() cli.Row {
	flags := witnessFlags{every: 30 * time.Second, putBack: putback.Flag(putback.Reserved)}
	return cli.Verb{Use: "witness", Short: "Report running containers to a managed plugin", Long: witnessHelp,
		Example: `  berth witness
  berth witness --every 10s
  berth witness --admin-socket /run/docker/plugins/ID/berth-admin.sock --ipam-driver registry.example/berth:1.0`,
		Flags: append(flags.engine.Flags(),
			cli.Flag(&flags.every, "every", "report to the daemon at least this often, a `duration`"),
			cli.Flag(&flags.putBack, "put-back",
				"`which` containers may be put back to their own addresses: reserved, "+
					"all or off (default reserved)").Words(putback.Words()...)),
		Run: func(r *cli.Run) error {
			switch {
			case flags.every <= 0 || flags.every > longestEvery:
				return r.Usagef("--every is %s and must be more than nothing, and at most %s: an older "+
					"word counts for nothing", flags.every, longestEvery)
			case strings.Contains(r.AdminSocket, "://") && !flags.engine.Given():
				return r.Usagef("the daemon is asked over the network: say with --docker-host where the " +
					"engine of its host is")
			}
			r, stop := r.UntilSignal()
			defer stop()
			engine, err := flags.engine.Open()
			if err != nil {
				return cli.Usage(r.Cmd, err)
			}
			defer engine.Close()
			log, err := cli.NewLog(r.Stderr, "info", "text", cli.IsJournal(r.Stderr, r.Env("JOURNAL_STREAM")))
			if err != nil {
				return err
			}
			connector, err := pin.OpenConnector(flags.engine.Host)
			if err != nil {
				return cli.Usage(r.Cmd, err)
			}
			defer connector.Close()
			w := &onlooker{Run: r, engine: engine, connector: connector, flags: flags, log: log,
				away: map[string]bool{}}
			defer w.drop()
			return w.run()
		}}
}

// longestEvery limits --every: the daemon does not use older views.
const longestEvery = time.Minute
