package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	api "github.com/docker/go-plugins-helpers/ipam"
	"github.com/insomniacslk/dhcp/dhcpv4"
	"github.com/insomniacslk/dhcp/dhcpv4/nclient4"
	"golang.org/x/sys/unix"

	"berth/internal/ipam"
)

// The LAN of the measurement: two namespaces with a wire between them, and how many containers each side starts.
const (
	dhcpHost   = "berth-bench-host"
	dhcpServer = "berth-bench-dhcp"
	dhcpSubnet = "10.99.0.0/16"
	dhcpStarts = 500
	dhcpTurn   = 25 // so many of one side, then of the other
	dhcpBound  = "p99 100 ms"
)

// measureDHCP times requests whose address a LAN's DHCP server chooses, beside a client that does nothing but ask the
// same server by the same wire.
func measureDHCP(e env) ([]row, error) {
	if os.Getuid() != 0 {
		return []row{{"RequestAddress of new containers on a LAN with a DHCP server", dhcpBound,
			"not measured: its namespaces take root", "–"}}, nil
	}
	var rows []row
	for _, s := range []struct {
		name    string
		command func(dir string) ([]string, error)
	}{{"dnsmasq", dnsmasqCommand}, {"Kea", keaCommand}} {
		dir := filepath.Join(e.dir, s.name)
		if err := os.Mkdir(dir, 0o700); err != nil {
			return nil, err
		}
		command, err := s.command(dir)
		if err != nil {
			return nil, err
		}
		r, err := e.dhcpRow(dir, s.name, command)
		if err != nil {
			log, _ := os.ReadFile(filepath.Join(dir, "log"))
			return nil, fmt.Errorf("%s: %w\n%s", s.name, err, log)
		}
		rows = append(rows, r)
	}
	return rows, nil
}

// dnsmasqCommand has it ask nobody whether an address is free: that takes it three seconds, whoever asks.
func dnsmasqCommand(dir string) ([]string, error) {
	return []string{"dnsmasq", "-k", "-C", "/dev/null", "-p", "0", "-i", "eth0", "--bind-dynamic", "-u", "root",
		"--pid-file=", "--log-facility=/dev/null", "--dhcp-authoritative", "--no-ping", "--dhcp-lease-max=5000",
		"--dhcp-leasefile=" + filepath.Join(dir, "leases"), "--dhcp-range=10.99.1.1,10.99.250.254,1h"}, nil
}

// keaCommand runs Debian's Kea where scripts/needs unpacks it, or one that is installed.
func keaCommand(dir string) ([]string, error) {
	program, err := filepath.Abs("build/tools/kea/usr/sbin/kea-dhcp4")
	if err != nil {
		return nil, err
	}
	if _, err := os.Stat(program); err != nil {
		if program, err = exec.LookPath("kea-dhcp4"); err != nil {
			return nil, err
		}
	}
	libraries, err := filepath.Glob(filepath.Join(filepath.Dir(program), "../lib/*-linux-gnu"))
	if err != nil {
		return nil, err
	}
	config, err := json.Marshal(map[string]any{"Dhcp4": map[string]any{
		"interfaces-config": map[string]any{"interfaces": []string{"eth0"}},
		"lease-database": map[string]any{"type": "memfile", "persist": true, "lfc-interval": 0,
			"name": filepath.Join(dir, "kea.csv")},
		"valid-lifetime": 3600,
		"authoritative":  true,
		"loggers": []any{map[string]any{"name": "kea-dhcp4", "severity": "ERROR",
			"output_options": []any{map[string]any{"output": "stderr"}}}},
		"subnet4": []any{map[string]any{"id": 1, "subnet": dhcpSubnet, "interface": "eth0",
			"option-data": []any{map[string]any{"name": "routers", "data": "10.99.0.1"}},
			"pools":       []any{map[string]any{"pool": "10.99.1.1 - 10.99.250.254"}}}},
	}})
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "kea.json"), config, 0o600)
	}
	return []string{"env", "KEA_LOCKFILE_DIR=" + dir, "KEA_PIDFILE_DIR=" + dir, "KEA_DHCP_DATA_DIR=" + dir,
		"LD_LIBRARY_PATH=" + strings.Join(libraries, ":"), program, "-c", filepath.Join(dir, "kea.json")}, err
}

// dhcpRow starts both sides in turn.
func (e env) dhcpRow(dir, name string, server []string) (row, error) {
	remove, err := layWire()
	if err != nil {
		return row{}, err
	}
	defer remove()
	var ended []func()
	defer func() {
		for _, end := range slices.Backward(ended) {
			end()
		}
	}()
	plugin, admin := filepath.Join(dir, "plugin.sock"), filepath.Join(dir, "admin.sock")
	for _, p := range []struct {
		namespace string
		command   []string
	}{
		{dhcpServer, server},
		{dhcpHost, []string{e.berth, "serve", "--state", filepath.Join(dir, "state"), "--plugin-socket", plugin,
			"--admin-socket", admin, "--docker-host", "none", "--log-level", "error"}},
		{dhcpHost, []string{e.berth, "edge", "--provider", "none", "--admin-socket", admin}},
	} {
		end, err := startIn(p.namespace, filepath.Join(dir, "log"), p.command)
		if err != nil {
			return row{}, err
		}
		ended = append(ended, end)
	}
	bare, closeBare, err := bareDHCP()
	if err != nil {
		return row{}, err
	}
	defer closeBare()
	ours, err := newDHCPCaller(plugin)
	if err != nil {
		return row{}, err
	}
	var tookOurs, tookBare []time.Duration
	for n := 0; n < dhcpStarts; n += dhcpTurn {
		for _, side := range []struct {
			took  *[]time.Duration
			start func(n int) (time.Duration, error)
		}{{&tookOurs, ours}, {&tookBare, bare}} {
			for i := range dhcpTurn {
				took, err := side.start(n + i)
				if err != nil {
					return row{}, err
				}
				*side.took = append(*side.took, took)
			}
		}
	}
	slices.Sort(tookOurs)
	return row{fmt.Sprintf("RequestAddress of %d new containers on a LAN with %s, from DISCOVER to the lease on disk: "+
		"p50, p99, longest", dhcpStarts, name), dhcpBound, fmt.Sprintf("%s; a client that only asks, by the same "+
		"wire: %s", lags(tookOurs), lags(tookBare)), verdict(tookOurs[dhcpStarts*99/100] <= 100*time.Millisecond)}, nil
}

// layWire makes the two namespaces, of which the machine's own sees nothing.
func layWire() (remove func(), err error) {
	remove = func() {
		for _, ns := range []string{dhcpHost, dhcpServer} {
			_ = exec.Command("ip", "netns", "del", ns).Run()
		}
	}
	remove()
	for line := range strings.Lines(fmt.Sprintf(`netns add %[1]s
		netns add %[2]s
		-n %[1]s link set lo up
		-n %[1]s link add eth0 type veth peer name eth0 netns %[2]s
		-n %[1]s link set eth0 up
		-n %[2]s link set eth0 up
		-n %[2]s addr add 10.99.0.1/16 dev eth0`, dhcpHost, dhcpServer)) {
		if text, err := exec.Command("ip", strings.Fields(line)...).CombinedOutput(); err != nil {
			remove()
			return nil, fmt.Errorf("ip %s: %w: %s", strings.TrimSpace(line), err, text)
		}
	}
	return remove, nil
}

// startIn starts a program in a namespace, which writes to a log.
func startIn(namespace, log string, command []string) (end func(), err error) {
	f, err := os.OpenFile(log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	cmd := exec.Command("nsenter", append([]string{"--net=/run/netns/" + namespace}, command...)...)
	cmd.Stderr = f
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	return func() {
		_ = cmd.Process.Signal(unix.SIGTERM)
		_ = cmd.Wait()
	}, nil
}

// newDHCPCaller makes a network of the LAN, once daemon, edge and server are there, and returns what starts a container
// on it that has never been before.
func newDHCPCaller(plugin string) (start func(n int) (time.Duration, error), err error) {
	c := newSocketClient(plugin, 1)
	var pool string
	for begun := time.Now(); ; time.Sleep(50 * time.Millisecond) {
		if pool, err = c.pool("", map[string]string{"dhcp": "eth0"}); err == nil {
			break
		}
		if time.Since(begun) > 30*time.Second {
			return nil, err
		}
	}
	return func(n int) (time.Duration, error) {
		begun := time.Now()
		var given api.RequestAddressResponse
		err := c.call("RequestAddress", api.RequestAddressRequest{PoolID: pool, Options: map[string]string{
			"com.docker.network.endpoint.macaddress": ipam.MAC{2, 0x42, 0, 0, byte(n >> 8), byte(n)}.String(),
			"com.docker.network.endpoint.name":       fmt.Sprintf("web-%d", n)}}, &given)
		return time.Since(begun), err
	}, nil
}

// bareDHCP is a client of its own on the host's end of the wire: DISCOVER, OFFER, REQUEST, ACK, and nothing else.
func bareDHCP() (start func(n int) (time.Duration, error), end func(), err error) {
	type opened struct {
		client *nclient4.Client
		err    error
	}
	done := make(chan opened)
	go func() {
		runtime.LockOSThread() // and never unlocked: the thread ends with the goroutine
		done <- func() (o opened) {
			f, err := os.Open("/run/netns/" + dhcpHost)
			if err != nil {
				return opened{err: err}
			}
			defer f.Close()
			if err := unix.Setns(int(f.Fd()), unix.CLONE_NEWNET); err != nil {
				return opened{err: err}
			}
			o.client, o.err = nclient4.New("eth0")
			return o
		}()
	}()
	o := <-done
	if o.err != nil {
		return nil, nil, o.err
	}
	return func(n int) (time.Duration, error) {
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		defer cancel()
		begun := time.Now()
		lease, err := o.client.Request(ctx, dhcpv4.WithBroadcast(true),
			dhcpv4.WithOption(dhcpv4.OptClientIdentifier(fmt.Appendf(nil, "\x00bare-%d", n))))
		if err == nil && lease.ACK.YourIPAddr.Equal(net.IPv4zero) {
			err = errors.New("an ACK of nothing")
		}
		return time.Since(begun), err
	}, func() { _ = o.client.Close() }, nil
}
