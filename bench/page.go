package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"strings"
	"time"

	"berth/internal/ipam"

	api "github.com/docker/go-plugins-helpers/ipam"
)

// What the page shows while its views are timed: half of the leases in one large subnet, the others in small ones.
const (
	shownLeases = 10_000
	shownSmall  = 25 // networks of a /24, with 200 leases each
	shownEach   = 200
	shownRounds = 21
)

// The bounds of each view.
const (
	shownFirst = 30 * time.Millisecond
	shownSize  = 100_000
)

// measurePage times the views of the page.
func measurePage(e env) ([]row, error) {
	s, err := e.serve(e.dir)
	if err != nil {
		return nil, err
	}
	defer s.stop()
	if err := populatePage(s); err != nil {
		return nil, err
	}
	b := newBrowser(s.admin)
	views, err := viewsOf(b)
	if err != nil {
		return nil, err
	}
	var rows []row
	for _, v := range views {
		var first []time.Duration
		var size int64
		for range shownRounds {
			took, n, _, err := b.get(v.target)
			if err != nil {
				return nil, err
			}
			first, size = append(first, took), n
		}
		one := median(first)
		rows = append(rows, row{fmt.Sprintf("the page at %d leases, %s: first byte; size as it is sent", shownLeases,
			v.name),
			"30 ms; 100 kB", fmt.Sprintf("%.1f ms; %.1f kB", one.Seconds()*1000, float64(size)/1000),
			verdict(one <= shownFirst && size <= shownSize)})
	}
	return rows, nil
}

// populatePage takes the addresses.
func populatePage(s *served) error {
	c := newSocketClient(s.plugin, 1)
	n := 0
	fill := func(id string, leases int) error {
		for range leases {
			n++
			mac := ipam.MAC{2, 0, 0, byte(n >> 16), byte(n >> 8), byte(n)}
			if err := c.call("RequestAddress", api.RequestAddressRequest{PoolID: id,
				Options: map[string]string{"com.docker.network.endpoint.macaddress": mac.String(),
					"com.docker.network.endpoint.name": fmt.Sprintf("shop-web-%d", n)}}, nil); err != nil {
				return err
			}
		}
		return nil
	}
	for i := range shownSmall {
		id, err := c.pool(fmt.Sprintf("10.80.%d.0/24", i), nil)
		if err == nil {
			err = fill(id, shownEach)
		}
		if err != nil {
			return err
		}
	}
	large, err := c.pool("10.64.0.0/16", nil)
	if err != nil {
		return err
	}
	return fill(large, shownLeases-shownSmall*shownEach)
}

// browser asks for views over the admin socket, compressed as a browser has them.
type browser struct{ http.Client }

func newBrowser(admin string) *browser {
	return &browser{http.Client{Transport: &http.Transport{DisableCompression: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", admin)
		}}}}
}

// get asks for a view, and returns when its first byte came, and how many came.
func (b *browser) get(target string) (first time.Duration, size int64, body string, err error) {
	begun := time.Now()
	ctx := httptrace.WithClientTrace(context.Background(), &httptrace.ClientTrace{
		GotFirstResponseByte: func() { first = time.Since(begun) }})
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://berth"+target, nil)
	if err != nil {
		return 0, 0, "", err
	}
	if !strings.Contains(target, "format=json") {
		req.Header.Set("Accept-Encoding", "gzip")
	}
	res, err := b.Do(req)
	if err != nil {
		return 0, 0, "", err
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if res.StatusCode != http.StatusOK {
		return 0, 0, "", fmt.Errorf("%s is answered with %s: %s", target, res.Status, text)
	}
	return first, int64(len(text)), string(text), err
}

// view is one that is timed.
type view struct{ name, target string }

// viewsOf lists the views, by what the page itself says there is.
func viewsOf(b *browser) ([]view, error) {
	ids := struct {
		Networks []struct {
			ID string `json:"network_id"`
		}
	}{}
	if err := b.read("/?format=json", &ids); err != nil {
		return nil, err
	}
	all := []view{{"networks", "/"}}
	for _, n := range ids.Networks {
		var subnets struct {
			Subnets []struct {
				ID   string `json:"subnet_id"`
				CIDR string `json:"subnet"`
			}
		}
		target := "/network/" + n.ID
		if err := b.read(target+"?format=json", &subnets); err != nil {
			return nil, err
		}
		sub := subnets.Subnets[0]
		switch sub.CIDR {
		case "10.64.0.0/16":
			all = append(all, view{"a network", target}, view{"a subnet of a /16", "/subnet/" + sub.ID},
				view{"a /24 of it", "/subnet/" + sub.ID + "?part=10.64.7.0/24"})
		case "10.80.7.0/24":
			all = append(all, view{"a subnet of a /24", "/subnet/" + sub.ID})
		}
	}
	return append(all, view{"an address with its history", "/address/10.64.7.7"},
		view{"who had it a second ago", "/address/10.64.7.7?at=1s"}, view{"a search by name", "/find?q=shop-web-77"},
		view{"a search that finds nothing", "/find?q=nobody"}, view{"a search by MAC", "/find?q=02:00:00:00:1e:61"},
		view{"findings", "/findings"}, view{"hosts", "/hosts"}, view{"elastic addresses", "/elastic"},
		view{"events", "/events"}, view{"the style", "/style.css"}), nil
}

func (b *browser) read(target string, to any) error {
	_, _, text, err := b.get(target)
	if err != nil {
		return err
	}
	return json.Unmarshal([]byte(text), to)
}
