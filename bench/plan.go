package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"berth/driver"
	"berth/internal/admin"
	"berth/internal/admin/client"
	"berth/internal/ipam"

	"github.com/sirupsen/logrus"
)

// measurePlan times the administration: what an admin looks at, and takes through the API.
func measurePlan(e env) ([]row, error) {
	rows, err := measureShow(e)
	if err != nil {
		return nil, err
	}
	for _, dir := range e.media() {
		for _, callers := range []int{1, 16} {
			r, err := takeRow(e, dir, callers)
			if err != nil {
				return nil, err
			}
			rows = append(rows, r)
		}
	}
	return rows, nil
}

// measureShow times `berth network show` of a /16 of which each address is taken: the request alone, and the command as
// a whole.
func measureShow(e env) ([]row, error) {
	state := filepath.Join(e.dir, "show")
	if err := fillNetwork(state); err != nil {
		return nil, err
	}
	socket := filepath.Join(e.dir, "show.sock")
	daemon := exec.Command(e.berth, "serve", "--state", state, "--plugin-socket",
		filepath.Join(e.dir, "show-plugin.sock"),
		"--admin-socket", socket, "--log-level", "warning")
	daemon.Stderr = os.Stderr
	if err := daemon.Start(); err != nil {
		return nil, err
	}
	defer daemon.Wait()
	defer daemon.Process.Signal(syscall.SIGTERM)
	c := client.New(socket)
	defer c.Close()
	var asked, shown []time.Duration
	for deadline := time.Now().Add(30 * time.Second); len(asked) < 21; {
		start := time.Now()
		n, err := c.Network(context.Background(), "full")
		switch {
		case err != nil && time.Now().After(deadline):
			return nil, err
		case err != nil:
			time.Sleep(10 * time.Millisecond)
			continue
		case len(n.Map) != 65_536:
			return nil, fmt.Errorf("the map has %d addresses", len(n.Map))
		}
		asked = append(asked, time.Since(start))
		start = time.Now()
		if text, err := exec.Command(e.berth, "--admin-socket", socket, "network", "show",
			"full").CombinedOutput(); err != nil {
			return nil, fmt.Errorf("berth network show: %w\n%s", err, text)
		}
		shown = append(shown, time.Since(start))
	}
	command := median(shown)
	return []row{{"`berth network show` of a full /16, from exec to exit", "50 ms",
		fmt.Sprintf("%.0f ms, of which the request %.1f ms", milliseconds(command), milliseconds(median(asked))),
		verdict(command < 50*time.Millisecond)}}, nil
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// fillNetwork plans a /16 and has each address of it taken.
func fillNetwork(state string) error {
	ctx := context.Background()
	s, closeStore, err := openService(ctx, state, true)
	if err != nil {
		return err
	}
	defer closeStore()
	cidr := netip.MustParsePrefix("10.1.0.0/16")
	if _, err := s.Edit(ctx, ipam.EditOptions{},
		&ipam.CreateNetwork{Name: "full", Subnets: []ipam.SubnetSpec{{CIDR: cidr, Pool: true}}}); err != nil {
		return err
	}
	grant, err := s.RequestPool(ctx, ipam.PoolRequest{Network: "full"})
	if err != nil {
		return err
	}
	mac := make(macs, 1)
	for {
		_, err := s.RequestAddress(ctx, ipam.AddressRequest{Pool: grant.ID, MAC: mac.next(0)})
		if errors.Is(err, ipam.ErrExhausted) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// takeRow compares addresses taken through the admin API with those that the driver gives, on one daemon's state.
func takeRow(e env, dir medium, callers int) (row, error) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	work := filepath.Join(dir.path, fmt.Sprintf("take-%d", callers))
	if err := os.Mkdir(work, 0o700); err != nil {
		return row{}, err
	}
	s, closeStore, err := openService(ctx, filepath.Join(work, "state"), false)
	if err != nil {
		return row{}, err
	}
	defer closeStore()
	made, err := s.Edit(ctx, ipam.EditOptions{}, &ipam.CreateNetwork{Name: "lan",
		Subnets: []ipam.SubnetSpec{{CIDR: netip.MustParsePrefix("10.0.0.0/8"), Pool: true}}})
	if err != nil {
		return row{}, err
	}
	lan, err := s.Network(ctx, made.Results[0].Network.String())
	if err != nil {
		return row{}, err
	}
	log := logrus.New()
	log.SetLevel(logrus.WarnLevel)
	entry := logrus.NewEntry(log)
	plugin, control := filepath.Join(work, "plugin.sock"), filepath.Join(work, "admin.sock")
	if err := serveHere(ctx, plugin, driver.New(driver.Config{Service: s, Log: entry}).Serve); err != nil {
		return row{}, err
	}
	if err := serveHere(ctx, control,
		admin.New(admin.Config{Service: s, Log: entry, GID: -1, TempDir: work}).Serve); err != nil {
		return row{}, err
	}
	mac := make(macs, callers)
	d, a := newSocketClient(plugin, callers), newSocketClient(control, callers)
	pool, err := d.pool("10.0.0.0/8", map[string]string{"network": "lan"})
	if err != nil {
		return row{}, err
	}
	path := "http://berth/v1/subnets/" + lan.Subnets[0].ID.String() + "/available-ips"
	ours, theirs, ratio, err := alternate(
		func() (float64, error) {
			return load(callers, e.round, func(caller int) error { return a.takeNext(path, mac.next(caller)) })
		},
		func() (float64, error) {
			return load(callers, e.round, func(caller int) error { return d.take(pool, mac.next(caller)) })
		})
	noun := "callers"
	if callers == 1 {
		noun = "caller"
	}
	return row{fmt.Sprintf("take through the admin API, %d %s, against RequestAddress of the driver: %s", callers, noun,
		dir.name),
		"0.80x", fmt.Sprintf("%.2fx (%.1fk/s of %.1fk/s)", ratio, ours/1000, theirs/1000), verdict(ratio >= 0.80)}, err
}

// serveHere has serve answer on a socket until ctx ends.
func serveHere(ctx context.Context, path string, serve func(context.Context, net.Listener) error) error {
	l, err := net.Listen("unix", path)
	if err != nil {
		return err
	}
	go serve(ctx, l)
	return nil
}

// takeNext takes the next address of a subnet for an owner.
func (c *socketClient) takeNext(path string, owner ipam.MAC) error {
	res, err := c.Post(path, "application/json", bytes.NewReader([]byte(`{"owner":"`+owner.String()+`"}`)))
	if err != nil {
		return err
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		return err
	}
	if res.StatusCode != http.StatusOK && res.StatusCode != http.StatusCreated {
		return fmt.Errorf("available-ips: %s", text)
	}
	return nil
}
