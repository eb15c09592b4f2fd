package main

import (
	"io"
	"slices"
	"strings"
	"testing"

	"berth/internal/cli"
	"berth/internal/ipam/ipamtest"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// parse parses a command line of a verb without running it, and returns the verb.
func parse(t *testing.T, env map[string]string, verb string, args ...string) (*cobra.Command, error) {
	t.Helper()
	p := &cli.Program{Out: io.Discard, Stderr: io.Discard, Env: func(name string) string { return env[name] }}
	root := rootCommand(p, emptyHost())
	cmd, _, err := root.Find(strings.Fields(verb))
	fine(t, err)
	cmd.RunE = func(*cobra.Command, []string) error { return nil }
	root.SetArgs(append(strings.Fields(verb), args...))
	return cmd, root.Execute()
}

func TestEnvironment(t *testing.T) {
	for c := range ipamtest.Rows(5, `
		# the verb, the environment, further words, the flag, and its value
		serve | | | state | /var/lib/berth
		serve | BERTH_STATE=/e | | state | /e
		serve | BERTH_STATE=/e | --state /f | state | /f
		# what is empty or blank is not set
		serve | BERTH_STATE= | | state | /var/lib/berth
		serve | BERTH_STORE=BLANK | | store | bolt
		serve | BERTH_PLUGIN_SOCKET=/p | | plugin-socket | /p
		serve | BERTH_ADMIN_SOCKET=/a | | admin-socket | /a
		serve | BERTH_EVENT_COUNT=77 | | event-count | 77
		serve | BERTH_EVENT_SIZE=8m | | event-size | 8MiB
		serve | BERTH_EVENT_AGE=2h | | event-age | 2h0m0s
		serve | BERTH_DEFAULT_POOL=ONE;TWO | | default-pool | ONE;TWO
		# the flag replaces all pools
		serve | BERTH_DEFAULT_POOL=ONE | --default-pool TWO | default-pool | TWO
		serve | BERTH_WEBHOOK=https://a/x http://b | | webhook | https://a/x http://b
		events | BERTH_ADMIN_SOCKET=/a | | admin-socket | /a
		events | BERTH_TOKEN_FILE=/t | | token-file | /t
		events | BERTH_ADMIN_CA=/ca | | admin-ca | /ca
		events | BERTH_ADMIN_CLIENT_CERT=/c | | admin-client-cert | /c
		events | BERTH_ADMIN_CLIENT_KEY=/k | | admin-client-key | /k
		# only what belongs to an installation
		events | BERTH_FORMAT=json | | format | table
		state restore | BERTH_STATE=/e | x | state | /e
		edge | BERTH_PROVIDER=none | | provider | none
		edge | BERTH_EXEC=/x | --provider exec | exec | /x
		edge | BERTH_REMOVE=true | | remove | false
		# a check asks the daemon
		state check | BERTH_STATE=/e | | state |
		serve | BERTH_DOCKER_HOST=none | | docker-host | none
		serve | BERTH_CHECK_EVERY=0 | | check-every | 0s
		serve | BERTH_CHECK_REPAIR=true | | check-repair | true
		check | BERTH_DOCKER_HOST=tcp://e:1 | | docker-host | tcp://e:1
		# as the docker command, but only where a person types it
		pin | DOCKER_HOST=tcp://e:2 | web | docker-host | tcp://e:2
		pin | DOCKER_HOST=tcp://e:2 | web --docker-host tcp://e:3 | docker-host | tcp://e:3
		deploy plan | DOCKER_HOST=tcp://e:2 | | docker-host | tcp://e:2
		serve | DOCKER_HOST=tcp://e:2 | | docker-host |
		witness | DOCKER_HOST=tcp://e:2 | | docker-host |
		# repairs and force are never meant by accident
		check | BERTH_REPAIR=true | | repair | false
		state restore | BERTH_FORCE=true | x | force | false
		witness | BERTH_EVERY=5s | | every | 5s
		witness | BERTH_IPAM_DRIVER=a/b:1,c | | ipam-driver | [a/b:1,c]
	`) {
		for i := range c {
			c[i] = strings.NewReplacer("BLANK", " ", "ONE", "base=10.0.0.0/9,size=24",
				"TWO", "base=10.128.0.0/9,size=25").
				Replace(c[i])
		}
		name, value, _ := strings.Cut(c[1], "=")
		cmd, err := parse(t, map[string]string{name: value}, c[0], strings.Fields(c[2])...)
		fine(t, err)
		if got := cmd.Flags().Lookup(c[3]).Value.String(); got != c[4] {
			t.Errorf("%q: --%s is %q", c, c[3], got)
		}
	}
}

func TestEnvironmentRefused(t *testing.T) {
	_, err := parse(t, map[string]string{"BERTH_EVENT_COUNT": "many"}, "serve")
	if err == nil || !cli.IsUsage(err) {
		t.Errorf("BERTH_EVENT_COUNT=many: %v; want wrong usage", err)
	}
}

// The interface of serve is fixed: each flag of the design exists, with its name and its default.
func TestServeFlags(t *testing.T) {
	cmd, err := parse(t, nil, "serve")
	fine(t, err)
	var all []string
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		all = append(all, f.Name+"="+f.DefValue)
	})
	const want = `admin-ca= admin-cert= admin-client-ca= admin-client-cert= admin-client-key= admin-key= admin-listen=
		admin-socket= ask-mac=false check-every=5m0s check-grace=5m0s check-repair=false check-settings=false
		default-pool= dns-allow= dns-listen= dns-zone= docker-host= elastic=true etcd-cacert= etcd-cert= etcd-endpoints=[] etcd-key=
		etcd-password-file= etcd-prefix=berth/ etcd-user= event-age=2160h0m0s event-count=1000000 event-size=64MiB
		help=false hook= host= ipam-driver= log-format=text log-level=info mac-socket= metrics-listen=
		plugin-socket=/run/docker/plugins/berth.sock put-back=reserved state=/var/lib/berth store=bolt token-file=
		webhook= webhook-cacert= webhook-secret-file=`
	if !slices.Equal(all, strings.Fields(want)) {
		t.Errorf("serve has the flags %q", all)
	}
}
