package main

import (
	"context"
	"errors"
	"sync"
	"time"

	"berth/internal/admin"
	"berth/internal/ipam/service"

	"github.com/coreos/go-systemd/v22/daemon"
	"github.com/sirupsen/logrus"
)

// announce logs once what runs, and notifies the service manager if there is one.
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
		log.WithError(err).Warn("cannot tell the service manager that Berth is ready")
	}
}

// keepUp runs the service's housekeeping until ctx ends. After a failure, such as a full disk, it tries again later,
// because the daemon can still lease addresses.
func keepUp(ctx context.Context, log *logrus.Entry, service *service.Service) error {
	for {
		err := service.Run(ctx)
		if err == nil {
			return nil
		}
		log.WithError(err).Error("housekeeping failed (removing old events, finishing removals and releases); " +
			"the next try is in a minute")
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(time.Minute):
		}
	}
}

// keepSystem keeps the system addresses of containers until ctx ends. After a failure the daemon can still lease
// addresses.
func keepSystem(ctx context.Context, log *logrus.Entry, service *service.Service) error {
	service.KeepSystem(ctx, func(err error) {
		log.WithError(err).Error("cannot give or take back system addresses; the next try is in a few seconds")
	})
	return nil
}

// keepLeases keeps the leases of the LANs' DHCP servers until ctx ends.
func keepLeases(ctx context.Context, log *logrus.Entry, service *service.Service) error {
	service.KeepLeases(ctx, func(err error) {
		log.WithError(err).Error("cannot record the result of a DHCP server's lease; the next try is in a second")
	})
	return nil
}

// together runs tasks until ctx ends or one of them fails. Then it ends all, and returns after they have ended.
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

// inOrder runs groups of tasks until ctx ends or one of them fails. Then each group goes on until the one before it has
// ended, because that one needs it.
func inOrder(ctx context.Context, groups ...[]func(context.Context) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	errs := make([]error, len(groups))
	var wg sync.WaitGroup
	next := ctx
	for i, group := range groups {
		own := next
		var end context.CancelFunc
		next, end = context.WithCancel(context.WithoutCancel(ctx))
		wg.Go(func() {
			defer end()
			if errs[i] = together(own, group...); errs[i] != nil {
				cancel()
			}
			<-ctx.Done() // tasks may end before the stop
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

// lastReleases makes the releases that wait, before the store is closed. It logs those that are lost.
func lastReleases(ctx context.Context, log *logrus.Entry, service *service.Service) {
	if err := service.MakeWaiting(ctx); err != nil {
		log.WithError(err).WithField("releases", service.Waiting()).Warn("releases that the state did not record " +
			"are lost; `berth check` finds their leases")
	}
}
