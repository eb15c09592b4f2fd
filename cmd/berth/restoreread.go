package main

import (
	"bufio"
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"berth/internal/cli"
)

// stateReaders are the places that say which state the daemons of this host use.
type stateReaders struct {
	usual    string   // the directory of a daemon without settings
	settings string   // of the service: lines with BERTH_...=
	units    []string // one of them exists if the service is installed
	plugins  string   // a pattern for the states of managed plugins
}

func defaultReaders() stateReaders {
	return stateReaders{defaultState, "/etc/default/berth",
		[]string{"/etc/systemd/system/berth.service", "/usr/lib/systemd/system/berth.service",
			"/lib/systemd/system/berth.service"},
		"/var/lib/docker/plugins/*/propagated-mount/" + stateFile}
}

// unread returns why a restored state is not read: the daemons use another one. It returns nothing if the service uses
// this state. A managed plugin counts only for the usual directory: whoever restores into another one means a daemon
// of that directory, and the plugin has nothing to do with it.
func (r *stateReaders) unread(state string) (lines []string) {
	mine := absolute(state)
	settings := r.read()
	service := absolute(cmp.Or(settings["BERTH_STATE"], defaultState))
	installed := len(settings) > 0
	for _, unit := range r.units {
		if _, err := os.Stat(unit); err == nil {
			installed = true
		}
	}
	says := " (" + r.settings + ")"
	switch {
	case installed && settings["BERTH_STORE"] == "mem":
		lines = append(lines, fmt.Sprintf("the service berth keeps its state only in memory%s, so it does not read "+
			"the restored state in %s", says, state))
	case installed && service != mine:
		if settings["BERTH_STATE"] == "" {
			says = ""
		}
		lines = append(lines, fmt.Sprintf("the service berth reads the state in %s%s, not the restored state in "+
			"%s; to use the restored state, start a daemon with --state %s", service, says, state, state))
	case installed && settings["BERTH_STORE"] == "etcd":
		lines = append(lines, fmt.Sprintf("the service berth shares a store in etcd%s, which this backup does not "+
			"have, and which stays unchanged; to restore it, use `berth state restore --shared`", says))
	}
	if installed || mine != absolute(r.usual) {
		return lines
	}
	if others, _ := filepath.Glob(r.plugins); len(others) > 0 { // the pattern is valid
		lines = append(lines, fmt.Sprintf("a managed plugin keeps its state in %s, so it does not read the restored "+
			"state in %s", filepath.Dir(others[0]), state))
	}
	return lines
}

// read returns the settings of the service, or none without its file.
func (r *stateReaders) read() map[string]string {
	f, err := os.Open(r.settings)
	if err != nil {
		return nil
	}
	defer f.Close()
	all := map[string]string{}
	for lines := bufio.NewScanner(f); lines.Scan(); {
		name, value, found := strings.Cut(strings.TrimSpace(lines.Text()), "=")
		if found && strings.HasPrefix(name, "BERTH_") {
			all[name] = strings.Trim(strings.TrimSpace(value), `"'`)
		}
	}
	return all
}

// absolute returns the full path of a directory, without symbolic links if it exists.
func absolute(dir string) string {
	if whole, err := filepath.Abs(dir); err == nil {
		dir = whole
	}
	if real, err := filepath.EvalSymlinks(dir); err == nil {
		dir = real
	}
	return dir
}

// reader is a running daemon that reads a state of this host.
type reader struct{ socket, store, state string }

// answering returns the daemon that answers, or nil if its directories are not those of this host.
func answering(r *cli.Run) *reader {
	c, err := r.Connect(r)
	if err != nil {
		return nil // none answers, or none is configured
	}
	defer c.Close()
	if !sharesPaths(c.Socket()) {
		return nil
	}
	v, err := c.Version(r)
	if err != nil {
		return nil
	}
	d := reader{socket: c.Socket(), store: v.Store}
	if v.State != "" {
		d.state = filepath.Dir(v.State)
	}
	return &d
}

// sharesPaths reports whether the daemon at an admin socket names directories as this process does. A daemon of another
// host does not. A managed plugin has its own root directory; unread finds its state.
func sharesPaths(socket string) bool {
	return !strings.Contains(socket, "://") && !cli.OfPlugin(socket)
}

// otherReader refuses to restore if no directory was given and the daemons of this host use another one.
func otherReader(r *cli.Run, file, state string) error {
	if d := answering(r); d != nil && d.state != "" && absolute(d.state) != absolute(state) {
		return fmt.Errorf("the Berth that answers at %s has its state in %s, and would not read a state in %s: stop "+
			"that daemon, and then run `berth state restore %s --state %s`", d.socket, d.state, state, file, d.state)
	}
	readers := defaultReaders()
	if state != defaultState { // the environment selects the directory
		return nil
	}
	settings := readers.read()
	if other := settings["BERTH_STATE"]; other != "" && absolute(other) != absolute(state) {
		return fmt.Errorf("the service berth reads the state in %s (%s), and would not read a state in %s: run "+
			"`berth state restore %s --state %s`", other, readers.settings, state, file, other)
	}
	return nil
}

// warnings returns a warning if the daemon uses another state, so that nobody uses the restored one. It runs after the
// restore, which a daemon of that state would have prevented.
func (d *reader) warnings(state string) []string {
	switch {
	case d == nil:
		return nil
	case d.store == "mem" || d.state == "":
		return []string{fmt.Sprintf("the Berth that answers at %s keeps its state only in memory, so it does not read "+
			"the restored state in %s; to use the restored state, start a daemon with --state %s", d.socket, state,
			state)}
	}
	return []string{fmt.Sprintf("the Berth that answers at %s has its state in %s, so it does not read the restored "+
		"state in %s; to use the restored state, start a daemon with --state %s", d.socket, d.state, state, state)}
}
