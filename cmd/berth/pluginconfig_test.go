package main

import (
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/pflag"
)

// notOfThePlugin are the flags of serve that are no settings of a managed plugin, each with the reason.
var notOfThePlugin = map[string]string{
	"state":           "its entry point has it: the one place of the host that it sees",
	"plugin-socket":   "its entry point has it",
	"admin-socket":    "its entry point has it",
	"mac-socket":      "an engine asks a plugin on one socket; BERTH_ASK_MAC is for that one",
	"hook":            "it sees no program of the host",
	"admin-listen":    "the admin API of a plugin is its socket's alone",
	"admin-cert":      "the same",
	"admin-key":       "the same",
	"admin-client-ca": "the same",
	"ipam-driver":     "it reads no engine: berth witness does, and has the flag",
	"elastic":         "berth edge, on the host, is what maps them",
	"check-settings":  "it serves nobody",
	"help":            "it answers nobody",
}

// TestPluginSettings: each setting of the managed plugin is a flag of serve. Each flag of serve is a setting, or
// has a reason. serve accepts the default values.
func TestPluginSettings(t *testing.T) {
	text, err := os.ReadFile("../../plugin-config/config.json")
	fine(t, err)
	var config struct {
		Entrypoint []string
		Linux      struct{ Capabilities []string }
		Env        []struct {
			Name, Description, Value string
			Settable                 []string
		}
	}
	fine(t, json.Unmarshal(text, &config))
	if len(config.Linux.Capabilities) > 0 {
		t.Errorf("the plugin asks for %v: it does with no capability", config.Linux.Capabilities)
	}
	env := map[string]string{}
	for _, e := range config.Env {
		if _, twice := env[e.Name]; twice || !slices.Equal(e.Settable, []string{"value"}) || e.Description == "" {
			t.Errorf("%s: %+v", e.Name, e)
		}
		env[e.Name] = e.Value
	}
	cmd, err := parse(t, env, "serve", config.Entrypoint[2:]...)
	if err != nil {
		t.Fatalf("what the plugin begins with: %v", err)
	}
	flags := map[string]bool{}
	cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
		name := "BERTH_" + strings.ToUpper(strings.ReplaceAll(f.Name, "-", "_"))
		_, set := env[name]
		if flags[name] = true; set == (notOfThePlugin[f.Name] != "") {
			t.Errorf("--%s is a setting of the plugin: %t; or there is a reason: %q", f.Name, set, notOfThePlugin[f.Name])
		}
	})
	for name := range env {
		if !flags[name] {
			t.Errorf("%s is no flag of serve", name)
		}
	}
	for name := range notOfThePlugin {
		if name != "admin-socket" && cmd.LocalFlags().Lookup(name) == nil {
			t.Errorf("there is no --%s", name)
		}
	}
	env["BERTH_WEBHOOK"], env["BERTH_METRICS_LISTEN"] = "https://a/x http://b", "127.0.0.1:9723"
	env["BERTH_DNS_LISTEN"], env["BERTH_DNS_ZONE"] = "127.0.0.1:5354 [::1]:5354", "lan.example"
	env["BERTH_DNS_ALLOW"] = "192.168.1.0/24 2001:db8::/64"
	if cmd, err = parse(t, env, "serve", config.Entrypoint[2:]...); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"webhook": "https://a/x http://b", "metrics-listen": "127.0.0.1:9723",
		"dns-listen": "127.0.0.1:5354 [::1]:5354", "dns-zone": "lan.example", "dns-allow": "192.168.1.0/24 2001:db8::/64"} {
		if got := cmd.Flags().Lookup(name).Value.String(); got != want {
			t.Errorf("--%s is %q, want %q", name, got, want)
		}
	}
}
