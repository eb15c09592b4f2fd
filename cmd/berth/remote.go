package main

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strings"

	"berth/internal/admin"

	"github.com/sirupsen/logrus"
	"github.com/spf13/pflag"
)

// remoteFlags say how a daemon is asked over the network.
type remoteFlags struct {
	admin.Remote
}

// The names of those flags; each is also read from the environment, which serve, that has no use for them, leaves alone.
const (
	flagTokenFile  = "token-file"
	flagCA         = "admin-ca"
	flagClientCert = "admin-client-cert"
	flagClientKey  = "admin-client-key"
)

var remoteFlagNames = []string{flagTokenFile, flagCA, flagClientCert, flagClientKey}

func isRemoteFlag(name string) bool { return slices.Contains(remoteFlagNames, name) }

func (r *remoteFlags) flags(f *pflag.FlagSet) {
	f.StringVar(&r.TokenFile, flagTokenFile, "", "`file` with the token for a daemon on the network")
	f.StringVar(&r.CA, flagCA, "", "`file` with the authorities that its certificate may be of (default: the system's)")
	f.StringVar(&r.Cert, flagClientCert, "", "`file` with a certificate to show to it")
	f.StringVar(&r.Key, flagClientKey, "", "`file` with the key of that certificate")
}

// notForServe refuses those flags where they are given to the daemon itself.
func (r *remoteFlags) notForServe(f *pflag.FlagSet) error {
	for _, name := range remoteFlagNames {
		if f.Changed(name) {
			return fmt.Errorf("--%s is for the commands that ask a daemon; the daemon's own are --admin-cert, --admin-key and --admin-client-ca", name)
		}
	}
	return nil
}

// client asks the daemon at an address. What no flag says is taken from the environment: completion runs without the flags
// being read from there.
func (r remoteFlags) client(address string, env func(string) string) (*admin.Client, error) {
	for flag, value := range map[string]*string{flagTokenFile: &r.TokenFile, flagCA: &r.CA, flagClientCert: &r.Cert, flagClientKey: &r.Key} {
		if *value == "" {
			*value = strings.TrimSpace(env(variable(flag)))
		}
	}
	if scheme, _, _ := strings.Cut(address, "://"); scheme != "https" {
		return nil, fmt.Errorf("the daemon is asked over a socket or in TLS, and %s is neither: give the path of its socket, or https://HOST:PORT", address)
	}
	r.URL = address
	return admin.NewRemoteClient(r.Remote)
}

// remoteListener is where the daemon speaks the admin API over the network; without a listener, nowhere.
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
		Info("the admin API is spoken over TLS")
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
