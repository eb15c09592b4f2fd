package main

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"berth/internal/admin"
	"berth/internal/arrivals"
	"berth/internal/docker"
	"berth/internal/docker/pin"
	"berth/internal/docker/putback"
	"berth/internal/ipam"
	"berth/internal/neighbours"
	"berth/internal/routes"

	"github.com/sirupsen/logrus"
)

// observer observes what runs on this host, and finds problems.
type observer struct {
	engine    *docker.Engine // nil: none is observed
	witness   *docker.Witness
	shadows   *routes.Watch
	strangers *neighbours.Listener
	tokens    func() []ipam.Finding // tokens that expire soon
	putBack   *putback.Worker       // nil: its file cannot be read
	arrivals  *arrivals.Announcer
}

// observe creates the observer. drivers are the engine's names of this daemon.
func (h *backend) observe(cfg serveConfig, log *logrus.Entry, drivers []string, tokens *admin.Tokens) (*observer,
	error) {
	engine, err := cfg.openEngine()
	if err != nil {
		return nil, err
	}
	var witness *docker.Witness
	worker, err := h.putBackWorker(cfg, log, func() ipam.Onlooker { return witness.Onlooker() })
	if err != nil {
		return nil, err
	}
	arrived := arrivals.New(arrivals.Here{Engine: cfg.dockerHost}, log)
	witness = docker.New(docker.Config{Service: h.service, Host: cfg.host, Cluster: h.cluster != nil, Engine: engine,
		Drivers: drivers, Roster: h.roster, Every: cfg.checkEvery, Grace: cfg.checkGrace, Repair: cfg.checkRepair,
		Seen: filepath.Join(cfg.state, seenFile), Boot: bootID(), Astray: worker.Tell, Viewed: arrived.See,
		Log: log})
	if h.cluster != nil {
		h.cluster.see = witness.View
	}
	return &observer{engine: engine, witness: witness, putBack: worker, arrivals: arrived,
		tokens: func() []ipam.Finding { return tokens.Findings(cfg.host) },
		shadows: routes.New(routes.Config{Host: cfg.host, Attachments: h.service.Attachments, Leases: h.service.Leases,
			List: cfg.on.list, Changes: cfg.on.changes, Note: h.service.Note, Log: log}),
		strangers: neighbours.NewListener(neighbours.ListenConfig{Host: cfg.host, Networks: h.service.Networks,
			Network: h.service.Network, Leases: h.service.Leases, SeenBy: witness.SeenBy, Ask: h.lan.Ask, Log: log}),
	}, nil
}

// seenFile keeps which containers run, beside the state. A restored state does not replace it.
const seenFile = "running.json"

// bootID identifies the boot of this host's kernel. After a reboot nothing of before runs.
func bootID() string {
	id, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil { // then it is as if the host never rebooted
		return ""
	}
	return strings.TrimSpace(string(id))
}

// putBackWorker returns what moves containers back to their own addresses. It works on the observed engine, or through
// `berth witness`.
func (h *backend) putBackWorker(cfg serveConfig, log *logrus.Entry,
	onlooker func() ipam.Onlooker) (*putback.Worker, error) {
	var connector putback.Connector = putback.Remote{Onlooker: onlooker}
	if cfg.dockerHost != "" {
		local, err := pin.OpenConnector(cfg.dockerHost)
		if err != nil {
			return nil, err
		}
		connector = putback.Local{Connector: local}
	}
	worker, err := putback.New(putback.Config{Mode: putback.Mode(cfg.putBack), Records: h.service, Connector: connector,
		Expect: h.roster.Expect, Notes: filepath.Join(cfg.state, putBackFile), Log: log})
	if err != nil { // the daemon still leases addresses
		log.WithError(err).Error("Berth moves no container back to its own address; remove the file that the error " +
			"names when all containers are on their networks")
		return nil, nil
	}
	return worker, nil
}

func (l *observer) close() {
	if l.engine != nil {
		l.engine.Close()
	}
}

// state returns the state of the witness, with the counts of moved containers.
func (l *observer) state() ipam.WitnessState {
	state := l.witness.State()
	state.PutBack = l.putBack.Counts()
	return state
}

// findings returns the last findings that do not come from the engine.
func (l *observer) findings() []ipam.Finding {
	return slices.Concat(l.shadows.Findings(), l.strangers.Findings(), l.tokens())
}

// check looks for problems that do not come from the engine.
func (l *observer) check(ctx context.Context) []ipam.Finding {
	return slices.Concat(l.shadows.Check(ctx), l.strangers.Findings(), l.tokens())
}

// warnEvery is the interval of warnings about tokens that expire soon.
const warnEvery = 24 * time.Hour

// warn logs tokens that expire soon, at once and then daily, until ctx ends.
func (l *observer) warn(ctx context.Context, log *logrus.Entry) error {
	again := time.NewTicker(warnEvery)
	defer again.Stop()
	for {
		for _, f := range l.tokens() {
			log.Warn(f.Detail)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-again.C:
		}
	}
}

// openEngine opens the engine to observe, or returns nil. It does not connect yet.
func (cfg serveConfig) openEngine() (*docker.Engine, error) {
	if cfg.dockerHost == "" {
		return nil, nil
	}
	return docker.Open(cfg.dockerHost)
}
