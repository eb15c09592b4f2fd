package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"berth/internal/ipam"

	api "github.com/docker/go-plugins-helpers/ipam"
)

// socketClient calls a plugin on a unix socket over connections that stay open, as the engine does.
type socketClient struct{ http.Client }

func newSocketClient(path string, callers int) *socketClient {
	return &socketClient{http.Client{Transport: &http.Transport{
		MaxIdleConnsPerHost: callers,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", path)
		},
	}}}
}

func (c *socketClient) call(method string, msg, answer any) error {
	body, err := json.Marshal(msg)
	if err != nil {
		return err
	}
	res, err := c.Post("http://berth/IpamDriver."+method, "application/json", bytes.NewReader(body))
	if err != nil {
		return err
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		return err
	}
	if res.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", method, text)
	}
	if answer == nil {
		return nil
	}
	return json.Unmarshal(text, answer)
}

// pool asks for a pool of a subnet, or of what the options say, and answers its id.
func (c *socketClient) pool(subnet string, options map[string]string) (string, error) {
	var answer api.RequestPoolResponse
	err := c.call("RequestPool",
		api.RequestPoolRequest{AddressSpace: "local", Pool: subnet, Options: options}, &answer)
	return answer.PoolID, err
}

func (c *socketClient) take(pool string, mac ipam.MAC) error {
	return c.call("RequestAddress", api.RequestAddressRequest{PoolID: pool,
		Options: map[string]string{"com.docker.network.endpoint.macaddress": mac.String()}}, nil)
}

func measureSocket(e env) ([]row, error) {
	var rows []row
	for _, dir := range e.media() {
		more, err := socketRows(e, dir)
		if err != nil {
			return nil, err
		}
		rows = append(rows, more...)
	}
	return rows, nil
}

// socketRows measures the daemon as it is run, against handlers that are processes of their own as well.
func socketRows(e env, dir medium) ([]row, error) {
	berth, err := e.serve(dir.path, alone...)
	if err != nil {
		return nil, err
	}
	defer berth.stop()
	pool, err := newSocketClient(berth.plugin, 1).pool("10.0.0.0/8", nil)
	if err != nil {
		return nil, err
	}
	idle, err := startHandler(filepath.Join(dir.path, "nothing.sock"), "")
	if err != nil {
		return nil, err
	}
	defer idle.stop()

	var rows []row
	for _, callers := range []int{16, 64} {
		r, err := severalCallers(e, dir, pool, berth, idle, callers)
		if err != nil {
			return nil, err
		}
		rows = append(rows, r)
	}
	if !dir.disk {
		return rows, nil // one caller is compared with what the disk does
	}
	one, err := oneCaller(e, pool, berth.plugin)
	return append(rows, one...), err
}

// severalCallers compares callers over the socket with as many who call a handler that does nothing.
func severalCallers(e env, dir medium, pool string, daemon, idle *served, callers int) (row, error) {
	mac := make(macs, callers)
	side := func(s *served) *costed {
		c := newSocketClient(s.plugin, callers)
		return &costed{server: s.cmd.Process.Pid, rate: func() (float64, error) {
			return load(callers, e.round, func(caller int) error {
				m := mac.next(caller)
				m[1] |= byte(callers) // apart from those of the other number of callers
				return c.take(pool, m)
			})
		}}
	}
	berth, none := side(daemon), side(idle)
	ours, theirs, ratio, err := alternate(berth.run, none.run)
	if err != nil {
		return row{}, err
	}
	bound := socketBound(callers, dir.disk)
	return row{fmt.Sprintf("durable RequestAddress over the socket, %d callers, against a handler that does nothing: %s",
		callers, dir.name),
		fmt.Sprintf("%.2fx", bound),
		fmt.Sprintf("%.2fx (%.1fk/s of %.1fk/s; processor time %.0f µs of %.0f µs)", ratio, ours/1000, theirs/1000,
			median(berth.costs), median(none.costs)),
		verdict(ratio >= bound)}, nil
}

// socketBound is what of the rate of a handler that does nothing is to be reached.
func socketBound(callers int, disk bool) float64 {
	switch {
	case callers == 64 && disk:
		return 0.50
	case callers == 64:
		return 0.65
	}
	return 0.40
}

// costed is a rate, and the processor time that each request took in each round, here and in the server, in
// microseconds.
type costed struct {
	server int
	rate   func() (float64, error)
	costs  []float64
}

func (c *costed) run() (float64, error) {
	before, err := c.used()
	if err != nil {
		return 0, err
	}
	begun := time.Now()
	rate, err := c.rate()
	if err != nil {
		return 0, err
	}
	requests := rate * time.Since(begun).Seconds()
	after, err := c.used()
	c.costs = append(c.costs, float64((after-before).Microseconds())/requests)
	return rate, err
}

func (c *costed) used() (time.Duration, error) {
	here, err := processorTime(os.Getpid())
	if err != nil {
		return 0, err
	}
	there, err := processorTime(c.server)
	return here + there, err
}

// oneCaller compares one caller over the socket with a bare bbolt transaction of one key, and with the least that a
// durable handler can be: one that makes just that transaction.
func oneCaller(e env, pool, path string) ([]row, error) {
	bare, closeBare, err := bareKeys(filepath.Join(e.dir, "bare.db"), 1, 1)
	if err != nil {
		return nil, err
	}
	defer closeBare()
	least, err := startHandler(filepath.Join(e.dir, "least.sock"), filepath.Join(e.dir, "least.db"))
	if err != nil {
		return nil, err
	}
	defer least.stop()

	mac := macs{uint32(time.Now().Unix())}
	over := func(path string) func() (float64, error) {
		c := newSocketClient(path, 1)
		return func() (float64, error) {
			return load(1, e.round, func(int) error { m := mac.next(0); m[1] = 0xff; return c.take(pool, m) })
		}
	}
	berth := over(path)
	alone := func() (float64, error) { return load(1, e.round, func(int) error { return bare() }) }
	var rows []row
	for _, c := range []struct {
		against string
		rate    func() (float64, error)
		bound   float64
	}{
		{"a bare bbolt Update of one key", alone, 0.70},
		{"a handler that makes only that Update", over(least.plugin), 0.90},
	} {
		ours, theirs, ratio, err := alternate(berth, c.rate)
		if err != nil {
			return nil, err
		}
		rows = append(rows, row{"durable RequestAddress over the socket, one caller, against " + c.against,
			fmt.Sprintf("%.2fx", c.bound),
			fmt.Sprintf("%.2fx (%.1fk/s of %.1fk/s)", ratio, ours/1000, theirs/1000), verdict(ratio >= c.bound)})
	}
	return rows, nil
}
