// Package seen has `berth page`, the command that shows Berth's page in your browser. Only the browser that opened the
// printed link can see or change anything, and only while the command runs.
//
// page.go listens on an address of this machine. Each request passes the gate (gate.go), which checks the Host, the
// secret and the origin. Then pass.go forwards it to the daemon's admin socket, as the user who runs the command. The
// daemon renders the views.
package seen

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"time"

	"berth/internal/cli"
)

const pageHelp = `Serves Berth's page to a browser on this machine, until you press Ctrl-C. The first line of
output is the link to open. Anyone with the secret in the link has access until the command ends. The first
visit moves the secret from the address bar into a cookie.

The page has your rights on the admin socket. To reach the daemon over TLS instead, give
--admin-socket https://HOST:PORT and --token-file. The command forwards only pages, not the API below /v1.

Only this machine can connect, unless --listen names another address. The connection is not encrypted. Over
SSH, use the same port at both ends: ssh -L 7891:127.0.0.1:7891 HOST berth page --listen 127.0.0.1:7891`

// Limits of a connection.
const (
	headerTimeout = 5 * time.Second
	bodyTimeout   = 10 * time.Second
	idleTimeout   = 2 * time.Minute
	maxHeader     = 64 << 10
	drainTimeout  = 2 * time.Second
)

// PageCommand is `berth page`.
func PageCommand() cli.Row {
	listen := "127.0.0.1:0"
	return cli.Verb{Use: "page", Short: "Show used and free addresses in your browser", Long: pageHelp,
		Example: "  berth page\n  berth page --listen 127.0.0.1:7891",
		Flags: cli.Flags{cli.Flag(&listen, "listen",
			"`address` and port to serve the page on; port 0 chooses a free port").
			Words()},
		Run: func(r *cli.Run) error {
			at, err := listenAddress(listen)
			if err != nil {
				return cli.Usage(r.Cmd, err)
			}
			r, stop := r.UntilSignal()
			defer stop()
			if err := r.Ask(); err != nil {
				return err
			}
			if _, err := r.Version(r); err != nil { // report an error here, not in the browser
				return err
			}
			return serve(r, at)
		}}
}

// listenAddress parses --listen. The address goes into the link, so it must not be the unspecified one.
func listenAddress(text string) (netip.AddrPort, error) {
	at, err := netip.ParseAddrPort(strings.Replace(text, "localhost:", "127.0.0.1:", 1))
	switch {
	case err != nil:
		return at, fmt.Errorf("--listen is %q; it is an address and a port, such as 127.0.0.1:0 or [::1]:7891", text)
	case at.Addr().IsUnspecified():
		return at, fmt.Errorf("--listen is %q, which means all addresses; give the one address to use in the link",
			text)
	}
	return at, nil
}

// serve serves the page on an address until the context ends.
func serve(r *cli.Run, at netip.AddrPort) error {
	l, err := new(net.ListenConfig).Listen(r, "tcp", at.String())
	if err != nil {
		return fmt.Errorf("cannot serve the page: %w; choose another address or port with --listen", err)
	}
	secret := rand.Text()
	bound := l.Addr().(*net.TCPAddr).AddrPort()
	server := &http.Server{
		Handler:           newGate(bound, secret, passOn(r.Client)),
		ReadHeaderTimeout: headerTimeout,
		ReadTimeout:       bodyTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeader,
		BaseContext:       func(net.Listener) context.Context { return r }, // streams end with the command
		ErrorLog:          quiet(),
	}
	if !bound.Addr().IsLoopback() {
		r.Warnf("the network can reach %s, and connections to it are not encrypted",
			bound.Addr())
	}
	if err := r.Sayf("http://%s/?%s=%s", bound, secretParameter, secret); err != nil {
		return errors.Join(err, l.Close())
	}
	served := make(chan error, 1)
	go func() { served <- server.Serve(l) }()
	select {
	case err := <-served:
		return fmt.Errorf("the page on %s: %w", bound, err)
	case <-r.Done():
	}
	drain, cancel := context.WithTimeout(context.WithoutCancel(r), drainTimeout)
	defer cancel()
	if err := server.Shutdown(drain); err != nil {
		_ = server.Close() // this cuts off browsers that do not read
	}
	if err := <-served; !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("the page on %s: %w", bound, err)
	}
	return nil
}
