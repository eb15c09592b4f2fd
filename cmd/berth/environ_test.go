package main

import (
	"io"
	"strings"
	"testing"

	"berth/internal/cli"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// parse reads a command line of a verb without carrying it out, and returns the verb.
func parse(t *testing.T, env map[string]string, verb string, args ...string) (*cobra.Command, error) {
	t.Helper()
	p := &cli.Program{Out: io.Discard, Err: io.Discard, Env: func(name string) string { return env[name] }}
	root := rootCommand(p, emptyHost())
	cmd, _, err := root.Find(strings.Fields(verb))
	fine(t, err)
	cmd.RunE = func(*cobra.Command, []string) error { return nil }
	root.SetArgs(append(strings.Fields(verb), args...))
	return cmd, root.Execute()
}

func TestEnvironment(t *testing.T) {
	for _, c := range []struct {
		name, verb string
		env        map[string]string
		args       []string
		flag, want string
	}{
		{"default", "serve", nil, nil, "state", "/var/lib/berth"},
		{"environment", "serve", map[string]string{"BERTH_STATE": "/e"}, nil, "state", "/e"},
		{"flag wins", "serve", map[string]string{"BERTH_STATE": "/e"}, []string{"--state", "/f"}, "state", "/f"},
		{"empty is unset", "serve", map[string]string{"BERTH_STATE": ""}, nil, "state", "/var/lib/berth"},
		{"blank is unset", "serve", map[string]string{"BERTH_STORE": " "}, nil, "store", "bolt"},
		{"name with a dash", "serve", map[string]string{"BERTH_PLUGIN_SOCKET": "/p"}, nil, "plugin-socket", "/p"},
		{"global flag", "serve", map[string]string{"BERTH_ADMIN_SOCKET": "/a"}, nil, "admin-socket", "/a"},
		{"number", "serve", map[string]string{"BERTH_EVENT_COUNT": "77"}, nil, "event-count", "77"},
		{"size", "serve", map[string]string{"BERTH_EVENT_SIZE": "8m"}, nil, "event-size", "8MiB"},
		{"duration", "serve", map[string]string{"BERTH_EVENT_AGE": "2h"}, nil, "event-age", "2h0m0s"},
		{"several pools", "serve",
			map[string]string{"BERTH_DEFAULT_POOL": "base=10.0.0.0/9,size=24;base=10.128.0.0/9,size=25"}, nil,
			"default-pool", "base=10.0.0.0/9,size=24;base=10.128.0.0/9,size=25"},
		{"flag replaces all pools", "serve", map[string]string{"BERTH_DEFAULT_POOL": "base=10.0.0.0/9,size=24"},
			[]string{"--default-pool", "base=10.128.0.0/9,size=25"}, "default-pool", "base=10.128.0.0/9,size=25"},
		{"several receivers", "serve", map[string]string{"BERTH_WEBHOOK": "https://a/x http://b"}, nil, "webhook",
			"https://a/x http://b"},
		{"client", "events", map[string]string{"BERTH_ADMIN_SOCKET": "/a"}, nil, "admin-socket", "/a"},
		{"a token", "events", map[string]string{"BERTH_TOKEN_FILE": "/t"}, nil, "token-file", "/t"},
		{"authorities", "events", map[string]string{"BERTH_ADMIN_CA": "/ca"}, nil, "admin-ca", "/ca"},
		{"a certificate", "events", map[string]string{"BERTH_ADMIN_CLIENT_CERT": "/c"}, nil, "admin-client-cert", "/c"},
		{"its key", "events", map[string]string{"BERTH_ADMIN_CLIENT_KEY": "/k"}, nil, "admin-client-key", "/k"},
		{"only what belongs to an installation", "events", map[string]string{"BERTH_FORMAT": "json"}, nil, "format",
			"table"},
		{"restore knows where the state is", "state restore", map[string]string{"BERTH_STATE": "/e"}, []string{"x"}, "state",
			"/e"},
		{"the edge's provider", "edge", map[string]string{"BERTH_PROVIDER": "none"}, nil, "provider", "none"},
		{"its program", "edge", map[string]string{"BERTH_PROVIDER": "exec", "BERTH_EXEC": "/x"}, nil, "exec", "/x"},
		{"what the edge does", "edge", map[string]string{"BERTH_REMOVE": "true"}, nil, "remove", "false"},
		{"a check asks the daemon", "state check", map[string]string{"BERTH_STATE": "/e"}, nil, "state", ""},
		{"the engine of serve", "serve", map[string]string{"BERTH_DOCKER_HOST": "none"}, nil, "docker-host", "none"},
		{"how often is checked", "serve", map[string]string{"BERTH_CHECK_EVERY": "0"}, nil, "check-every", "0s"},
		{"repairs", "serve", map[string]string{"BERTH_CHECK_REPAIR": "true"}, nil, "check-repair", "true"},
		{"the engine is of an installation", "check", map[string]string{"BERTH_DOCKER_HOST": "tcp://e:1"}, nil,
			"docker-host", "tcp://e:1"},
		{"repairs are never meant by accident", "check", map[string]string{"BERTH_REPAIR": "true"}, nil, "repair",
			"false"},
		{"witness is a service", "witness", map[string]string{"BERTH_EVERY": "5s"}, nil, "every", "5s"},
		{"drivers", "witness", map[string]string{"BERTH_IPAM_DRIVER": "a/b:1,c"}, nil, "ipam-driver", "[a/b:1,c]"},
		{"force is never meant by accident", "state restore", map[string]string{"BERTH_FORCE": "true"}, []string{"x"},
			"force", "false"},
	} {
		t.Run(c.name, func(t *testing.T) {
			cmd, err := parse(t, c.env, c.verb, c.args...)
			fine(t, err)
			if got := cmd.Flags().Lookup(c.flag).Value.String(); got != c.want {
				t.Errorf("--%s is %q, want %q", c.flag, got, c.want)
			}
		})
	}
}

func TestEnvironmentRefused(t *testing.T) {
	_, err := parse(t, map[string]string{"BERTH_EVENT_COUNT": "many"}, "serve")
	if err == nil || !cli.IsUsage(err) {
		t.Errorf("BERTH_EVENT_COUNT=many: %v; want wrong usage", err)
	}
}

// The outside surface of serve is fixed: each flag of the design is there, under its name and its default.
func TestServeFlags(t *testing.T) {
	cmd, err := parse(t, nil, "serve")
	fine(t, err)
	want := map[string]string{"state": "/var/lib/berth", "plugin-socket": "/run/docker/plugins/berth.sock",
		"admin-socket": "", "event-size": "64MiB",
		"store": "bolt", "host": "", "default-pool": "", "event-age": "2160h0m0s", "event-count": "1000000",
		"log-level": "info", "log-format": "text", "admin-listen": "", "admin-cert": "", "admin-key": "",
		"admin-client-ca": "", "hook": "", "metrics-listen": "", "webhook": "", "webhook-secret-file": "",
		"webhook-cacert": "", "dns-listen": "", "dns-zone": "", "dns-allow": "",
		"etcd-endpoints": "[]", "etcd-cacert": "", "etcd-cert": "", "etcd-key": "", "etcd-user": "",
		"etcd-password-file": "", "etcd-prefix": "berth/",
		"mac-socket": "", "ask-mac": "false", "docker-host": "", "ipam-driver": "", "check-every": "5m0s",
		"check-grace": "5m0s", "check-repair": "false", "check-settings": "false", "put-back": "reserved", "elastic": "true",
		"token-file": "", "admin-ca": "", "admin-client-cert": "", "admin-client-key": ""} // of all commands
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if def, ok := want[f.Name]; f.Name != "help" && (!ok || def != f.DefValue) {
			t.Errorf("--%s has the default %q, want %q", f.Name, f.DefValue, def)
		}
		delete(want, f.Name)
	})
	if len(want) > 0 {
		t.Errorf("serve has no flags %v", want)
	}
}
