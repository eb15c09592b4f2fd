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

const serveHelp = `Runs the daemon. It answers the Docker Engine on the plugin socket, and the other berth
commands on the admin socket. It runs in the foreground and writes its log to standard error. SIGTERM, SIGINT
and SIGHUP stop it; the exit code is then 0.

The file name of the plugin socket without ".sock" is the name for "docker network create --ipam-driver". Under
systemd, Berth uses the sockets named "plugin", "mac" and "admin" instead of the paths.

On the plugin socket Berth does not ask the engine for MACs. So ipvlan works, and an engine before 28 derives a
container's MAC from its address. If you identify containers by MAC (by a reservation, or mac_address in a
Compose file), create their network with "--ipam-driver berth-mac". It needs a second socket: --mac-socket
/run/docker/plugins/berth-mac.sock. A managed plugin has only one socket; there use --ask-mac (BERTH_ASK_MAC=true).

Each flag is also an environment variable: --default-pool is BERTH_DEFAULT_POOL, and so on. A flag overrides its
variable. An empty variable counts as not set. --check-settings checks both.

--admin-listen also serves the admin API over the network, with TLS 1.3. Clients send a token ("berth token
create"). With --admin-client-ca they can use a certificate instead.

--webhook sends each event to a receiver, as JSON by POST, at least once and in order. --webhook-secret-file
signs the requests. Berth keeps unsent events only as long as other events (--event-age, --event-count, --event-size).
Use the same values on all hosts of a cluster.

If the daemon can read the Docker Engine of this host, it learns which container has which address. At its start
and every --check-every it compares its leases with the running containers ("berth check"). It records the address
of each running container, and releases addresses that no container has used for --check-grace. --check-repair also
repairs all other findings that are certain (see berth check). A managed plugin cannot read the engine; run "berth
witness" on the host.

If several containers start at the same moment, an engine before 29 does not say which one requests an
address. If a container did not get its reserved address, the daemon moves the container to that address right after
the start. It disconnects the container from its network and reconnects it, which takes about half a second. --put-back
all also moves containers to their last addresses; --put-back off moves none. "berth network modify NETWORK --put-back
MODE" sets the mode of one network.

--store etcd shares all spaces except "local" with the other hosts that have the same --etcd-endpoints and
--etcd-prefix. Each host needs its own --host. --state then keeps what belongs only to this host. While etcd is
unreachable, the daemon can start, and the space "local" works.

--store mem keeps nothing on disk. At its start the daemon asks the engine which containers run, and records their
addresses.

If a network names no subnet, Berth chooses one from the default pools: a /24 from 172.16.0.0/12, 192.168.0.0/16
or 10.0.0.0/8, and a /64 from an IPv6 prefix that Berth generated once. --default-pool replaces the pools of its
address family.`

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
			"check the settings, report errors and unknown BERTH_ variables, and exit")),
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
				return fmt.Errorf("unknown settings in the environment: %s; `berth serve --help` lists all settings",
					strings.Join(cfg.unknown, ", "))
			} else if only {
				return nil
			}
			journal := cli.IsJournal(r.Stderr, r.Env("JOURNAL_STREAM"))
			log, err := cli.NewLog(r.Stderr, cfg.logLevel, cfg.logFormat, journal)
			if err != nil {
				return cli.Usage(r.Cmd, err)
			}
			for _, name := range cfg.unknown {
				log.WithField("variable", name).Warn("unknown setting in the environment; Berth ignores it")
			}
			if err := cfg.prepareState(log); err != nil {
				return err
			}
			return serve(r, cfg, log, r.Started)
		}}
}

func (cfg *serveConfig) flags() cli.Flags {
	return append(cfg.etcd.flags(),
		cli.Flag(&cfg.state, "state", "`directory` of the state; created if it does not exist").Dirs(),
		cli.Flag(&cfg.pluginSocket, "plugin-socket", "`path` of the socket for the Docker Engine"),
		cli.Flag(&cfg.macSocket, "mac-socket",
			"`path` of a second plugin socket, on which Berth asks the engine for MACs (default: none)"),
		cli.Flag(&cfg.askMAC, "ask-mac", "also ask the engine for MACs on the plugin socket"),
		cli.Flag(&cfg.adminListen, "admin-listen",
			"`HOST:PORT` for the admin API over TLS (default: none)"),
		cli.Flag(&cfg.adminKeys.Cert, "admin-cert",
			"certificate `file` (PEM) for --admin-listen; you can replace it at any time"),
		cli.Flag(&cfg.adminKeys.Key, "admin-key", "key `file` of the certificate in --admin-cert"),
		cli.Flag(&cfg.adminKeys.ClientCA, "admin-client-ca",
			"CA `file`; clients with a certificate from it need no token"),
		cli.Flag(&cfg.metricsListen, "metrics-listen",
			"`ADDR:PORT` that serves only the metrics, in plain HTTP; without ADDR, on 127.0.0.1 (default: only the "+
				"admin API serves them)"),
		cli.Flag(&cfg.hookDir, "hook", "`directory` of programs that Berth runs after each take and release of an address "+
			"(default: none)").Dirs(),
		cli.Flag(&cfg.webhooks, "webhook",
			"`URL` that receives each event as JSON by POST; repeatable (default: none)"),
		cli.Flag(&cfg.webhookSecret, "webhook-secret-file",
			"`file` with the secret (whsec_ and base64) that signs webhook requests (default: not signed)"),
		cli.Flag(&cfg.webhookCA, "webhook-cacert",
			"CA `file` (PEM) for https receivers (default: the system's CAs)"),
		cli.Flag(&cfg.dns.listen, "dns-listen",
			"`ADDR:PORT` for the DNS server, by UDP and TCP; repeatable (default: none)"),
		cli.Flag(&cfg.dns.zone, "dns-zone",
			"`ZONE` of the names, such as lan.example: a container web on the network home is web.home.lan.example"),
		cli.Flag(&cfg.dns.allow, "dns-allow",
			"`CIDR` of DNS clients besides this host and its networks; repeatable (default: none)"),
		cli.Flag(&cfg.store, "store", "`kind` of store: bolt, a file on this host; etcd, which several hosts "+
			"share; or mem, which is empty at each start").Words(storeBolt, storeEtcd, "mem"),
		cli.Flag(&cfg.host, "host", "`name` of this host in leases and events (default: the system's host name)"),
		cli.Flag(&cfg.saidHost, "docker-host", "`URL` of the engine to read, or none (default: "+docker.DefaultHost+
			" if this user may open it)"),
		cli.Flag(&cfg.ipamDriver, "ipam-driver",
			"`name` of this daemon in the engine's networks (default: the plugin socket's file name without .sock)"),
		cli.Flag(&cfg.checkEvery, "check-every",
			"how often to compare containers with the records, a `duration`; 0: never"),
		cli.Flag(&cfg.checkGrace, "check-grace",
			"how long a lease must be unused before repair, a `duration`"),
		cli.Flag(&cfg.elastic, "elastic", "map elastic addresses; --elastic=false turns them off"),
		cli.Flag(&cfg.checkRepair, "check-repair", "automatically repair findings that are certain (see berth check)"),
		cli.Flag(&cfg.putBack, "put-back", "`which` containers to move back to their own addresses if the engine did not "+
			"identify them: reserved, all or off; a network can have its own mode").
			Words(putback.Words()...),
		cli.Flag(&cfg.bases, "default-pool",
			"range for subnets that Berth chooses; repeatable (see above)"),
		cli.Flag(&cfg.retention.Age, "event-age", "how long to keep events, a `duration`"),
		cli.Flag(&cfg.retention.Count, "event-count", "keep at most `N` events"),
		cli.Flag((*sizeFlag)(&cfg.retention.Bytes), "event-size", "maximum `size` of all events in the store"),
		cli.Flag(&cfg.logLevel, "log-level", "lowest log `level`: debug, info, warning or error").
			Words("debug", "info", "warning", "error"),
		cli.Flag(&cfg.logFormat, "log-format", "`format` of the log: text or json").Words("text", "json"))
}

// check refuses invalid settings, and fills in what the system knows.
func (cfg *serveConfig) check() (err error) {
	if err := cfg.checkStore(); err != nil {
		return err
	}
	switch {
	case cfg.retention.Age <= 0:
		return errors.New("--event-age must be longer than zero")
	case cfg.retention.Count <= 0:
		return errors.New("--event-count must be at least 1")
	case cfg.retention.Bytes < minEventBytes:
		return fmt.Errorf("--event-size must be at least %s, the size of the largest event",
			units.BytesSize(minEventBytes))
	case cfg.checkEvery < 0:
		return errors.New("--check-every must be a duration such as 5m, or 0 for never")
	case cfg.checkGrace <= 0:
		return errors.New("--check-grace must be longer than zero")
	case cfg.state == "":
		return errors.New("--state is empty: give the directory of the state")
	case cfg.pluginSocket == "":
		return errors.New("--plugin-socket is empty: give the path of a socket")
	case strings.Contains(cfg.adminSocket, "://"):
		return fmt.Errorf("--admin-socket is %s, but the daemon needs a path; use --admin-listen to listen on "+
			"the network", cfg.adminSocket)
	case cfg.adminListen == "" && cfg.adminKeys != admin.KeyFiles{}:
		return errors.New("--admin-cert, --admin-key and --admin-client-ca need --admin-listen")
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
		return errors.New("--store mem rebuilds its state from the engine, but no engine is set: name one with " +
			"--docker-host, or use --store bolt")
	}
	if cfg.host == "" {
		if cfg.host, err = os.Hostname(); err != nil {
			return fmt.Errorf("the host has no name: give it one with --host: %w", err)
		}
	}
	if cfg.store == storeEtcd {
		if err := ipam.CheckName("host", cfg.host); err != nil {
			return fmt.Errorf("--host, the name of this host for other hosts: %w", err)
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
		return fmt.Errorf("the sockets %s and %s have the same driver name %s: "+
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
