package main

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"berth/internal/admin/api"
	"berth/internal/cli"
	"berth/internal/ipam"
	"berth/internal/ipam/cluster"
	"berth/internal/ipam/service"
	"berth/store"
	"berth/store/etcd"

	"github.com/sirupsen/logrus"
)

// clusterStore is the daemon's part in the store that its host shares with others (--store etcd). It opens that store
// when it first becomes reachable. While it is unreachable, the host's own store continues to work.
type clusterStore struct {
	shared *cluster.Shared
	own    store.Store // the host's own
	etcd   etcd.Config
	ipam   service.Config // of the Service over the shared store, without the store itself
	member ipam.Member
	log    *logrus.Entry

	backups string // the prefix of the paths of backups before an upgrade

	see func(context.Context) (*ipam.EngineView, error) // the containers of this host; nil: unknown

	mu      sync.Mutex
	store   *etcd.Store // nil: not opened yet
	told    string      // the last logged reason why it is not opened
	refused bool        // waiting does not solve the last problem
}

// openCluster reads what the host knows of its cluster. It contacts no server.
func openCluster(ctx context.Context, cfg serveConfig, log *logrus.Entry, own store.Store,
	of service.Config, committed func(time.Duration)) (*clusterStore, error) {
	c := &clusterStore{own: own, ipam: of, log: log, backups: filepath.Join(cfg.state, "cluster.db")}
	var err error
	if c.etcd, err = cfg.etcd.config(); err != nil {
		return nil, err
	}
	c.etcd.Log, c.etcd.Remember, c.etcd.Committed = log, cluster.Remembered, committed
	if c.etcd.Cluster, err = cluster.KnownCluster(ctx, own); err != nil {
		return nil, err
	}
	c.member = ipam.Member{Session: ipam.NewID(), Version: version, Mark: cluster.MarkOf(c.etcd.Cluster)}
	if c.member.Host, err = cluster.OwnHost(ctx, own); err != nil {
		return nil, err
	}
	c.etcd.Host = c.member.Host.String()
	c.shared, err = cluster.OpenShared(ctx,
		cluster.SharedConfig{Own: own, Mark: c.member.Mark, Host: cfg.host, Open: c.open,
			Reach: c.reach, Written: c.written, Forgotten: c.forgotten,
			Mend: c.openMend, Trust: c.trust, See: c.running,
			Warn: func(err error) { log.Warn(err) }})
	return c, err
}

// open opens the shared store and the Service over it. From then on the host is a member.
func (c *clusterStore) open(ctx context.Context) (*service.Service, error) {
	cfg, err := c.known(ctx)
	if err != nil {
		c.tell(err)
		return nil, err
	}
	st, err := etcd.Open(ctx, cfg)
	if err != nil {
		c.tell(err)
		return nil, err
	}
	service, err := c.join(ctx, st)
	if err != nil {
		c.tell(err)
		return nil, errors.Join(err, st.Close())
	}
	st.Announce(c.ipam.Host, []byte(c.member.Session.String()))
	c.mu.Lock()
	defer c.mu.Unlock()
	c.store, c.told = st, ""
	c.log.WithFields(logrus.Fields{"cluster": st.Cluster(), "host": c.ipam.Host,
		"host_id": c.member.Host.String()}).Info("the shared store is open")
	return service, nil
}

// known returns the configuration of the store, with what this host remembers of it.
func (c *clusterStore) known(ctx context.Context) (cfg etcd.Config, err error) {
	cfg = c.etcd
	if cfg.Cluster, err = cluster.KnownCluster(ctx, c.own); err == nil {
		cfg.Trace, err = cluster.RecalledTrace(ctx, c.own)
	}
	return cfg, err
}

// written returns the changes in the shared store, if it is open.
func (c *clusterStore) written(ctx context.Context) (store.Written, error) {
	if st := c.opened(); st != nil {
		return st.Written(ctx)
	}
	return store.Written{}, nil
}

func (c *clusterStore) forgotten() {
	if st := c.opened(); st != nil {
		st.Forgotten()
	}
}

func (c *clusterStore) join(ctx context.Context, st *etcd.Store) (*service.Service, error) {
	member, cfg := c.member, c.ipam
	member.Mark = cluster.MarkOf(st.Cluster())
	cfg.Store, cfg.Member = st, &member
	cfg.Upgrading = upgrading(c.log, "shared store", c.backups, func(ctx context.Context, path string) error {
		return backupShared(ctx, st, path)
	})
	service, err := service.Open(ctx, cfg)
	if err != nil {
		return nil, err
	}
	return service, cluster.KeepCluster(ctx, c.own, st.Cluster())
}

// tell records that the store cannot be opened, and logs each reason once, because opening is retried. run logs
// problems that waiting does not solve.
func (c *clusterStore) tell(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	text := err.Error()
	news := text != c.told
	c.told = text
	switch {
	case news && errors.Is(err, store.ErrBack):
		c.log.WithError(err).Error("the shared store is not trusted, so Berth gives no addresses from it until " +
			"you mend it (`berth state mend`); the space local still works")
	case news && (errors.Is(err, store.ErrAway) || errors.Is(err, store.ErrUnknown)):
		c.log.WithError(err).Warn("the shared store cannot be opened, and Berth tries again; the space local still " +
			"works")
	}
}

func (c *clusterStore) opened() *etcd.Store {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.store
}

func (c *clusterStore) reach() store.Reach {
	if st := c.opened(); st != nil {
		return st.Reach()
	}
	return store.Reach{Err: store.ErrAway}
}

// firstTime bounds the wait for the shared store before the daemon reports that it is ready. lookFirst is the interval
// of checks. Without the wait, the first requests could be refused although the store is reachable.
const (
	firstTime = 5 * time.Second
	lookFirst = 10 * time.Millisecond
)

// awaitFirst waits until the store is open, or could not be opened.
func (c *clusterStore) awaitFirst(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, firstTime)
	defer cancel()
	again := time.NewTicker(lookFirst)
	defer again.Stop()
	for c.shared.State().Err != nil && !c.failed() {
		select {
		case <-ctx.Done():
			return
		case <-again.C:
		}
	}
}

// failed reports whether the last attempt to open the store failed.
func (c *clusterStore) failed() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.told != ""
}

// refusedPause is the pause after a refusal that only a person can solve.
const refusedPause = 5 * time.Second

// run runs the host's membership until ctx ends. It continues after a refusal, because the host's own store still
// works, and a person may admit the host or correct the problem.
func (c *clusterStore) run(ctx context.Context) error {
	told := ""
	for {
		err := c.shared.Run(ctx)
		if err == nil {
			return nil
		}
		c.mu.Lock()
		c.refused = true
		c.mu.Unlock()
		if text := err.Error(); text != told {
			told = text
			c.log.WithError(err).Error("this host cannot join the cluster, and tries again; the space local still " +
				"works")
		}
		cli.PauseFor(ctx, refusedPause)
	}
}

// refuses reports whether waiting does not solve a problem with the store.
func (c *clusterStore) refuses(err error) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.refused && !errors.Is(err, store.ErrAway) && !errors.Is(err, store.ErrUnknown)
}

// close closes the handle on the shared store, which shows that this host's daemon is gone.
func (c *clusterStore) close() error {
	if st := c.opened(); st != nil {
		return st.Close()
	}
	return nil
}

// status returns the state of the shared store, without its records of the hosts.
func (c *clusterStore) status() api.ClusterStatus {
	state := c.shared.State()
	st := api.ClusterStatus{Endpoints: c.etcd.Endpoints, Prefix: c.etcd.Prefix, ID: c.etcd.Cluster,
		HostID: c.member.Host, HostState: state.Host,
		Since: state.Since, Fresh: state.Fresh, Waiting: state.Waiting, Oldest: state.Oldest,
		Headroom: append([]ipam.HeadroomState{}, state.Headroom...)}
	if err := state.Err; err != nil {
		if text := strings.TrimPrefix(err.Error(), store.ErrAway.Error()+": "); c.refuses(err) {
			st.Refused = text
		} else {
			st.Away, st.NoSpace = text, errors.Is(err, store.ErrNoSpace)
		}
	}
	if back := new(store.Back); errors.As(state.Err, &back) {
		st.Back = &api.Back{Emptied: back.Emptied, Own: back.Own, All: back.All}
	}
	if mark := new(ipam.Mending); errors.As(state.Err, &mark) {
		st.Mending = &api.Mending{By: mark.By, Missing: mark.Missing}
	}
	if !state.Fresh.IsZero() {
		st.Age = max(time.Since(state.Fresh).Seconds(), 0)
	}
	if opened := c.opened(); opened != nil {
		n := opened.Counts()
		st.ID = opened.Cluster()
		st.Commits, st.Updates, st.Conflicts, st.Unknown = n.Commits, n.Updates, n.Conflicts, n.Unknown
	}
	return st
}
