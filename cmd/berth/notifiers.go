package main

import (
	"context"

	"berth/internal/admin/api"
	"berth/internal/hook"

	"github.com/sirupsen/logrus"
)

// notifiers report what happens to others: hooks, webhooks and the name server.
type notifiers struct {
	hooks, webhooks func(context.Context) error
	hookCounts      func() *api.HookCounts    // nil: none
	webhookStates   func() []api.WebhookState // nil: none
	names           *answerer
}

// openNotifiers opens those that are configured.
func (cfg *serveConfig) openNotifiers(ctx context.Context, log *logrus.Entry, st *storage,
	h *backend) (t notifiers, err error) {
	if t.hooks, t.hookCounts, err = cfg.hooks(ctx, log, h.service); err != nil {
		return t, err
	}
	if t.webhooks, t.webhookStates, err = cfg.openWebhooks(ctx, log, st, h.service); err != nil {
		return t, err
	}
	t.names, err = cfg.listenDNS(ctx, log, h.names, h.service)
	return t, err
}

// hooks opens the directory of hooks, if one is given. It returns the function that runs them and the one that counts
// them.
func (cfg serveConfig) hooks(ctx context.Context, log *logrus.Entry,
	service hook.Service) (run func(context.Context) error, counts func() *api.HookCounts, err error) {
	if cfg.hookDir == "" {
		return func(context.Context) error { return nil }, nil, nil
	}
	of := hook.Config{Service: service, Dir: cfg.hookDir, Log: log}
	if cfg.store == storeEtcd {
		of.Host = cfg.host // the other hosts run their own
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
