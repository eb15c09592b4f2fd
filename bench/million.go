package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"net/http"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"time"

	"go.etcd.io/bbolt"

	"berth/internal/ipam"

	api "github.com/docker/go-plugins-helpers/ipam"
)

// The states that are compared: leases with a MAC and a name each, as engines from 29 on send them, and as many events.
const (
	manyLeases = 1_000_000
	someLeases = 100_000
)

// alone has a daemon speak with no engine: what such a state would be compared with is not to be had.
var alone = []string{"--host", "bench", "--docker-host", "none"}

// measureMillion times the daemon over a state of a million leases.
func measureMillion(e env) ([]row, error) {
	many, some := filepath.Join(e.memory, "many"), filepath.Join(e.memory, "some")
	pool, err := fillLeases(filepath.Join(many, "state"), manyLeases)
	if err != nil {
		return nil, err
	}
	onDisk := filepath.Join(e.dir, "state")
	if err := os.CopyFS(onDisk, os.DirFS(filepath.Join(many, "state"))); err != nil {
		return nil, err
	}
	rows, err := startRows(e, onDisk)
	if err != nil {
		return nil, err
	}
	somePool, err := fillLeases(filepath.Join(some, "state"), someLeases)
	if err != nil {
		return nil, err
	}
	large, err := e.serve(many, alone...)
	if err != nil {
		return nil, err
	}
	defer large.stop()
	list, err := listRow(e, large)
	if err != nil {
		return nil, err
	}
	small, err := e.serve(some, alone...)
	if err != nil {
		return nil, err
	}
	defer small.stop()
	rows = append(rows, list)
	for _, callers := range []int{1, 16} {
		r, err := takesRow(e, newTaker(large, pool, callers), newTaker(small, somePool, callers))
		if err != nil {
			return nil, err
		}
		rows = append(rows, r)
	}
	return rows, nil
}

// fillLeases makes a state of so many leases, and returns the pool that they are of. Nothing of it is synced.
func fillLeases(state string, leases int) (pool ipam.ID, err error) {
	ctx := context.Background()
	s, closeStore, err := openService(ctx, state, true)
	if err != nil {
		return pool, err
	}
	defer func() { err = errors.Join(err, closeStore()) }()
	grant, err := s.RequestPool(ctx,
		ipam.PoolRequest{Space: ipam.LocalSpace, CIDR: netip.MustParsePrefix("10.0.0.0/11")})
	if err != nil {
		return pool, err
	}
	const callers = 64
	mac, errs := make(macs, callers), make([]error, callers)
	var wg sync.WaitGroup
	for i := range callers {
		wg.Go(func() {
			for n := i; n < leases && errs[i] == nil; n += callers {
				_, errs[i] = s.RequestAddress(ctx, ipam.AddressRequest{Pool: grant.ID, MAC: mac.next(i),
					Name: fmt.Sprintf("shop%d-web-%d", i, n)})
			}
		})
	}
	wg.Wait()
	return grant.ID, errors.Join(errs...)
}

// startRows starts the daemon some times, beside a bare reading of the same file.
func startRows(e env, state string) ([]row, error) {
	var ready, used, bare []time.Duration
	var resident []float64
	for range rounds {
		read, err := bareRead(filepath.Join(state, "berth.db"))
		if err != nil {
			return nil, err
		}
		s, err := startOnce(e, state, alone...)
		if err != nil {
			return nil, err
		}
		bare, ready, used = append(bare, read), append(ready, s.ready), append(used, s.used)
		resident = append(resident, s.resident)
	}
	after, rss := median(ready), median(resident)
	return []row{
		{"start: ready with 1,000,000 leases on disk, file checked", "2 s",
			fmt.Sprintf("%.2f s (processor time %.2f s; bbolt reads and sums all records in %.2f s)", after.Seconds(),
				median(used).Seconds(), median(bare).Seconds()), verdict(after <= 2*time.Second)},
		{"start: resident with 1,000,000 leases", "300 MiB", fmt.Sprintf("%.0f MiB", rss), verdict(rss <= 300)},
	}, nil
}

// bareRead times how long bbolt takes to open a file and read all that is in it, with a checksum over each record.
func bareRead(path string) (time.Duration, error) {
	start := time.Now()
	db, err := bbolt.Open(path, 0o600, &bbolt.Options{ReadOnly: true})
	if err != nil {
		return 0, err
	}
	defer db.Close()
	sum, table := uint32(0), crc32.MakeTable(crc32.Castagnoli)
	err = db.View(func(tx *bbolt.Tx) error {
		return tx.ForEach(func(_ []byte, b *bbolt.Bucket) error {
			return b.ForEach(func(k, v []byte) error {
				sum ^= crc32.Update(crc32.Checksum(k, table), table, v)
				return nil
			})
		})
	})
	return time.Since(start), err
}

// listRow times `berth lease ls -q`, and the same answer read by nobody.
func listRow(e env, s *served) (row, error) {
	c := newSocketClient(s.admin, 1)
	defer c.CloseIdleConnections()
	var all, used, asked []time.Duration
	for range rounds {
		start := time.Now()
		res, err := c.Get("http://berth/v1/leases?brief=true")
		if err != nil {
			return row{}, err
		}
		_, err = io.Copy(io.Discard, res.Body)
		if err = errors.Join(err, res.Body.Close()); err != nil || res.StatusCode != http.StatusOK {
			return row{}, fmt.Errorf("the list of leases: %s: %w", res.Status, err)
		}
		asked = append(asked, time.Since(start))
		cmd := exec.Command(e.berth, "lease", "ls", "-q", "--admin-socket", s.admin)
		cmd.Stderr = os.Stderr
		start = time.Now()
		out, err := cmd.Output()
		if err != nil {
			return row{}, fmt.Errorf("berth lease ls -q: %w", err)
		}
		all, used = append(all, time.Since(start)), append(used, cmd.ProcessState.UserTime()+cmd.ProcessState.SystemTime())
		if lines := bytes.Count(out, []byte("\n")); lines != manyLeases {
			return row{}, fmt.Errorf("berth lease ls -q shows %d leases of %d", lines, manyLeases)
		}
	}
	took := median(all)
	return row{"`berth lease ls -q` over 1,000,000 leases, from exec to exit", "3 s",
		fmt.Sprintf("%.2f s (of which %.2f s the command's own processor time; the answer alone %.2f s)", took.Seconds(),
			median(used).Seconds(), median(asked).Seconds()), verdict(took <= 3*time.Second)}, nil
}

// takesRow compares how many addresses two daemons give in a second. The rounds are short: the smaller state is to stay
// one.
func takesRow(e env, large, small *taker) (row, error) {
	var ratios []float64
	for range 3 * rounds {
		a, err := large.round(e.round / 5)
		if err != nil {
			return row{}, err
		}
		b, err := small.round(e.round / 5)
		if err != nil {
			return row{}, err
		}
		ratios = append(ratios, a/b)
	}
	ratio := median(ratios)
	return row{fmt.Sprintf("RequestAddress over the socket with 1,000,000 leases in the state, callers: %d, against "+
		"100,000: in memory", len(large.mac)), "0.80x",
		fmt.Sprintf("%.2fx (%.1fk/s of %.1fk/s; processor time of each %.2fx of %.0f µs)", ratio,
			median(large.rates)/1000, median(small.rates)/1000, large.each()/small.each(), 1e6*small.each()),
		verdict(ratio >= 0.80)}, nil
}

// taker takes addresses of a daemon.
type taker struct {
	daemon *served
	client *socketClient
	pool   string
	mac    macs // of each caller

	rates []float64
	taken float64
	used  time.Duration // of the processor, by the daemon
}

func newTaker(daemon *served, pool ipam.ID, callers int) *taker {
	t := &taker{daemon: daemon, client: newSocketClient(daemon.plugin, callers), pool: pool.String(),
		mac: make(macs, callers)}
	for i := range t.mac {
		t.mac[i] = uint32(callers) << 24 // apart from those of the state, and of another number of callers
	}
	return t
}

// round takes addresses for a while and returns how many a second.
func (t *taker) round(length time.Duration) (float64, error) {
	before, err := processorTime(t.daemon.cmd.Process.Pid)
	if err != nil {
		return 0, err
	}
	begun := time.Now()
	rate, err := load(len(t.mac), length, func(caller int) error {
		mac := t.mac.next(caller)
		return t.client.call("RequestAddress", api.RequestAddressRequest{PoolID: t.pool, Options: map[string]string{
			"com.docker.network.endpoint.macaddress": mac.String(),
			"com.docker.network.endpoint.name":       fmt.Sprintf("shop%d-api-%d", caller, t.mac[caller])}}, nil)
	})
	if err != nil {
		return 0, err
	}
	t.taken += rate * time.Since(begun).Seconds()
	after, err := processorTime(t.daemon.cmd.Process.Pid)
	t.rates, t.used = append(t.rates, rate), t.used+after-before
	return rate, err
}

// each is how many seconds of the processor the daemon needs for an address.
func (t *taker) each() float64 { return t.used.Seconds() / t.taken }
