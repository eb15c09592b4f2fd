package main

import (
	"context"
	"errors"
	"strings"
	"sync"
	"time"

	"berth/internal/admin"
	"berth/internal/ipam"
	"berth/store"
	"berth/store/etcd"

	"github.com/sirupsen/logrus"
)

// cluster is what a daemon does for the store that its host shares with others (--store etcd). That store is opened when it is first in
// reach; until then, and whenever it is not, the host's own goes on.
type cluster struct {
	shared *ipam.Shared
	own    store.Store // the host's
	etcd   etcd.Config
	ipam   ipam.Config // of the Service over the shared store, but for that
	member ipam.Member
	log    *logrus.Entry

	mu      sync.Mutex
	store   *etcd.Store // nil: it was not opened yet
	told    string      // why not, as it was last told in the log
	refused bool        // the last trouble was one that no waiting mends
}

// openCluster reads what the host knows of its cluster. It asks nobody.
func openCluster(ctx context.Context, cfg serveConfig, log *logrus.Entry, own store.Store, of ipam.Config) (*cluster, error) {
	c := &cluster{own: own, ipam: of, log: log}
	var err error
	if c.etcd, err = cfg.etcd.config(); err != nil {
		return nil, err
	}
	c.etcd.Log = log
	if c.etcd.Cluster, err = ipam.KnownCluster(ctx, own); err != nil {
		return nil, err
	}
	c.member = ipam.Member{Session: ipam.NewID(), Version: version, Mark: ipam.ClusterMark(c.etcd.Cluster)}
	if c.member.Host, err = ipam.OwnHost(ctx, own); err != nil {
		return nil, err
	}
	c.shared, err = ipam.OpenShared(ctx, ipam.SharedConfig{Own: own, Mark: c.member.Mark, Host: cfg.host, Open: c.open, Reach: c.reach,
		Warn: func(err error) { log.Warn(err) }})
	return c, err
}

// open opens the shared store and the Service over it, in which the host takes part from then on.
func (c *cluster) open(ctx context.Context) (*ipam.Service, error) {
	st, err := etcd.Open(ctx, c.etcd)
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
	c.log.WithFields(logrus.Fields{"cluster": st.Cluster(), "host": c.ipam.Host, "host_id": c.member.Host.String()}).Info("the shared store is open")
	return service, nil
}

func (c *cluster) join(ctx context.Context, st *etcd.Store) (*ipam.Service, error) {
	member, cfg := c.member, c.ipam
	member.Mark = ipam.ClusterMark(st.Cluster())
	cfg.Store, cfg.Member = st, &member
	service, err := ipam.Open(ctx, cfg)
	if err != nil {
		return nil, err
	}
	return service, ipam.KeepCluster(ctx, c.own, st.Cluster())
}

// tell notes that the store cannot be opened, and logs why, once for each reason: it is tried again and again. What no waiting mends
// run tells of.
func (c *cluster) tell(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	text := err.Error()
	news := text != c.told
	c.told = text
	if news && (errors.Is(err, store.ErrAway) || errors.Is(err, store.ErrUnknown)) {
		c.log.WithError(err).Warn("the shared store cannot be opened, and is tried again until it can; the space local works meanwhile")
	}
}

func (c *cluster) opened() *etcd.Store {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.store
}

func (c *cluster) reach() store.Reach {
	if st := c.opened(); st != nil {
		return st.Reach()
	}
	return store.Reach{Err: store.ErrAway}
}

// How long it is waited for the shared store before the daemon says that it is ready, and how often it is looked: what comes first
// would be refused otherwise, for a moment that nobody would understand.
const (
	firstTime = 5 * time.Second
	lookFirst = 10 * time.Millisecond
)

// awaitFirst waits until the store is open, or could not be opened.
func (c *cluster) awaitFirst(ctx context.Context) {
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

// failed tells whether the store could not be opened when that was last tried.
func (c *cluster) failed() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.told != ""
}

// refusedPause is how long it is waited after a refusal that no waiting mends, but perhaps a person.
const refusedPause = 5 * time.Second

// run has the host take part until ctx ends. A cluster that refuses it is no reason to end: what is the host's own goes on, and somebody
// may admit it, or mend what is wrong.
func (c *cluster) run(ctx context.Context) error {
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
			c.log.WithError(err).Error("this host can take no part in the cluster, which is tried again; the space local works meanwhile")
		}
		pauseFor(ctx, refusedPause)
	}
}

// refuses tells whether trouble with the store is one that no waiting mends.
func (c *cluster) refuses(err error) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.refused && !errors.Is(err, store.ErrAway) && !errors.Is(err, store.ErrUnknown)
}

// close ends the handle on the shared store, which says that this host is not there any more.
func (c *cluster) close() error {
	if st := c.opened(); st != nil {
		return st.Close()
	}
	return nil
}

// status is how it stands with the shared store, but for what that itself says of hosts.
func (c *cluster) status() admin.ClusterStatus {
	state := c.shared.State()
	st := admin.ClusterStatus{Endpoints: c.etcd.Endpoints, Prefix: c.etcd.Prefix, ID: c.etcd.Cluster, HostID: c.member.Host, HostState: state.Host,
		Since: state.Since, Fresh: state.Fresh, Waiting: state.Waiting, Oldest: state.Oldest, Headroom: append([]ipam.HeadroomState{}, state.Headroom...)}
	if err := state.Err; err != nil {
		if text := strings.TrimPrefix(err.Error(), store.ErrAway.Error()+": "); c.refuses(err) {
			st.Refused = text
		} else {
			st.Away = text
		}
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
