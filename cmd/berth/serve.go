package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"berth/driver"
	"berth/internal/admin"
	"berth/internal/admin/api"
	"berth/internal/admin/relay"
	"berth/internal/admin/trend"
	"berth/internal/cli"
	"berth/internal/docker"
	"berth/internal/edge"
	"berth/internal/ipam/cluster"
	"berth/internal/ipam/service"
	"berth/internal/metrics"

	"github.com/sirupsen/logrus"
)

// serve runs the daemon until ctx ends or a terminating signal comes (untilSignal). Then it finishes running work and
// returns nil. Only this function connects the packages of Berth.
func serve(ctx context.Context, cfg serveConfig, log *logrus.Entry, started time.Time) error {
	ctx, stop := cli.UntilSignal(ctx)
	defer stop()
	context.AfterFunc(ctx, stop) // a second signal ends the process at once

	memory := memoryForLoading()
	m := &meter{metrics.New()}
	st, err := openStorage(ctx, cfg, log, m.OwnCommit)
	if err != nil {
		return err
	}
	roster := docker.NewRoster(time.Now)
	lan := relay.New()
	names, known := cfg.newIndex(), roster.Known()
	if names != nil {
		known.NameHolder = names.Clash
	}
	records := service.Config{Host: cfg.host, Bases: cfg.bases, Retention: cfg.retention, Known: known,
		NoElastic: !cfg.elastic, Moment: sinceStart(), AskLAN: lan.Ask}
	service, err := openOwn(ctx, st, records, log)
	if err != nil {
		return errors.Join(err, st.Close())
	}
	h := &backend{own: service, service: service, roster: roster, lan: lan, memory: memory, meter: m, names: names}
	if cfg.store == storeEtcd {
		if err := leavesNothing(log, service); err != nil {
			return errors.Join(err, st.Close())
		}
		if h.cluster, err = openCluster(ctx, cfg, log, st, records, m.Commit); err != nil {
			return errors.Join(err, st.Close())
		}
		h.service = cluster.NewService(service, h.cluster.shared)
	} else {
		memory.settle()
	}
	err = serveOn(ctx, cfg, log, started, st, h)
	lastReleases(context.WithoutCancel(ctx), log, h.own)
	if h.cluster != nil {
		err = errors.Join(err, h.cluster.close())
	}
	if err = errors.Join(err, st.Close()); err == nil {
		log.Info("Berth has ended")
	}
	return err
}

// serveOn binds the sockets and serves on them.
func serveOn(ctx context.Context, cfg serveConfig, log *logrus.Entry, started time.Time, st *storage,
	h *backend) error {
	d, err := cfg.openListeners(ctx, log)
	if err != nil {
		return err
	}
	defer d.close(log)
	tokens, err := admin.OpenTokens(filepath.Join(cfg.state, admin.TokenFile), time.Now)
	if err != nil {
		return err
	}
	tell, err := cfg.openNotifiers(ctx, log, st, h)
	if err != nil {
		return err
	}
	defer tell.names.stop()
	drivers := cfg.drivers(d.mac)
	look, err := h.observe(cfg, log, drivers, tokens)
	if err != nil {
		return err
	}
	defer look.close()
	h.meter.watches(h, st, look.state, tell.hookCounts, tell.webhookStates, tell.names.state, look.findings)
	rebuild := &rebuilding{service: h.own, cfg: cfg, drivers: drivers, log: log}
	if st.forgets {
		rebuild.engine = look.engine
	}
	used := trend.Open(filepath.Join(cfg.state, "trend.json"), h.service.Use)
	control := admin.New(admin.Config{Trend: used, Service: h.service, Cluster: h.status(), Ready: rebuild.ready,
		Log: log, GID: d.gid,
		ReadGID: d.readGID, Tokens: tokens, TempDir: cfg.state, Hooks: tell.hookCounts, Metrics: h.meter.Handler(),
		Webhooks: tell.webhookStates, Zone: cfg.dns.zone, Names: tell.names.state,
		Host: cfg.host, NoElastic: !cfg.elastic, Device: cfg.on.device, LAN: h.lan,
		Version: api.Version{Version: version, Host: cfg.host, Driver: cfg.ipamDriver, Drivers: drivers, Store: cfg.store,
			StoreID: st.id, State: st.path, PID: os.Getpid(), Started: started.UTC()},
		Settings: cfg.settings, Unknown: cfg.unknown,
		Backup: st.backup, BackupShared: h.backup(), Mend: h.mend(), Fsck: st.fsck, Writable: st.writable, Save: st.save,
		Check: look.witness.Check, Release: look.witness.ReleaseLease, Show: look.witness.Show,
		Listen: look.witness.Listen, Report: look.witness.Report, SeenBy: look.witness.SeenBy,
		Places: look.witness.Places, Witness: look.state, Found: look.check,
	})
	tasks := append(h.keeps(cfg, log),
		func(ctx context.Context) error { return control.Serve(ctx, d.admin.listener()) },
		func(ctx context.Context) error { return d.remote.serve(ctx, control) },
		func(ctx context.Context) error { return h.meter.serve(ctx, d.metrics, log) },
		func(ctx context.Context) error {
			rebuild.run(ctx) // the comparison needs the rebuilt records
			return look.witness.Run(ctx)
		},
		used.Run, tell.hooks, tell.webhooks, tell.names.run, look.shadows.Run, look.strangers.Run,
		look.arrivals.Run,
		func(ctx context.Context) error { return look.warn(ctx, log) },
		func(ctx context.Context) error { return h.ready(ctx, cfg, log, started) })
	// A container that is put back asks Berth for its address, so these end first.
	moves := []func(context.Context) error{look.putBack.Run}
	return inOrder(ctx, moves, h.drives(cfg, log, d, rebuild), tasks)
}

// drives returns the tasks that answer the engine.
func (h *backend) drives(cfg serveConfig, log *logrus.Entry, d *listeners,
	rebuild *rebuilding) []func(context.Context) error {
	protocol := driver.Config{Service: h.service, Log: log, Errors: admin.ErrorLog(log, logrus.DebugLevel),
		Routes: cfg.on.routes, NameServers: cfg.on.servers, Host: cfg.on.bridges,
		AskMAC: cfg.askMAC, Named: h.roster.NoteNames, Bridges: h.roster.Bridges,
		Ready: rebuild.ready, Observe: h.meter.Request}
	plugin := driver.New(protocol)
	tasks := []func(context.Context) error{
		func(ctx context.Context) error { return plugin.Serve(ctx, d.plugin.listener()) },
	}
	if d.mac == nil {
		return tasks
	}
	protocol.AskMAC = true
	onMAC := driver.New(protocol)
	return append(tasks, func(ctx context.Context) error { return onMAC.Serve(ctx, d.mac.listener()) })
}

// keeps returns the tasks that maintain the records.
func (h *backend) keeps(cfg serveConfig, log *logrus.Entry) []func(context.Context) error {
	return []func(context.Context) error{
		func(ctx context.Context) error { return keepUp(ctx, log, h.own) },
		func(ctx context.Context) error { return keepSystem(ctx, log, h.own) },
		func(ctx context.Context) error { return keepLeases(ctx, log, h.own) },
		func(ctx context.Context) error { h.own.KeepWaiting(ctx); return nil },
		h.takePart,
		h.probe(cfg.host, log),
	}
}

// ready reports that the daemon is ready, after everything is read that its answers need.
func (h *backend) ready(ctx context.Context, cfg serveConfig, log *logrus.Entry, started time.Time) error {
	if h.cluster != nil {
		h.cluster.awaitFirst(ctx)
		h.memory.settle()
	}
	if ctx.Err() == nil {
		announce(ctx, cfg, log, started, h.service)
	}
	return nil
}

func (cfg serveConfig) statePath() string { return filepath.Join(cfg.state, stateFile) }

// prepareState creates the directory of the state, for its owner only.
func (cfg serveConfig) prepareState(log *logrus.Entry) error {
	info, err := os.Stat(cfg.state)
	if errors.Is(err, os.ErrNotExist) {
		if err := os.MkdirAll(cfg.state, 0o700); err != nil {
			return fmt.Errorf("cannot make the directory of the state: %w; choose another with --state", err)
		}
		return nil
	}
	if err != nil {
		return err
	}
	if !info.IsDir() {
		return fmt.Errorf("the state needs a directory, but %s is not one; choose another with --state", cfg.state)
	}
	if mode := info.Mode().Perm(); mode&0o022 != 0 {
		log.WithField("state", cfg.state).Warnf("other users may write to the directory of the state (mode %o): "+
			"chmod 700 it", mode)
	}
	return nil
}

// sinceStart returns the host's clock, which limits how long its edge may answer. If the kernel does not have it,
// sinceStart returns a clock of this process. Its times are in the past for the edge.
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
