package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	api "github.com/docker/go-plugins-helpers/ipam"
)

// throwAways is how many containers come and go, one at a time.
const throwAways = 1_000_000

// measureThrowAways has a daemon give a million containers an address each, which they give back before the next one
// comes, and then compares it with one that has only begun.
func measureThrowAways(e env) ([]row, error) {
	dir, freshDir := filepath.Join(e.memory, "million"), filepath.Join(e.memory, "fresh")
	s, err := e.serve(dir, alone...)
	if err != nil {
		return nil, err
	}
	defer s.stop()
	million, err := newThrower(s)
	if err != nil {
		return nil, err
	}
	if err := million.throw(throwAways); err != nil {
		return nil, err
	}
	info, err := os.Stat(filepath.Join(dir, "state", "berth.db"))
	if err != nil {
		return nil, err
	}
	own, err := memoryOf(s.cmd.Process.Pid, "RssAnon")
	if err != nil {
		return nil, err
	}
	resident, err := residentOf(s.cmd.Process.Pid)
	if err != nil {
		return nil, err
	}
	begun, err := e.serve(freshDir, alone...)
	if err != nil {
		return nil, err
	}
	defer begun.stop()
	fresh, err := newThrower(begun)
	if err != nil {
		return nil, err
	}
	rate, err := throwRow(million, fresh)
	file, heap := float64(info.Size())/(1<<20), own*(1<<20)/1e6
	return []row{rate,
		{"1,000,000 throw-away containers: the state's file", "100 MiB", fmt.Sprintf("%.1f MiB", file), verdict(file <= 100)},
		{"1,000,000 throw-away containers: memory of the daemon's own", "60 MB", fmt.Sprintf("%.1f MB (resident, with "+
			"what is mapped of the file: %.0f MiB)", heap, resident), verdict(heap <= 60)},
	}, err
}

// throwRounds is how often two daemons are compared, after so many containers each time.
const (
	throwRounds = 15
	throwRound  = 2_000
)

// throwRow compares how many containers come and go at two daemons in a second.
func throwRow(million, fresh *thrower) (row, error) {
	var ratios []float64
	for range throwRounds {
		for _, t := range []*thrower{million, fresh} {
			if err := t.throw(throwRound); err != nil {
				return row{}, err
			}
		}
		ratios = append(ratios, million.last()/fresh.last())
	}
	after, before := median(million.rates[1:]), median(fresh.rates)
	ratio := median(ratios)
	return row{"1,000,000 throw-away containers, one at a time: the rate then, against a new daemon's: in memory", "0.90x",
		fmt.Sprintf("%.2fx (%.2fk/s of %.2fk/s; processor time of each %.2fx of %.0f µs)", ratio, after/1000, before/1000,
			median(million.costs[1:])/median(fresh.costs), median(fresh.costs)), verdict(ratio >= 0.90)}, nil
}

// thrower has containers come and go at a daemon, on one network.
type thrower struct {
	daemon *served
	client *socketClient
	pool   string
	mac    macs

	rates []float64 // of each time
	costs []float64 // of each time: processor time of the daemon for a container, in microseconds
}

func newThrower(daemon *served) (*thrower, error) {
	t := &thrower{daemon: daemon, client: newSocketClient(daemon.plugin, 1), mac: make(macs, 1)}
	var err error
	t.pool, err = t.client.pool("10.0.0.0/16", nil)
	return t, err
}

func (t *thrower) last() float64 { return t.rates[len(t.rates)-1] }

// throw has so many containers come and go, with a MAC and a name each, as engines from 29 on send them.
func (t *thrower) throw(n int) error {
	before, err := processorTime(t.daemon.cmd.Process.Pid)
	if err != nil {
		return err
	}
	begun := time.Now()
	for range n {
		mac := t.mac.next(0)
		var given api.RequestAddressResponse
		err := t.client.call("RequestAddress", api.RequestAddressRequest{PoolID: t.pool, Options: map[string]string{
			"com.docker.network.endpoint.macaddress": mac.String(),
			"com.docker.network.endpoint.name":       fmt.Sprintf("job-%d", t.mac[0])}}, &given)
		if err != nil {
			return err
		}
		addr, _, _ := strings.Cut(given.Address, "/")
		err = t.client.call("ReleaseAddress", api.ReleaseAddressRequest{PoolID: t.pool, Address: addr}, nil)
		if err != nil {
			return err
		}
	}
	took := time.Since(begun)
	after, err := processorTime(t.daemon.cmd.Process.Pid)
	t.rates = append(t.rates, float64(n)/took.Seconds())
	t.costs = append(t.costs, float64((after-before).Microseconds())/float64(n))
	return err
}
