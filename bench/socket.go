package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"time"

	"berth/driver"
	"berth/internal/ipam"
	"berth/internal/ipam/service"
	"berth/store/bolt"

	api "github.com/docker/go-plugins-helpers/ipam"
	"github.com/sirupsen/logrus"
)

// nothing is a driver that does nothing, to measure what the protocol costs by itself.
type nothing struct{}

func (nothing) GetCapabilities() (*api.CapabilitiesResponse, error) {
	return &api.CapabilitiesResponse{RequiresMACAddress: true}, nil
}
func (nothing) GetDefaultAddressSpaces() (*api.AddressSpacesResponse, error) {
	return &api.AddressSpacesResponse{}, nil
}
func (nothing) RequestPool(*api.RequestPoolRequest) (*api.RequestPoolResponse, error) {
	return &api.RequestPoolResponse{}, nil
}
func (nothing) ReleasePool(*api.ReleasePoolRequest) error { return nil }
func (nothing) RequestAddress(*api.RequestAddressRequest) (*api.RequestAddressResponse, error) {
	return &api.RequestAddressResponse{Address: "10.0.0.2/8"}, nil
}
func (nothing) ReleaseAddress(*api.ReleaseAddressRequest) error { return nil }

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

func socketRows(e env, dir medium) ([]row, error) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	pool, path, err := serveBerth(ctx, dir.path)
	if err != nil {
		return nil, err
	}
	idle := filepath.Join(dir.path, "nothing.sock")
	l, err := net.Listen("unix", idle)
	if err != nil {
		return nil, err
	}
	defer l.Close()
	go api.NewHandler(nothing{}).Serve(l)

	var rows []row
	for _, callers := range []int{16, 64} {
		mac := make(macs, callers)
		rate := func(path string) func() (float64, error) {
			c := newSocketClient(path, callers)
			return func() (float64, error) {
				return load(callers, e.round, func(caller int) error {
					m := mac.next(caller)
					m[1] |= byte(callers) // apart from those of the other number of callers
					return c.take(pool, m)
				})
			}
		}
		ours, theirs, ratio, err := alternate(rate(path), rate(idle))
		if err != nil {
			return nil, err
		}
		rows = append(rows,
			row{fmt.Sprintf("durable RequestAddress over the socket, %d callers, against a handler that does "+
				"nothing: %s", callers, dir.name),
				"0.40x", fmt.Sprintf("%.2fx (%.1fk/s of %.1fk/s)", ratio, ours/1000, theirs/1000),
				verdict(ratio >= 0.40)})
	}
	if !dir.disk {
		return rows, nil // one caller is compared with what the disk does
	}
	one, err := oneCaller(e, pool, path)
	return append(rows, one...), err
}

// serveBerth serves the driver in this process and returns a pool to take addresses from.
func serveBerth(ctx context.Context, dir string) (pool, path string, err error) {
	st, err := bolt.Open(ctx, bolt.Config{Path: filepath.Join(dir, "berth", "berth.db")})
	if err != nil {
		return "", "", err
	}
	s, err := service.Open(ctx, service.Config{Store: st, Host: "bench"})
	if err != nil {
		return "", "", err
	}
	log := logrus.New()
	log.SetLevel(logrus.WarnLevel)
	path = filepath.Join(dir, "berth.sock")
	l, err := net.Listen("unix", path)
	if err != nil {
		return "", "", err
	}
	go driver.New(driver.Config{Service: s, Log: logrus.NewEntry(log)}).Serve(ctx, l)
	var answer api.RequestPoolResponse
	err = newSocketClient(path, 1).call("RequestPool",
		api.RequestPoolRequest{AddressSpace: "local", Pool: "10.0.0.0/8"}, &answer)
	return answer.PoolID, path, err
}

// oneCaller compares one caller over the socket with a bare bbolt transaction of one key, and so does the least that a
// durable handler can be: one that makes just that transaction.
func oneCaller(e env, pool, path string) ([]row, error) {
	bare, closeBare, err := bareKeys(filepath.Join(e.dir, "bare.db"), 1, 1)
	if err != nil {
		return nil, err
	}
	defer closeBare()
	least, closeLeast, err := bareKeys(filepath.Join(e.dir, "least.db"), 1, 1)
	if err != nil {
		return nil, err
	}
	defer closeLeast()
	leastPath := filepath.Join(e.dir, "least.sock")
	l, err := net.Listen("unix", leastPath)
	if err != nil {
		return nil, err
	}
	defer l.Close()
	go api.NewHandler(onlyPuts{put: least}).Serve(l)

	mac := macs{uint32(time.Now().Unix())}
	over := func(path string) func() (float64, error) {
		c := newSocketClient(path, 1)
		return func() (float64, error) {
			return load(1, e.round, func(int) error { m := mac.next(0); m[1] = 0xff; return c.take(pool, m) })
		}
	}
	alone := func() (float64, error) { return load(1, e.round, func(int) error { return bare() }) }
	ours, theirs, ratio, err := alternate(over(path), alone)
	if err != nil {
		return nil, err
	}
	_, _, floor, err := alternate(over(leastPath), alone)
	return []row{{"durable RequestAddress over the socket, one caller, against a bare bbolt Update of one key", "0.70x",
		fmt.Sprintf("%.2fx (%.1fk/s of %.1fk/s); a handler that makes only that Update: %.2fx", ratio, ours/1000,
			theirs/1000, floor),
		verdict(ratio >= 0.70)}}, err
}

// onlyPuts is a driver that makes one bare transaction for each address.
type onlyPuts struct {
	nothing
	put func() error
}

func (o onlyPuts) RequestAddress(req *api.RequestAddressRequest) (*api.RequestAddressResponse, error) {
	if err := o.put(); err != nil {
		return nil, err
	}
	return o.nothing.RequestAddress(req)
}
