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
	f.StringVar(&r.CA, flagCA, "", "CA `file` for a daemon on the network (default: the system's CAs)")
	f.StringVar(&r.Cert, flagClientCert, "", "client certificate `file` for a daemon on the network")
	f.StringVar(&r.Key, flagClientKey, "", "key `file` of the client certificate")
}

// NotForServe refuses these flags for the daemon itself.
func (r *RemoteFlags) NotForServe(f *pflag.FlagSet) error {
	for _, name := range remoteFlagNames {
		if f.Changed(name) {
			return fmt.Errorf("--%s is for clients; for the daemon use --admin-cert, --admin-key and "+
				"--admin-client-ca", name)
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
		return nil, fmt.Errorf("%s is neither a socket nor an https address; give the path of the daemon's "+
			"socket, or https://HOST:PORT", address)
	}
	r.URL = address
	return client.NewRemote(r.Remote)
}
