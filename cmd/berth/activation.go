package main

import (
	"fmt"
	"net"

	"github.com/coreos/go-systemd/v22/activation"
	"github.com/sirupsen/logrus"
)

// listen returns one listening socket for each spec: the one that systemd passed under its name (sd_listen_fds(3),
// FileDescriptorName=), or a newly bound one. A spec without a path returns nil unless systemd passed a socket. After
// an error nothing stays bound.
func listen(log *logrus.Entry, specs ...socketSpec) (all []*socket, err error) {
	handed, err := activation.ListenersWithNames()
	if err != nil {
		return nil, fmt.Errorf("cannot take the sockets from systemd: %w", err)
	}
	defer func() {
		if err != nil {
			closeSockets(log, all)
		}
	}()
	for _, spec := range specs {
		s, err := takeHanded(handed, spec)
		if err == nil && s == nil && spec.path != "" {
			s, err = bind(spec)
		}
		if err != nil {
			return all, err
		}
		all = append(all, s)
	}
	for name, rest := range handed {
		log.WithField("name", name).Warn("systemd passed a socket with a name that Berth does not use; Berth uses " +
			"the names plugin, mac and admin")
		for _, l := range rest {
			l.Close()
		}
	}
	return all, nil
}

// takeHanded removes the listener with spec's name from handed; nil if there is none.
func takeHanded(handed map[string][]net.Listener, spec socketSpec) (*socket, error) {
	found := handed[spec.name]
	delete(handed, spec.name)
	switch len(found) {
	case 0:
		return nil, nil
	case 1:
	default:
		return nil, fmt.Errorf("systemd passed %d sockets named %s: it must pass only one", len(found), spec.name)
	}
	l, ok := found[0].(*net.UnixListener)
	if !ok {
		return nil, fmt.Errorf("the %s socket from systemd is not a unix socket but %s", spec.name,
			found[0].Addr().Network())
	}
	return &socket{UnixListener: l, path: l.Addr().String()}, nil
}

func closeSockets(log *logrus.Entry, all []*socket) {
	for _, s := range all {
		if s == nil {
			continue
		}
		if err := s.Close(); err != nil {
			log.WithField("socket", s.path).WithError(err).Warn("the socket could not be removed")
		}
	}
}
