package main

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"berth/internal/admin"
	"berth/internal/admin/api"
	"berth/internal/cli"
	"berth/internal/docker"
	"berth/internal/docker/putback"
	"berth/internal/ipam"
	"berth/store"

	"github.com/docker/go-units"
)

// The default paths.
const (
	defaultState        = "/var/lib/berth"
	defaultPluginSocket = "/run/docker/plugins/berth.sock"
	stateFile           = "berth.db"
	putBackFile         = "put-back.json" // containers that are disconnected at the moment
)

// minEventBytes is the minimum of --event-size, because one event can have this size.
const minEventBytes = store.MaxValue

// serveConfig has the flags of serve.
type serveConfig struct {
	state, pluginSocket, adminSocket string
	macSocket                        string         // empty: none
	askMAC                           bool           // on the plugin socket as well
	adminListen                      string         // empty: not on the network
	adminKeys                        admin.KeyFiles // of adminListen
	metricsListen                    string         // empty: only in the admin API
	hookDir                          string         // empty: no hooks
	webhooks                         urlList        // empty: no receivers
	webhookSecret, webhookCA         string         // files; empty: unsigned messages, and the system's authorities
	dns                              dnsFlags
	store                            string
	etcd                             etcdFlags // of --store etcd
	host                             string
	saidHost                         string        // the engine, as given by the flag
	dockerHost                       string        // the observed engine; empty: none. check sets it
	ipamDriver                       string        // the engine's name of this daemon
	checkEvery, checkGrace           time.Duration // checkEvery 0: never
	checkRepair                      bool
	putBack                          putback.Flag
	elastic                          bool
	bases                            baseList
	retention                        ipam.Retention
	logLevel, logFormat              string
	on                               surroundings
	settings                         []api.Setting // the settings in force
	unknown                          []string      // unknown variables of the environment
}

const serveHelp = `Serve is the daemon: it answers the Docker Engine on the plugin socket, and the other
commands of berth on the admin socket. It runs in the foreground, writes its log to standard error, and ends
in order, with exit code 0, at SIGTERM, SIGINT or SIGHUP.

The name of the plugin socket's file, less ".sock", is what "docker network create --ipam-driver" takes.
Sockets that systemd hands over under the names "plugin", "mac" and "admin" are used instead of the paths.

On the plugin socket the engine is not asked for MACs. So an engine before 28 derives a container's MAC from
its address, neighbours know the container again after a restart, and ipvlan works. Containers that are known by
their MAC (a reservation for one, mac_address in a Compose file) belong on a network of a second socket, on
the same state: --mac-socket /run/docker/plugins/berth-mac.sock, and then "--ipam-driver berth-mac". With
--ask-mac the plugin socket itself asks for MACs: a managed plugin has one socket only (BERTH_ASK_MAC=true).

--check-settings checks the flags and the environment, and ends.

Every flag can also be given in the environment: --default-pool is BERTH_DEFAULT_POOL, and so on. A flag
overrides its variable, and an empty variable counts as not set.

--admin-listen also serves the admin API over the network, only in TLS 1.3. Clients send a token ("berth token
create") or, with --admin-client-ca, show a certificate.

--webhook sends each event to a receiver on the network, as JSON by POST, signed if there is a
--webhook-secret-file. Each event is sent at least once, in order, also after a restart of the daemon. Unsent events are
kept as long as all events (--event-age, --event-count, --event-size); use the same values on all hosts of a cluster.

If the daemon may read the Docker Engine of this host, it learns which container has which address. At its start and
every --check-every it compares its leases with the running containers ("berth check"). --check-repair repairs
certain findings. A managed plugin cannot read the engine; "berth witness" does it there.

If several containers start at the same moment, an engine before 29 does not identify which of them asks. A container
that gets another address than its reserved one is put back right after its start: it is disconnected from its
network and connected again, which interrupts it for about half a second. --put-back all does this also for
containers without a reservation, and --put-back off for none. A network can have its own mode ("berth network
modify N --put-back MODE").

--store etcd shares all spaces except "local" with the other hosts whose daemons have the same --etcd-endpoints
and --etcd-prefix. Each needs its own --host ("berth host ls"). The state of this host only stays in --state. While
etcd is out of reach, the daemon starts and the space "local" works.

--store mem keeps nothing: at its start the daemon asks the engine what runs, and holds those addresses.

Networks that name no subnet get one out of the default pools: /24s out of 172.16.0.0/12, 192.168.0.0/16
and 10.0.0.0/8, and for IPv6 /64s out of a prefix of Berth's own, drawn once per state. --default-pool
replaces all of these of its family; the other family keeps its defaults.`

const serveExample = `  berth serve
  berth serve --state /srv/berth --log-format json
  berth serve --mac-socket /run/docker/plugins/berth-mac.sock
  berth serve --default-pool base=10.64.0.0/10,size=24
  berth serve --default-pool base=10.64.0.0/10,size=26 --default-pool base=fd12:3456:789a::/48,size=64
  berth serve --store etcd --etcd-endpoints http://10.0.0.11:2379,http://10.0.0.12:2379 --host a
  berth serve --docker-host unix:///run/docker.sock --check-every 1m --check-repair
  berth serve --webhook https://hooks.example/berth --webhook-secret-file /etc/berth/webhook.secret
  berth serve --dns-listen 127.0.0.1:5354 --dns-listen 192.168.1.2:5354 --dns-zone lan.example
  BERTH_DEFAULT_POOL="base=10.64.0.0/10,size=24 base=10.128.0.0/10,size=20" berth serve`

func serveCommand(on surroundings) cli.Row {
	cfg := serveConfig{dns: newDNSFlags(), on: on, state: defaultState, pluginSocket: defaultPluginSocket,
		store: storeBolt, checkEvery: 5 * time.Minute, checkGrace: 5 * time.Minute, elastic: true,
		putBack:   putback.Flag(putback.Reserved),
		retention: ipam.Retention{Age: 90 * 24 * time.Hour, Count: 1_000_000, Bytes: ipam.DefaultEventBytes},
		logLevel:  "info", logFormat: "text"}
	only := false
	return cli.Verb{Use: "serve", Short: "Run the daemon", Long: serveHelp, Example: serveExample,
		Flags: append(cfg.flags(), cli.Flag(&only, cli.FlagCheckSettings,
			"check the settings and end: what is wrong, and a variable BERTH_... that there is not, is refused")),
		Check: func(r *cli.Run) error {
			if err := r.Remote.NotForServe(r.Cmd.Flags()); err != nil {
				return err
			}
			cfg.adminSocket = cmp.Or(r.AdminSocket, cli.DefaultAdminSocket)
			return cfg.check()
		},
		Run: func(r *cli.Run) error {
			cfg.settings, cfg.unknown = r.Settings(r.Cmd), r.Unknown(r.Cmd.Root())
			for i := range cfg.settings {
				if s := &cfg.settings[i]; s.Name == "webhook" {
					s.Value = cfg.webhooks.hosts() // the rest may contain a secret
				}
			}
			if only && len(cfg.unknown) > 0 {
				return fmt.Errorf("the environment has %s, and there is no such setting; `berth serve --help` lists "+
					"them", strings.Join(cfg.unknown, ", "))
			} else if only {
				return nil
			}
			journal := cli.IsJournal(r.Stderr, r.Env("JOURNAL_STREAM"))
			log, err := cli.NewLog(r.Stderr, cfg.logLevel, cfg.logFormat, journal)
			if err != nil {
				return cli.Usage(r.Cmd, err)
			}
			for _, name := range cfg.unknown {
				log.WithField("variable", name).Warn("the environment has a setting that there is not; it is ignored")
			}
			if err := cfg.prepareState(log); err != nil {
				return err
			}
			return serve(r, cfg, log, r.Started)
		}}
}

func (cfg *serveConfig) flags() cli.Flags {
	return append(cfg.etcd.flags(),
		cli.Flag(&cfg.state, "state", "`directory` of the state; it is made if it is not there").Dirs(),
		cli.Flag(&cfg.pluginSocket, "plugin-socket", "`path` of the socket that the Docker Engine asks"),
		cli.Flag(&cfg.macSocket, "mac-socket",
			"`path` of a second such socket, on which the engine is asked for MACs (default: none)"),
		cli.Flag(&cfg.askMAC, "ask-mac", "ask the engine for MACs on the plugin socket, too"),
		cli.Flag(&cfg.adminListen, "admin-listen",
			"`HOST:PORT` on which the admin API is spoken over TLS (default: on none)"),
		cli.Flag(&cfg.adminKeys.Cert, "admin-cert",
			"`file` with the daemon's certificate for that, in PEM; it may be replaced at any time"),
		cli.Flag(&cfg.adminKeys.Key, "admin-key", "`file` with its key"),
		cli.Flag(&cfg.adminKeys.ClientCA, "admin-client-ca",
			"`file` with the authorities whose clients may ask with a certificate instead of a token"),
		cli.Flag(&cfg.metricsListen, "metrics-listen",
			"`ADDR:PORT` that serves the metrics, and nothing else, in plain HTTP (default: only the admin API serves "+
				"them; without ADDR on 127.0.0.1)"),
		cli.Flag(&cfg.hookDir, "hook", "`directory` of executables that are run after each address taken or given "+
			"back (default: none)").Dirs(),
		cli.Flag(&cfg.webhooks, "webhook",
			"`URL` to which each event is sent as JSON by POST; repeatable (default: none)"),
		cli.Flag(&cfg.webhookSecret, "webhook-secret-file",
			"`file` with the secret, whsec_ and base64, by which these are signed (default: they are not)"),
		cli.Flag(&cfg.webhookCA, "webhook-cacert",
			"`file` with the authorities of https receivers, in PEM (default: the system's)"),
		cli.Flag(&cfg.dns.listen, "dns-listen",
			"`ADDR:PORT` on which names are answered, by UDP and TCP; repeatable (default: none)"),
		cli.Flag(&cfg.dns.zone, "dns-zone",
			"`ZONE` of the names, such as lan.example: a container web on the network home is web.home.lan.example"),
		cli.Flag(&cfg.dns.allow, "dns-allow",
			"`CIDR` of more clients, in addition to this host and its networks; repeatable (default: none)"),
		cli.Flag(&cfg.store, "store", "`kind` of store: bolt, a file on this host; etcd, which several hosts "+
			"share; or mem, which is empty at each start").Words(storeBolt, storeEtcd, "mem"),
		cli.Flag(&cfg.host, "host", "`name` of this host in leases and events (default: the system's host name)"),
		cli.Flag(&cfg.saidHost, "docker-host", "`URL` of the engine that is read (default: "+docker.DefaultHost+
			", unless it is not for this user to open; none: no engine)"),
		cli.Flag(&cfg.ipamDriver, "ipam-driver",
			"`name` of this daemon in the engine's networks (default: the plugin socket's file name less .sock)"),
		cli.Flag(&cfg.checkEvery, "check-every",
			"how often what runs is compared with what is given, a `duration`; 0: never"),
		cli.Flag(&cfg.checkGrace, "check-grace",
			"how long a lease must be without its endpoint until that is sure, a `duration`"),
		cli.Flag(&cfg.elastic, "elastic", "elastic addresses; --elastic=false turns them off: nothing is mapped"),
		cli.Flag(&cfg.checkRepair, "check-repair", "repair certain findings automatically"),
		cli.Flag(&cfg.putBack, "put-back", "`which` containers are put back to their own addresses, if the engine "+
			"did not identify them, unless the network has a mode of its own: reserved, all or off (default reserved)").
			Words(putback.Words()...),
		cli.Flag(&cfg.bases, "default-pool",
			"where the subnets come from that no request names; repeatable (see above)"),
		cli.Flag(&cfg.retention.Age, "event-age", "how long events are kept, a `duration`"),
		cli.Flag(&cfg.retention.Count, "event-count", "at most `N` events are kept"),
		cli.Flag((*sizeFlag)(&cfg.retention.Bytes), "event-size", "events take at most this `size` of the store"),
		cli.Flag(&cfg.logLevel, "log-level", "the least `level` that is logged: debug, info, warning or error").
			Words("debug", "info", "warning", "error"),
		cli.Flag(&cfg.logFormat, "log-format", "`form` of the log: text or json").Words("text", "json"))
}

// check refuses invalid settings, and fills in what the system knows.
func (cfg *serveConfig) check() (err error) {
	if err := cfg.checkStore(); err != nil {
		return err
	}
	switch {
	case cfg.retention.Age <= 0:
		return errors.New("--event-age must be more than nothing: events of the last minutes are what `berth " +
			"events` shows")
	case cfg.retention.Count <= 0:
		return errors.New("--event-count must be at least 1")
	case cfg.retention.Bytes < minEventBytes:
		return fmt.Errorf("--event-size must be at least %s: one event may take as much",
			units.BytesSize(minEventBytes))
	case cfg.checkEvery < 0:
		return errors.New("--check-every is a duration such as 5m, or 0 for never")
	case cfg.checkGrace <= 0:
		return errors.New("--check-grace must be more than nothing: what the engine does not know at one moment, it " +
			"may know at the next")
	case cfg.state == "":
		return errors.New("--state is empty: give the directory of the state")
	case cfg.pluginSocket == "":
		return errors.New("--plugin-socket is empty: give the path of a socket")
	case strings.Contains(cfg.adminSocket, "://"):
		return fmt.Errorf("--admin-socket is %s, and the daemon's is a path: it listens on the network with "+
			"--admin-listen", cfg.adminSocket)
	case cfg.adminListen == "" && cfg.adminKeys != admin.KeyFiles{}:
		return errors.New("--admin-cert, --admin-key and --admin-client-ca are for --admin-listen, which is not given")
	}
	if err := errors.Join(cfg.checkPaths(), cfg.checkWebhooks(), cfg.dns.check()); err != nil {
		return err
	}
	if cfg.adminListen != "" {
		if err := cfg.adminKeys.CheckListen(cfg.adminListen); err != nil {
			return fmt.Errorf("--admin-listen: %w (--admin-cert, --admin-key)", err)
		}
	}
	if cfg.ipamDriver == "" {
		cfg.ipamDriver = driverOf(cfg.pluginSocket)
	}
	if cfg.dockerHost, err = engineHost(cfg.saidHost); err != nil {
		return err
	}
	if cfg.store == "mem" && cfg.dockerHost == "" {
		return errors.New("--store mem makes its state out of what the engine runs, and there is none to ask: name " +
			"one with --docker-host, or use --store bolt")
	}
	if cfg.host == "" {
		if cfg.host, err = os.Hostname(); err != nil {
			return fmt.Errorf("the host has no name: give it one with --host: %w", err)
		}
	}
	if cfg.store == storeEtcd {
		if err := ipam.CheckName("host", cfg.host); err != nil {
			return fmt.Errorf("--host, by which the others know this one: %w", err)
		}
	}
	return nil
}

// checkPaths refuses the same path for two sockets.
func (cfg *serveConfig) checkPaths() error {
	switch {
	case cfg.pluginSocket == cfg.adminSocket:
		return fmt.Errorf("the plugin socket and the admin socket are both %s: give two paths", cfg.adminSocket)
	case cfg.macSocket == "":
		return nil
	case cfg.macSocket == cfg.adminSocket:
		return fmt.Errorf("the socket for MACs and the admin socket are both %s: give two paths", cfg.adminSocket)
	case driverOf(cfg.macSocket) == driverOf(cfg.pluginSocket):
		return fmt.Errorf("the sockets %s and %s make one driver name, %s: "+
			"give --mac-socket another file name, or leave it out and use --ask-mac", cfg.pluginSocket, cfg.macSocket,
			driverOf(cfg.macSocket))
	}
	return nil
}

// checkStore refuses an unknown store, and flags of another store.
func (cfg *serveConfig) checkStore() error {
	switch cfg.store {
	case "bolt", "mem":
		return cfg.etcd.unused(cfg.store)
	case storeEtcd:
		return cfg.etcd.check()
	}
	return fmt.Errorf("there is no store %q: use --store bolt, etcd or mem", cfg.store)
}
