package main

import (
	"context"
	"fmt"
	"net"

	"berth/internal/admin"

	"github.com/sirupsen/logrus"
)

// remoteListener is the listener of the admin API on the network. Without a listener there is none.
type remoteListener struct {
	net.Listener
	keys *admin.Keys
}

// listenRemote binds the address of --admin-listen.
func (cfg serveConfig) listenRemote(ctx context.Context, log *logrus.Entry) (*remoteListener, error) {
	if cfg.adminListen == "" {
		return &remoteListener{}, nil
	}
	keys, err := admin.OpenKeys(cfg.adminKeys, log)
	if err != nil {
		return nil, fmt.Errorf("--admin-listen %s: %w", cfg.adminListen, err)
	}
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", cfg.adminListen)
	if err != nil {
		return nil, fmt.Errorf("cannot listen on --admin-listen %s: %w", cfg.adminListen, rootCause(err))
	}
	log.WithField("address", l.Addr().String()).WithField("client_certificates", cfg.adminKeys.ClientCA != "").
		Info("the admin API listens with TLS")
	return &remoteListener{l, keys}, nil
}

func (r *remoteListener) serve(ctx context.Context, server *admin.Server) error {
	if r.Listener == nil {
		return nil
	}
	return server.ServeTLS(ctx, r.Listener, r.keys)
}

// Close stops listening.
func (r *remoteListener) Close() error {
	if r.Listener == nil {
		return nil
	}
	return r.Listener.Close()
}
