//go:build engine

package engine

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"berth/test/lab"
)

var dailyFile = flag.String("daily", "",
	"append what TestDaily counts to this `file`, for the table of docs/engines.md")

// TestDaily counts how many containers keep their addresses through daily operations, with Berth and with Docker's own
// IPAM, while others are idle on the network. With Berth, on engines that send names, each keeps its own.
func TestDaily(t *testing.T) {
	t.Parallel()
	e := engineOf(t, 51)
	d := e.daemon(t, "berth", "--docker-host", e.URL())
	h := enter(t, e.Engine, d, 240)
	for i, ipam := range []string{d.Driver(), "default"} {
		n := h.name()
		h.docker("network", "create", "--ipam-driver", ipam, "--subnet", h.v4(fmt.Sprint(128*i, "/25")), n)
		for range idle() {
			h.container(n, "--restart", "always")
		}
		day := &daily{Harness: h, engine: e, daemon: d, network: n, berth: ipam != "default"}
		for range 8 {
			day.all = append(day.all, h.container(n, "--restart", "always"))
		}
		day.passes()
		h.docker(append([]string{"rm", "--force"}, day.all...)...)
	}
}

// daily is a network with eight containers, through a day.
type daily struct {
	*Harness
	engine  *PrivateEngine
	daemon  *Daemon
	network string
	berth   bool
	all     []string
}

func (d *daily) passes() {
	d.Helper()
	one, four := d.all[:1], d.all[:4]
	project := d.newProject(fiveFile(d.network), nil)
	project.command = composeCommands(d.T)[newer]
	project.run("up", "--detach")
	fives := strings.Fields(d.docker("ps", "--format", "{{.Names}}", "--filter",
		"label=com.docker.compose.project="+project.name))
	slices.Sort(fives)
	rows := []struct {
		name       string
		containers []string
		happen     func()
	}{
		{"one: `docker restart`", one, func() { d.docker("restart", "--time", "0", one[0]) }},
		{"one: stop, start", one, func() { d.docker("stop", "--time", "0", one[0]); d.docker("start", one[0]) }},
		{"one: remove, run", one, func() {
			d.docker("rm", "-f", one[0])
			d.docker(containerCommand(one[0], d.network, "--restart", "always")...)
		}},
		{"`docker stop a b c d; docker start a b c d`", four, func() { d.inOrder(four, 0, 1, 2, 3) }},
		{"the same, started as `d b a c`", four, func() { d.inOrder(four, 3, 1, 0, 2) }},
		{"four restarted at once", four, func() { d.together(four, "restart", "--time", "0") }},
		{"eight restarted at once", d.all, func() { d.together(d.all, "restart", "--time", "0") }},
		{"`docker compose up --force-recreate`, five services", fives, func() {
			project.run("up", "--detach", "--force-recreate", "--timeout", "0")
		}},
		{"Portainer updates four, one by one", four, func() { d.update(updaters[0], four) }},
		{"Watchtower updates four, one by one", four, func() { d.update(updaters[1], four) }},
		{"engine stopped and started, eight containers", d.all, func() { d.reboots(d.engine.StopEngine) }},
		{"engine killed and started, eight containers", d.all, func() { d.reboots(d.engine.Kill) }},
	}
	for _, row := range rows {
		d.counted(row.name, d.stays(sample(*keptRounds, 1, 10), d.network, row.containers, row.happen))
	}
	if d.berth { // Docker's own IPAM is never down
		d.counted("Berth down while four stop", d.stays(sample(*keptRounds, 1, 10), d.network, four,
			func() { d.absence(four) }))
	}
	project.run("down", "--timeout", "0")
}

// inOrder stops containers and starts them in another order.
func (d *daily) inOrder(all []string, order ...int) {
	d.Helper()
	d.docker(append([]string{"stop", "--time", "0"}, all...)...)
	for _, i := range order {
		d.docker("start", all[i])
	}
}

func (d *daily) update(by updater, all []string) {
	d.Helper()
	for _, c := range all {
		by.replace(d.Harness, c, d.network)
	}
}

// reboots ends the engine and starts it, with its containers.
func (d *daily) reboots(end func() error) {
	d.Helper()
	lab.Must(d, end(), d.engine.Start())
	for _, c := range d.all { // an engine of the 20.10 line leaves some stopped that a crash ended
		d.docker("start", c)
	}
}

// absence ends Berth while containers stop.
func (d *daily) absence(all []string) {
	d.Helper()
	lab.Must(d, d.daemon.Stop())
	d.together(all, "stop", "--time", "0")
	lab.Must(d, d.daemon.Revive())
	for _, c := range all {
		d.docker("start", c)
	}
}

// counted checks a count, and appends it to -daily: engine, row, driver and count, with tabs between.
func (d *daily) counted(row string, got tally) {
	d.Helper()
	driver := "default"
	if d.berth {
		driver = "berth"
		if names.there() && got.missed() > 0 {
			d.Errorf("%s: %+v", row, got)
		}
	}
	line := fmt.Sprintf("%s\t%s\t%s\t%d of %d\n", engineVersion, row, driver, got.kept, got.of)
	d.Log(line)
	if *dailyFile == "" {
		return
	}
	file, err := os.OpenFile(*dailyFile, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	lab.Must(d, err)
	_, err = file.WriteString(line)
	lab.Must(d, err, file.Close())
}
