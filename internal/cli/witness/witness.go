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

	"berth/internal/arrivals"
	"berth/internal/cli"
	"berth/internal/docker/pin"
	"berth/internal/docker/putback"
)

const witnessHelp = `Reads the Docker Engine and reports to the daemon which container has which address. Use it
for a daemon that has no access to the engine: a managed plugin, or the daemon of the Debian package (there
berth-witness.service runs this command). With the witness, "berth lease ls" shows names, "berth check" can compare,
and Berth recognizes containers of an engine before 29.

It changes one thing in the engine. If several containers start at once, one may not get its reserved address. The
witness then moves that container to its reserved address right after the start. With --put-back all it also moves
containers to their last addresses, if the daemon's setting allows that. With --put-back off it moves none.

It announces the addresses of started containers on the host's networks, for which it needs CAP_NET_RAW. Docker 28 and
newer does that wrongly: the host and other containers might not reach a restarted container for up to a minute.

It runs in the foreground and ends at SIGTERM or SIGINT. It reports each event at once. It reports the whole state at
its start, after changes, and at least once in each --every. If the engine or the daemon is unreachable, it logs that
once and retries. Each flag is also an environment variable: --every is BERTH_EVERY, and so on.`

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
				"`which` containers the witness may move back to their own addresses: reserved, "+
					"all or off (default reserved)").Words(putback.Words()...)),
		Run: func(r *cli.Run) error {
			switch {
			case flags.every <= 0 || flags.every > longestEvery:
				return r.Usagef("--every is %s, but must be longer than zero and at most %s: the daemon "+
					"ignores an older report", flags.every, longestEvery)
			case strings.Contains(r.AdminSocket, "://") && !flags.engine.Given():
				return r.Usagef("the daemon is on another host: give the URL of the engine on that host with " +
					"--docker-host")
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
			w := &onlooker{Run: r, engine: engine, connector: connector,
				arrivals: arrivals.New(arrivals.Here{Engine: engine.URL()}, log), flags: flags, log: log,
				away: map[string]bool{}}
			defer w.drop()
			return w.run()
		}}
}

// longestEvery limits --every: the daemon does not use older views.
const longestEvery = time.Minute
