package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"berth/driver"
	"berth/internal/admin"
	"berth/internal/admin/api"
	"berth/internal/cli"
	"berth/internal/docker"
	"berth/internal/edge"
	"berth/internal/hook"
	"berth/internal/ipam"
	"berth/internal/ipam/cluster"
	"berth/internal/ipam/service"

	"github.com/coreos/go-systemd/v22/daemon"
	"github.com/sirupsen/logrus"
)

// readGroup is the group whose members may only look on the admin socket.
const readGroup = "berth-read"

// serve runs the daemon until ctx ends or a signal comes that is to end it (untilSignal); it then finishes what is
// under way and returns nil. This is the only place where the rooms of Berth are put together.
func serve(ctx context.Context, cfg serveConfig, log *logrus.Entry, started time.Time) error {
	ctx, stop := cli.UntilSignal(ctx)
	defer stop()
	context.AfterFunc(ctx, stop) // a second signal ends the process at once

	settled := memoryForLoading()
	st, err := openStorage(ctx, cfg, log)
	if err != nil {
		return err
	}
	roster := docker.NewRoster(time.Now)
	records := service.Config{Host: cfg.host, Bases: cfg.bases, Retention: cfg.retention, Known: roster.Known(),
		NoElastic: !cfg.elastic, Moment: sinceStart()}
	service, err := openOwn(ctx, st, records)
	if err != nil {
		return errors.Join(err, st.Close())
	}
	h := &house{own: service, service: service, roster: roster, settled: settled}
	if cfg.store == storeEtcd {
		if h.cluster, err = openCluster(ctx, cfg, log, st, records); err != nil {
			return errors.Join(err, st.Close())
		}
		h.service = cluster.NewEstate(service, h.cluster.shared)
	}
	err = serveOn(ctx, cfg, log, started, st, h)
	if h.cluster != nil {
		err = errors.Join(err, h.cluster.close())
	}
	if err = errors.Join(err, st.Close()); err == nil {
		log.Info("Berth has ended")
	}
	return err
}

// house is who knows which address is whose.
type house struct {
	own     *service.Service // over the host's own store
	cluster *clusterStore    // nil: the host shares no store
	roster  *docker.Roster   // who runs here
	settled func()           // to be called when what it knows was read
	service interface {      // what the rooms ask: own, or an Estate of that and the cluster's
		driver.Service
		admin.Service
		docker.Records
		hook.Service
	}
}

// openOwn opens the Service over the host's own store.
func openOwn(ctx context.Context, st *storage, cfg service.Config) (*service.Service, error) {
	cfg.Store, cfg.Forgets = st, st.forgets
	return service.Open(ctx, cfg)
}

// serveOn binds the sockets, which answer from then on, and serves on them.
func serveOn(ctx context.Context, cfg serveConfig, log *logrus.Entry, started time.Time, st *storage, h *house) error {
	gid, readGID := groupID(cli.AdminGroup), groupID(readGroup)
	sockets, err := listen(log,
		socketSpec{name: "plugin", flag: "--plugin-socket", path: cfg.pluginSocket, gid: -1},
		socketSpec{name: "mac", flag: "--mac-socket", path: cfg.macSocket, gid: -1},
		socketSpec{name: "admin", flag: "--admin-socket", path: cfg.adminSocket, gid: gid, readGID: readGID})
	if err != nil {
		return err
	}
	defer closeSockets(log, sockets)
	onPlugin, onMAC, onAdmin := sockets[0], sockets[1], sockets[2]
	drivers := cfg.drivers(onMAC)
	remote, err := cfg.listenRemote(ctx, log)
	if err != nil {
		return err
	}
	defer remote.Close()
	tokens, err := admin.OpenTokens(filepath.Join(cfg.state, admin.TokenFile), time.Now)
	if err != nil {
		return err
	}
	hooks, hookCounts, err := cfg.hooks(ctx, log, h.service)
	if err != nil {
		return err
	}
	engine, err := cfg.openEngine()
	if err != nil {
		return err
	}
	if engine != nil {
		defer engine.Close()
	}
	witness := docker.New(docker.Config{Service: h.service, Host: cfg.host, Cluster: h.cluster != nil, Engine: engine,
		Drivers: drivers, Roster: h.roster,
		Every: cfg.checkEvery, Grace: cfg.checkGrace, Repair: cfg.checkRepair, Log: log})
	if h.cluster != nil {
		h.cluster.see = witness.View
	}
	rebuild := &rebuilding{service: h.own, cfg: cfg, drivers: drivers, log: log}
	if st.forgets {
		rebuild.engine = engine
	}
	protocol := driver.Config{Service: h.service, Log: log, Errors: admin.ErrorLog(log, logrus.DebugLevel),
		AskMAC: cfg.askMAC, Bridges: h.roster.Bridges, Ready: rebuild.ready}
	plugin := driver.New(protocol)
	protocol.AskMAC = true
	macPlugin := driver.New(protocol)
	control := admin.New(admin.Config{Service: h.service, Cluster: h.status(), Ready: rebuild.ready, Log: log, GID: gid,
		ReadGID: readGID, Tokens: tokens, TempDir: cfg.state, Hooks: hookCounts,
		Host: cfg.host, NoElastic: !cfg.elastic, Device: hasDevice,
		Version: api.Version{Version: version, Host: cfg.host, Driver: cfg.ipamDriver, Drivers: drivers,
			Store:   cfg.store,
			StoreID: st.id, State: st.path, PID: os.Getpid(), Started: started.UTC()},
		Backup: st.backup, BackupShared: h.backup(), Mend: h.mend(), Fsck: st.fsck, Writable: st.writable,
		Save:  st.save,
		Check: witness.Check, Release: witness.ReleaseLease, Show: witness.Show, Listen: witness.Listen,
		SeenBy: witness.SeenBy, Places: witness.Places, Witness: witness.State,
	})
	tasks := []func(context.Context) error{
		func(ctx context.Context) error { return plugin.Serve(ctx, onPlugin) },
		func(ctx context.Context) error { return control.Serve(ctx, onAdmin) },
		func(ctx context.Context) error { return remote.serve(ctx, control) },
		func(ctx context.Context) error { return keepUp(ctx, log, h.own) },
		func(ctx context.Context) error { return keepSystem(ctx, log, h.own) },
		h.takePart,
		func(ctx context.Context) error {
			rebuild.run(ctx) // before which there is nothing to hold against what runs
			return witness.Run(ctx)
		},
		hooks,
	}
	if onMAC != nil {
		tasks = append(tasks, func(ctx context.Context) error { return macPlugin.Serve(ctx, onMAC) })
	}
	tasks = append(tasks, func(ctx context.Context) error {
		if h.cluster != nil {
			h.cluster.awaitFirst(ctx)
		}
		h.settled()
		if ctx.Err() == nil {
			announce(ctx, cfg, log, started, h.service)
		}
		return nil
	})
	return together(ctx, tasks...)
}

// drivers are the names that the engine has for this daemon: that of its plugin socket, and that of the socket for
// those who are known by their MAC; nil: there is none.
func (cfg serveConfig) drivers(onMAC *socket) []string {
	names := []string{cfg.ipamDriver}
	if onMAC != nil {
		names = append(names, driverOf(onMAC.path))
	}
	return names
}

// driverOf is how the engine calls the driver behind a plugin socket.
func driverOf(socket string) string { return strings.TrimSuffix(filepath.Base(socket), ".sock") }

// takePart has the host take part in its cluster until ctx ends.
func (h *house) takePart(ctx context.Context) error {
	if h.cluster == nil {
		return nil
	}
	return h.cluster.run(ctx)
}

// status tells how it stands with the shared store; nil where there is none.
func (h *house) status() func() api.ClusterStatus {
	if h.cluster == nil {
		return nil
	}
	return h.cluster.status
}

// backup writes a backup of the shared store; nil where there is none.
func (h *house) backup() func(ctx context.Context, path string) (id string, err error) {
	if h.cluster == nil {
		return nil
	}
	return h.cluster.backup
}

// mend mends the shared store; nil where there is none.
func (h *house) mend() func(context.Context, ipam.MendOptions) (ipam.MendReport, error) {
	if h.cluster == nil {
		return nil
	}
	return h.cluster.shared.Mend
}

// openEngine opens the engine that is read, nil where there is none. Whether it answers is seen later.
func (cfg serveConfig) openEngine() (*docker.Engine, error) {
	if cfg.dockerHost == "" {
		return nil, nil
	}
	return docker.Open(cfg.dockerHost)
}

// hooks opens the directory of hooks, where one is given, and returns what runs and what counts them.
func (cfg serveConfig) hooks(ctx context.Context, log *logrus.Entry,
	service hook.Service) (run func(context.Context) error, counts func() *api.HookCounts, err error) {
	if cfg.hookDir == "" {
		return func(context.Context) error { return nil }, nil, nil
	}
	of := hook.Config{Service: service, Dir: cfg.hookDir, Log: log}
	if cfg.store == storeEtcd {
		of.Host = cfg.host // the others run their own
	}
	hooks, err := hook.Open(ctx, of)
	if err != nil {
		return nil, nil, err
	}
	return hooks.Run, func() *api.HookCounts {
		n := hooks.Counts()
		return &api.HookCounts{Runs: n.Runs, Failures: n.Failures}
	}, nil
}

// announce says once what runs, and tells the service manager where there is one.
func announce(ctx context.Context, cfg serveConfig, log *logrus.Entry, started time.Time, service admin.Service) {
	var subnets int
	var leases uint64
	spaces, err := service.Spaces(ctx)
	if err != nil {
		log.WithError(err).Warn("the spaces could not be counted")
	}
	for _, space := range spaces {
		subnets += space.Subnets
		leases += space.Leases
	}
	state := cfg.statePath()
	if cfg.store == "mem" {
		state = "in memory"
	}
	log.WithFields(logrus.Fields{"version": version, "state": state, "plugin": cfg.pluginSocket,
		"admin": cfg.adminSocket,
		"host":  cfg.host, "subnets": subnets, "leases": leases,
		"ready_ms": time.Since(started).Milliseconds()}).Info("Berth is ready")
	if _, err := daemon.SdNotify(false, daemon.SdNotifyReady); err != nil {
		log.WithError(err).Warn("the service manager could not be told that Berth is ready")
	}
}

// keepUp runs the service's upkeep until ctx ends. One that fails (the disk is full, say) is tried again later: it is
// no reason to stop giving addresses.
func keepUp(ctx context.Context, log *logrus.Entry, service *service.Service) error {
	for {
		err := service.Run(ctx)
		if err == nil {
			return nil
		}
		log.WithError(err).Error("old events could not be removed, or a release not be finished; the next try is in " +
			"a minute")
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(time.Minute):
		}
	}
}

// keepSystem keeps the system addresses of containers until ctx ends. A failure is no reason to stop giving addresses.
func keepSystem(ctx context.Context, log *logrus.Entry, service *service.Service) error {
	for {
		err := service.KeepSystem(ctx)
		if err == nil {
			return nil
		}
		log.WithError(err).Error("system addresses could not be given, or taken back; the next try is in a few seconds")
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(5 * time.Second):
		}
	}
}

// together runs the tasks until ctx ends or one of them fails; then it ends them all, and returns when they have.
func together(ctx context.Context, tasks ...func(context.Context) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	errs := make([]error, len(tasks))
	var wg sync.WaitGroup
	for i, task := range tasks {
		wg.Go(func() {
			if errs[i] = task(ctx); errs[i] != nil {
				cancel()
			}
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

// groupID looks a group up; -1 where there is none of that name.
func groupID(name string) int {
	g, err := user.LookupGroup(name)
	if err != nil {
		return -1
	}
	gid, err := strconv.Atoi(g.Gid)
	if err != nil {
		return -1
	}
	return gid
}

func (cfg serveConfig) statePath() string { return filepath.Join(cfg.state, stateFile) }

// prepareState makes the directory of the state, for its owner alone.
func (cfg serveConfig) prepareState(log *logrus.Entry) error {
	info, err := os.Stat(cfg.state)
	if errors.Is(err, os.ErrNotExist) {
		if err := os.MkdirAll(cfg.state, 0o700); err != nil {
			return fmt.Errorf("the directory of the state: %w; choose another with --state", err)
		}
		return nil
	}
	if err != nil {
		return err
	}
	if !info.IsDir() {
		return fmt.Errorf("the state is kept in a directory, and %s is none; choose another with --state", cfg.state)
	}
	if mode := info.Mode().Perm(); mode&0o022 != 0 {
		log.WithField("state", cfg.state).Warnf("others may write to the directory of the state (mode %o): "+
			"chmod 700 it", mode)
	}
	return nil
}

// sinceStart is the clock of the host, by which its edge is told until when it may answer. Where the kernel does not
// tell it, it is that of this process, whose moments its edge takes for ones that have passed.
func sinceStart() func() time.Duration {
	begun := time.Now()
	return func() time.Duration {
		now, err := edge.Now()
		if err != nil {
			return time.Since(begun)
		}
		return now.Sub(0)
	}
}
