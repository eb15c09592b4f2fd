package cli

import (
	"fmt"
	"slices"
	"strings"

	"berth/internal/admin/client"

	"github.com/spf13/pflag"
)

// RemoteFlags set how a daemon is reached over the network.
type RemoteFlags struct {
	client.Remote
}

// Names of these flags. All commands but serve, which has no use for them, also read them from the environment.
const (
	flagTokenFile  = "token-file"
	flagCA         = "admin-ca"
	flagClientCert = "admin-client-cert"
	flagClientKey  = "admin-client-key"
)

var remoteFlagNames = []string{flagTokenFile, flagCA, flagClientCert, flagClientKey}

func isRemoteFlag(name string) bool { return slices.Contains(remoteFlagNames, name) }

func (r *RemoteFlags) flags(f *pflag.FlagSet) {
	f.StringVar(&r.TokenFile, flagTokenFile, "", "`file` with the token for a daemon on the network")
	f.StringVar(&r.CA, flagCA, "", "`file` with the authorities that its certificate may be of (default: the system's)")
	f.StringVar(&r.Cert, flagClientCert, "", "`file` with a certificate to show to it")
	f.StringVar(&r.Key, flagClientKey, "", "`file` with the key of that certificate")
}

// NotForServe refuses these flags for the daemon itself.
func (r *RemoteFlags) NotForServe(f *pflag.FlagSet) error {
	for _, name := range remoteFlagNames {
		if f.Changed(name) {
			return fmt.Errorf("--%s is for the commands that ask a daemon; the daemon's own are --admin-cert, "+
				"--admin-key and --admin-client-ca", name)
		}
	}
	return nil
}

// client returns a client of the daemon at an address. Missing flags come from the environment here, because completion
// runs before the flags are set from it.
func (r RemoteFlags) client(address string, env func(string) string) (*client.Client, error) {
	for flag, value := range map[string]*string{flagTokenFile: &r.TokenFile, flagCA: &r.CA, flagClientCert: &r.Cert,
		flagClientKey: &r.Key} {
		if *value == "" {
			*value = strings.TrimSpace(env(variable(flag)))
		}
	}
	if scheme, _, _ := strings.Cut(address, "://"); scheme != "https" {
		return nil, fmt.Errorf("the daemon is asked over a socket or in TLS, and %s is neither: give the path of its "+
			"socket, or https://HOST:PORT", address)
	}
	r.URL = address
	return client.NewRemote(r.Remote)
}
