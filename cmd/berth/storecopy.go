package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"berth/internal/advice"
	"berth/internal/cli"
	"berth/internal/cli/daemon"
	"berth/internal/cli/host"
	"berth/internal/ipam"
	"berth/internal/ipam/cluster"
	"berth/internal/ipam/service"
	"berth/internal/ipam/stores"
	"berth/store"
	"berth/store/bolt"
	"berth/store/etcd"
)

const storeCopyHelp = `Moves spaces from one store to the other, with everything in them: networks, subnets,
Docker's pools, leases, remembered addresses, reservations and events. With a copy from bolt to etcd, a host joins a
cluster and brings its networks. With a copy from etcd to bolt, it leaves the cluster and takes its networks along. All
ids stay, so Docker's networks and containers keep working. The space "local" belongs to one host and stays in bolt.

Accounts, elastic ranges and elastic addresses always move to etcd. They move back only if no other host takes part and
nothing of another space stays behind. The command refuses if an elastic address is associated with a container on a
network that stays.

Stop the daemon of this host first; daemons of other hosts may keep running. Before it writes anything, the command
looks for conflicts, and refuses if it finds any: a network name or a subnet that the other store already has, or a
network that several hosts use.

The command writes everything to the other store, where it is hidden at first, reads it back and compares each record.
Then the first store releases the spaces and the other store shows them, so no space is ever visible in both. If a
copy was interrupted, run the same command again. --undo reverts an interrupted copy, as long as the first store has
not released the spaces.`

// storeBolt is the value of --store for the host's own store.
const storeBolt = "bolt"

// storeCopy has the flags of store copy.
type storeCopy struct {
	from, to    string
	state, host string
	etcd        etcdFlags
	spaces      []string
	dryRun      bool
	undo        bool
	format      string
}

func stateCommand() cli.Row {
	return cli.Group("state", "The daemon's state: backup, restore, check, move, repair", backupCommand(),
		restoreCommand(), fsckCommand(), storeCopyCommand(), daemon.SaveCommand(), host.MendCommand(),
		host.AcceptCommand())
}

func storeCopyCommand() cli.Row {
	c := storeCopy{state: defaultState}
	return cli.Verb{Use: "copy --from STORE --to STORE",
		Short: "Move spaces between the host's and the shared store", Long: storeCopyHelp,
		Example: `  systemctl stop berth.socket berth-mac.socket berth-admin.socket berth
  berth state copy --from bolt --to etcd --etcd-endpoints http://10.0.0.11:2379 --dry-run
  berth state copy --from bolt --to etcd --etcd-endpoints http://10.0.0.11:2379
  berth state copy --from etcd --to bolt --etcd-endpoints http://10.0.0.11:2379 --space lab`,
		Flags: append(c.etcd.flags(),
			cli.Flag(&c.from, "from", "`STORE` that has the spaces: bolt or etcd").Words(storeBolt, storeEtcd),
			cli.Flag(&c.to, "to", "`STORE` that gets the spaces: etcd or bolt").Words(storeBolt, storeEtcd),
			cli.Flag(&c.state, "state", "`directory` of the host's own state").Dirs(),
			cli.Flag(&c.host, "host", "`name` of this host, as in its daemon's --host (default: the system's name)"),
			cli.Flag(&c.spaces, "space", "only the space `NAME`; repeatable (default: all spaces but local)").Split(),
			cli.Flag(&c.dryRun, "dry-run", "check, show what would be copied, and copy nothing"),
			cli.Flag(&c.undo, "undo", "undo an interrupted copy"),
			cli.FormatFlag(&c.format, "")),
		Check: func(*cli.Run) error { return c.check() },
		Run: func(r *cli.Run) error {
			show, err := cli.NewObject[ipam.CopyReport](r, c.format)
			if err != nil {
				return err
			}
			report, err := copyStore(r, &c)
			if err != nil {
				return err
			}
			return show.Object(&report, func(w io.Writer) error { return c.said(w, &report) })
		}}
}

// check refuses invalid flags.
func (c *storeCopy) check() (err error) {
	stores := []string{storeBolt, storeEtcd}
	switch {
	case c.from == "" || c.to == "":
		return errors.New("name both stores: --from bolt --to etcd, or --from etcd --to bolt")
	case !slices.Contains(stores, c.from) || !slices.Contains(stores, c.to):
		return fmt.Errorf("spaces move from bolt to etcd, or from etcd to bolt, not from %s to %s; `berth state "+
			"restore` restores a backup", c.from, c.to)
	case c.from == c.to:
		return fmt.Errorf("both stores are %s: give --from bolt --to etcd, or --from etcd --to bolt", c.from)
	case c.undo && c.dryRun:
		return errors.New("--undo reverts a copy, and --dry-run changes nothing: give one of them")
	}
	if c.host == "" {
		if c.host, err = os.Hostname(); err != nil {
			return fmt.Errorf("the host has no name: give it one with --host: %w", err)
		}
	}
	if err := ipam.CheckName("host", c.host); err != nil {
		return fmt.Errorf("--host, the name of this host for other hosts: %w", err)
	}
	return c.etcd.check()
}

// etcdPatience is how long a command that writes much waits for etcd. No engine waits for it.
const etcdPatience = 10 * time.Second

// command returns the command that repeats the same copy.
func (c *storeCopy) command() string {
	return fmt.Sprintf("berth state copy --from %s --to %s", c.from, c.to)
}

// copyStore opens both stores and copies.
func copyStore(r *cli.Run, c *storeCopy) (report ipam.CopyReport, err error) {
	r, stop := r.UntilSignal()
	defer stop()
	own, err := c.openOwn(r)
	if err != nil {
		return report, err
	}
	defer func() { err = errors.Join(err, own.Close()) }()
	shared, err := c.openShared(r, own)
	if err != nil {
		return report, err
	}
	defer func() { err = errors.Join(err, shared.Close()) }()
	ownService, err := service.Open(r, service.Config{Store: own, Host: c.host, Copying: true})
	if err != nil {
		return report, err
	}
	sharedService, err := openMember(r, own, shared, c.host)
	if err != nil {
		return report, err
	}
	progress := r.ShowProgress("copying", c.undo)
	defer progress.End()
	opt := ipam.CopyOptions{Spaces: c.spaces, DryRun: c.dryRun, Undo: c.undo, Command: c.command(),
		Progress: progress.Set}
	r = r.With(ipam.WithActor(r, "berth state copy"))
	if c.to == storeBolt {
		report, err = stores.CopySpaces(r, sharedService.Ledger, ownService.Ledger, opt)
		return report, listCollisions(r, err)
	}
	back, err := c.openShared(r, own) // reads the result back from etcd, and not from this process's memory
	if err != nil {
		return report, err
	}
	defer func() { err = errors.Join(err, back.Close()) }()
	opt.ReadBack = back
	report, err = stores.CopySpaces(r, ownService.Ledger, sharedService.Ledger, opt)
	return report, listCollisions(r, err)
}

// openOwn opens the host's own store. No daemon may have it open.
func (c *storeCopy) openOwn(ctx context.Context) (*bolt.Store, error) {
	path := filepath.Join(c.state, stateFile)
	if _, err := os.Stat(path); err != nil {
		return nil, fmt.Errorf("cannot find the state of this host: %w; give the directory of its daemon's state "+
			"with --state", err) // opening would create one
	}
	st, err := bolt.Open(ctx, bolt.Config{Path: path})
	if errors.Is(err, store.ErrLocked) {
		return nil, fmt.Errorf("%w; stop this host's daemon, because Berth must give no addresses during a copy", err)
	}
	if err == nil && c.to == storeBolt {
		err = readyToLeave(ctx, st, c.dryRun)
	}
	if err != nil && st != nil {
		return nil, errors.Join(err, st.Close())
	}
	return st, err
}

// readyToLeave refuses to copy from the shared store while this host has something to deliver to it. The headroom stays
// in the shared store.
func readyToLeave(ctx context.Context, own store.Store, dryRun bool) error {
	waiting, err := cluster.Undelivered(ctx, own)
	if err != nil {
		return err
	}
	if waiting > 0 {
		return fmt.Errorf("this host gave or released addresses that the shared store does not know yet (%d); start "+
			"the daemon, and wait until `berth status` shows that nothing waits", waiting)
	}
	if dryRun {
		return nil
	}
	return cluster.DropHeadroom(ctx, own)
}

// openMember opens the cluster's records as the host with the given own store.
func openMember(ctx context.Context, own store.Store, shared *etcd.Store, host string) (*service.Service, error) {
	if err := cluster.KeepCluster(ctx, own, shared.Cluster()); err != nil {
		return nil, err
	}
	id, err := cluster.OwnHost(ctx, own)
	if err != nil {
		return nil, err
	}
	member := &ipam.Member{Host: id, Session: ipam.NewID(), Version: version,
		Mark: cluster.MarkOf(shared.Cluster())}
	return service.Open(ctx, service.Config{Store: shared, Host: host, Member: member})
}

// openShared opens the cluster's store. If the host belongs to a cluster, it must be that one.
func (c *storeCopy) openShared(ctx context.Context, own store.Store) (*etcd.Store, error) {
	cfg, err := c.etcd.config()
	if err != nil {
		return nil, err
	}
	if cfg.Cluster, err = cluster.KnownCluster(ctx, own); err != nil {
		return nil, err
	}
	id, err := cluster.OwnHost(ctx, own)
	if err != nil {
		return nil, err
	}
	if cfg.Trace, err = cluster.RecalledTrace(ctx, own); err != nil {
		return nil, err
	}
	cfg.Timeout, cfg.Host = etcdPatience, id.String()
	return etcd.Open(ctx, cfg)
}

// listCollisions prints everything that prevents a copy.
func listCollisions(r *cli.Run, err error) error {
	var wrong *ipam.PlanError
	if !errors.As(err, &wrong) {
		return err
	}
	if len(wrong.Problems) == 1 && wrong.More == 0 {
		return fmt.Errorf("%s; nothing was copied",
			cli.Printable(advice.Join(wrong.Problems[0].Text, wrong.Problems[0].Advice)))
	}
	for _, problem := range wrong.Problems {
		fmt.Fprintln(r.Stderr, cli.Printable(advice.Join(problem.Text, problem.Advice)))
	}
	return fmt.Errorf("%s; nothing was copied", cli.Counted(len(wrong.Problems)+wrong.More, "collision"))
}

// said prints the result of a copy for a person.
func (c *storeCopy) said(w io.Writer, r *ipam.CopyReport) error {
	var b strings.Builder
	networks, events := 0, 0
	var copied, finished []string
	for _, space := range r.Spaces {
		if space.Finished {
			finished = append(finished, space.Name)
			continue
		}
		copied = append(copied, space.Name)
		networks, events = networks+len(space.Networks), events+space.Events
		for _, n := range space.Networks {
			fmt.Fprintf(&b, "%s: %s, with %s, %s, %s, %s, %s\n", space.Name, n.Name,
				cli.Counted(n.Subnets, "subnet"), cli.Counted(n.Docker, "Docker network"),
				cli.Counted(n.Leases, "lease"), cli.Counted(n.Reservations, "reservation"),
				cli.Counted(n.Memories, "remembered lease"))
		}
	}
	if e := r.Elastic; e != nil && !r.Undone && !e.Finished {
		fmt.Fprintf(&b, "elastic addresses: %s, %s, %s (%s), %s\n", cli.Counted(e.Accounts, "account"),
			cli.Counted(e.Ranges, "range"), cli.Counted(e.Addresses, "allocation"),
			cli.Counted(e.Associations, "association"), cli.Counted(e.Events, "event"))
	}
	if len(finished) > 0 {
		fmt.Fprintf(&b, "finished an interrupted copy: %s now has %s, and %s no "+
			"longer does\n", c.to, theSpaces(finished), c.from)
	}
	what := fmt.Sprintf("%s, with %s and %s,", theSpaces(copied), cli.Counted(networks, "network"),
		cli.Counted(events, "event"))
	switch {
	case len(copied) == 0 && r.Elastic != nil:
		fmt.Fprintf(&b, "%s\n", elasticSaid(c, r))
	case len(copied) == 0:
	case r.Undone:
		fmt.Fprintf(&b, "undone: %s has %s, as before\n", c.from, theSpaces(copied))
	case r.DryRun:
		fmt.Fprintf(&b, "would copy %s from %s to %s\n", what, c.from, c.to)
	default:
		fmt.Fprintf(&b, "copied %s from %s to %s, and compared each record; %s no longer has them\n", what, c.from,
			c.to, c.from)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// elasticSaid returns what happened to elastic addresses without their space.
func elasticSaid(c *storeCopy, r *ipam.CopyReport) string {
	switch {
	case r.Undone:
		return fmt.Sprintf("undone: %s has the elastic addresses, as before", c.from)
	case r.DryRun:
		return fmt.Sprintf("would copy the elastic addresses from %s to %s", c.from, c.to)
	case r.Elastic.Finished:
		return fmt.Sprintf("finished an interrupted copy: %s now has the elastic addresses, and %s no longer does",
			c.to, c.from)
	}
	return fmt.Sprintf("copied the elastic addresses from %s to %s, and compared each record; %s no longer has them",
		c.from, c.to, c.from)
}

func theSpaces(names []string) string {
	if len(names) == 1 {
		return "the space " + names[0]
	}
	return "the spaces " + strings.Join(names, ", ")
}
