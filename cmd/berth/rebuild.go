package main

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/sirupsen/logrus"

	"berth/driver"
	"berth/internal/docker"
	"berth/internal/ipam"
	"berth/internal/ipam/service"
)

// lookForEngine is the interval of requests to an engine that does not answer yet.
const lookForEngine = time.Second

// rebuilding rebuilds the state of a store that forgets from the running containers. Until then it refuses the
// engine's requests, because a free address may be in use.
type rebuilding struct {
	service *service.Service
	engine  *docker.Engine // nil: the store does not forget
	cfg     serveConfig
	drivers []string // the engine's names of this daemon
	log     *logrus.Entry
	done    atomic.Bool
}

// ready returns an error until the state is rebuilt.
func (r *rebuilding) ready() error {
	if r.done.Load() || r.engine == nil {
		return nil
	}
	return errors.New("Berth does not know yet which addresses are in use: it keeps them in memory (--store mem), " +
		"and the engine has not reported its running containers; try again in a moment, or use --store bolt")
}

// run asks the engine until it answers or ctx ends.
func (r *rebuilding) run(ctx context.Context) {
	if r.engine == nil {
		return
	}
	for told := false; ; told = true {
		view, err := r.engine.View(ctx, r.cfg.host, r.drivers)
		if err == nil {
			err = r.service.Rebuild(ipam.WithActor(ctx, "rebuild"), view, driver.ParseNetwork)
			r.done.Store(true)
			log := r.log.WithFields(logrus.Fields{"networks": len(view.Networks), "containers": len(view.Containers)})
			if err != nil {
				log.WithError(err).Warn("Berth rebuilt the state from the running containers, but not all of it; " +
					"`berth check` lists what is missing")
			} else {
				log.Info("Berth rebuilt the state from the running containers")
			}
			return
		}
		if !told {
			r.log.WithError(err).Warn("the state cannot be rebuilt from the running containers yet; Berth gives " +
				"no addresses until it is rebuilt")
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(lookForEngine):
		}
	}
}
