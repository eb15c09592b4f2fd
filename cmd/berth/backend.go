package main

import (
	"context"
	"errors"

	"berth/driver"
	"berth/internal/admin"
	"berth/internal/admin/api"
	"berth/internal/admin/relay"
	"berth/internal/advice"
	"berth/internal/dns"
	"berth/internal/docker"
	"berth/internal/hook"
	"berth/internal/ipam"
	"berth/internal/ipam/service"
	"berth/internal/ipam/stores"
	"berth/internal/metrics"
	"berth/internal/neighbours"
	"berth/internal/webhook"

	"github.com/sirupsen/logrus"
)

// backend has the records, and what supplies them.
type backend struct {
	own     *service.Service // over the host's own store
	cluster *clusterStore    // nil: the host shares no store
	roster  *docker.Roster   // the containers on this host
	lan     *relay.Relay     // to the host's edge, which speaks on its LANs
	memory  *memory          // settled after the shared store's records were read
	meter   *meter
	service interface { // used by all others: own, or own combined with the cluster's
		driver.Service
		admin.Service
		docker.Records
		hook.Service
		metrics.Records
		webhook.Service
		dns.Service
		ToProbe(ctx context.Context, most int) ([]ipam.Unprobed, error)
	}
	names *dns.Index // nil: no names are answered
}

// openOwn opens the Service over the host's own store.
func openOwn(ctx context.Context, st *storage, cfg service.Config, log *logrus.Entry) (*service.Service, error) {
	cfg.Store, cfg.Forgets = st, st.forgets
	cfg.Upgrading = upgrading(log, "state", st.path, st.backup)
	return service.Open(ctx, cfg)
}

// leavesNothing refuses to share a store while the host's own store has associated elastic addresses, because nothing
// would map them any more.
func leavesNothing(log *logrus.Entry, own *service.Service) error {
	left, err := stores.MayShare(own.Ledger)
	if err != nil {
		return errors.New(advice.Text(err))
	}
	if left {
		log.Warn("this host's own store has accounts or elastic ranges, which Berth does not use while the host " +
			"shares a store; `berth state copy --from bolt --to etcd` moves them to the shared store")
	}
	return nil
}

// probe probes the next addresses of networks with probes, until ctx ends.
func (h *backend) probe(host string, log *logrus.Entry) func(context.Context) error {
	return neighbours.New(neighbours.Config{Host: host, ToProbe: h.service.ToProbe, Edit: h.service.Edit,
		Ask: h.lan.Ask, Log: log}).Run
}

// takePart runs the host's membership in its cluster until ctx ends.
func (h *backend) takePart(ctx context.Context) error {
	if h.cluster == nil {
		return nil
	}
	return h.cluster.run(ctx)
}

// status returns the function for the state of the shared store; nil if there is none.
func (h *backend) status() func() api.ClusterStatus {
	if h.cluster == nil {
		return nil
	}
	return h.cluster.status
}

// backup returns the function that backs up the shared store; nil if there is none.
func (h *backend) backup() func(ctx context.Context, path string) (id string, err error) {
	if h.cluster == nil {
		return nil
	}
	return h.cluster.backup
}

// mend returns the function that mends the shared store; nil if there is none.
func (h *backend) mend() func(context.Context, ipam.MendOptions) (ipam.MendReport, error) {
	if h.cluster == nil {
		return nil
	}
	return h.cluster.shared.Mend
}
