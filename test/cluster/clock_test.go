package cluster

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sirupsen/logrus"

	"berth/driver"
	"berth/internal/ipam"
	"berth/internal/ipam/cluster"
	"berth/internal/ipam/service"
	"berth/store/etcd"
	"berth/store/mem"
	"berth/test/lab"
)

// clock is the machine's clock, off by the step.
type clock struct {
	off  atomic.Int64
	read atomic.Int64 // number of reads since the last step
}

func (c *clock) now() time.Time {
	c.read.Add(1)
	return time.Now().Add(time.Duration(c.off.Load()))
}

func (c *clock) step(off time.Duration) {
	c.off.Store(int64(off))
	c.read.Store(0)
}

// inProcess is the driver and the cluster part of a daemon, in this process, with an own clock.
type inProcess struct {
	clock   clock
	joined  *cluster.Service
	shared  *cluster.Shared
	handler http.Handler
}

func (d *inProcess) post(method string, body []byte) ([]byte, error) {
	w := httptest.NewRecorder()
	d.handler.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/IpamDriver."+method, bytes.NewReader(body)))
	return w.Body.Bytes(), nil
}

func openInProcess(t *testing.T, e *etcdServers, name string) *inProcess {
	t.Helper()
	st, err := etcd.Open(t.Context(), etcd.Config{Endpoints: strings.Split(e.endpoints(), ","),
		Bundle: cluster.Bundled()})
	lab.Must(t, err)
	t.Cleanup(func() {
		lab.Check(t, st.Close())
	})
	d := &inProcess{}
	own := mem.New()
	local, err := service.Open(t.Context(), service.Config{Store: own, Host: name, Now: d.clock.now})
	lab.Must(t, err)
	member := &ipam.Member{Host: ipam.NewID(), Session: ipam.NewID(), Mark: cluster.MarkOf(st.Cluster())}
	d.shared, err = cluster.OpenShared(t.Context(),
		cluster.SharedConfig{Own: own, Mark: member.Mark, Host: name, Now: d.clock.now,
			Reach: st.Reach, Warn: func(err error) { t.Error(err) },
			Open: func(ctx context.Context) (*service.Service, error) {
				return service.Open(ctx, service.Config{Store: st, Host: name, Now: d.clock.now, Member: member})
			}})
	lab.Must(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- d.shared.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		lab.Check(t, <-ended)
	})
	d.joined = cluster.NewService(local, d.shared)
	lab.AwaitOf(t, name+" takes part", d.joined.Partial)
	log := logrus.New()
	log.SetOutput(io.Discard)
	d.handler = driver.New(driver.Config{Service: d.joined, Log: logrus.NewEntry(log),
		Routes:      func() ([]ipam.HostRoute, error) { return nil, nil },
		NameServers: func() ([]netip.Prefix, error) { return nil, nil },
		Host:        func() ([]driver.Bridge, error) { return nil, nil }}).Handler()
	return d
}

// party is the host in a trial.
func (d *inProcess) party(name string) *party {
	return &party{name: name, to: d,
		leases: func(ctx context.Context) (all []ipam.LeaseInfo, err error) {
			for l, err := range d.joined.Leases(ctx, ipam.LeaseFilter{Space: space, Subnet: shared}) {
				if err != nil {
					return nil, err
				}
				all = append(all, l)
			}
			return all, nil
		},
		kept: func(context.Context) (kept, error) {
			st := d.shared.State()
			return kept{st.Waiting, st.Fresh}, st.Err
		},
		check: func() error {
			problems, err := d.joined.Check(context.Background())
			for _, p := range problems {
				err = errors.Join(err, fmt.Errorf("%v", p))
			}
			return err
		},
	}
}

// TestClockStepped: hosts whose clocks are hours apart, and step back and forth, give no address twice (LN-12).
// The tests inject the clock, so the hosts are in this process; etcd's members are not.
func TestClockStepped(t *testing.T) {
	e := startEtcd(t)
	var all []*inProcess
	tr := &trial{t: t, etcd: e}
	for n := range 3 {
		d := openInProcess(t, e, fmt.Sprintf("h%d", n))
		all = append(all, d)
		tr.parties = append(tr.parties, d.party(fmt.Sprintf("h%d", n)))
	}
	if _, err := all[0].joined.Edit(t.Context(), ipam.EditOptions{}, &ipam.CreateNetwork{Name: "lan", Space: space,
		Subnets: []ipam.SubnetSpec{{CIDR: shared, Name: "wire", Gateway: gateway}}},
		&ipam.AddPool{Network: "lan", Subnet: "wire", Name: "front"}); err != nil {
		t.Fatal(err)
	}
	steps := [][]time.Duration{{5 * time.Hour, -7 * time.Hour, 0}, {-30 * time.Hour, time.Hour, 2 * time.Minute},
		{-time.Hour, -time.Hour, 300 * time.Hour}}
	tr.run(fault{name: "clock stepped", strike: func(tr *trial) (proof func() error, heal func()) {
		var ahead netip.Addr // an address whose lease seems to begin in the future
		for i, off := range steps[tr.rounds] {
			all[i].clock.step(off)
		}
		proof = func() error {
			for i, d := range all {
				if d.clock.read.Load() == 0 {
					return fmt.Errorf("host %d has not looked at its clock", i)
				}
			}
			leases, err := tr.parties[0].leases(t.Context())
			for _, l := range leases {
				if l.Since.After(time.Now().Add(time.Minute)) {
					ahead = l.Address
				}
			}
			if err == nil && !ahead.IsValid() {
				err = errors.New("no lease is of a clock that is ahead")
			}
			return err
		}
		return proof, func() {
			for _, d := range all {
				d.clock.step(0)
			}
		}
	}}, 1)
}
