package follow

import (
	"context"
	"errors"
	"io"
	"iter"
	"net/netip"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"berth/internal/edge"
	"berth/internal/ipam"

	"github.com/sirupsen/logrus"
)

// harness is a daemon and a provider that only record.
type harness struct {
	mu      sync.Mutex
	lines   []ipam.EdgeNews // sent on each connection
	more    chan ipam.EdgeNews
	breaks  chan error
	reports []ipam.EdgeReport
	set     []edge.State
	fails   error // returned by Set
	renewed []edge.BootTime
	late    error // returned by Renew
	calls   int   // connections
}

func newHarness(lines ...ipam.EdgeNews) *harness {
	return &harness{lines: lines, more: make(chan ipam.EdgeNews), breaks: make(chan error)}
}

func (h *harness) news(ctx context.Context) iter.Seq2[ipam.EdgeNews, error] {
	return func(yield func(ipam.EdgeNews, error) bool) {
		h.mu.Lock()
		h.calls++
		lines := slices.Clone(h.lines)
		h.mu.Unlock()
		for _, news := range lines {
			if !yield(news, nil) {
				return
			}
		}
		for {
			select {
			case <-ctx.Done():
				return
			case err := <-h.breaks:
				yield(ipam.EdgeNews{}, err)
				return
			case news := <-h.more:
				if !yield(news, nil) {
					return
				}
			}
		}
	}
}

func (h *harness) report(_ context.Context, r ipam.EdgeReport) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.reports = append(h.reports, r)
	return nil
}

// Set implements edge.Provider.
func (h *harness) Set(_ context.Context, s edge.State) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.set = append(h.set, s)
	return h.fails
}

// Renew implements edge.Provider.
func (h *harness) Renew(_ context.Context, until edge.BootTime) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.renewed = append(h.renewed, until)
	return h.late
}

// Enabled implements edge.Provider.
func (h *harness) Enabled(context.Context) (bool, error) { return true, nil }

// Remove implements edge.Provider.
func (h *harness) Remove(context.Context) error { return nil }

func (h *harness) follower() *Follower {
	log := logrus.New()
	log.SetOutput(io.Discard)
	return New(Config{Provider: h, News: h.news, Report: h.report, Log: logrus.NewEntry(log)})
}

func (h *harness) last() (s edge.State, r ipam.EdgeReport, sets, reports int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.set) > 0 {
		s = h.set[len(h.set)-1]
	}
	if len(h.reports) > 0 {
		r = h.reports[len(h.reports)-1]
	}
	return s, r, len(h.set), len(h.reports)
}

var (
	first  = mapping("203.0.113.10", "10.20.0.9", 7)
	second = mapping("203.0.113.11", "10.20.0.10", 8)
)

func mapping(elastic, guest string, id uint64) ipam.EdgeMapping {
	return ipam.EdgeMapping{Elastic: netip.MustParseAddr(elastic), Guest: netip.MustParseAddr(guest),
		Subnet: netip.MustParsePrefix("10.20.0.0/24"), Association: id}
}

func ranges(t *testing.T) []ipam.EdgeRange {
	t.Helper()
	var r ipam.Range
	if err := r.UnmarshalText([]byte("203.0.113.10+4")); err != nil {
		t.Fatal(err)
	}
	return []ipam.EdgeRange{{Range: r, Announce: "eth0", OnCut: ipam.CutWithdraw}}
}

// whole is the news of everything.
func whole(t *testing.T, all ...ipam.EdgeMapping) ipam.EdgeNews {
	return ipam.EdgeNews{Whole: true, Ranges: ranges(t), Ranged: true, Set: all}
}

// runs runs a follower until the test ends. It waits until the follower has done all that it can.
func (h *harness) runs(t *testing.T) *harness {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- h.follower().Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	synctest.Wait()
	return h
}

// hears sends the follower a line, and waits until it has done all that it can.
func (h *harness) hears(news ipam.EdgeNews) {
	h.more <- news
	synctest.Wait()
}

// failing sets the errors of Set and Renew.
func (h *harness) failing(fails, late error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.fails, h.late = fails, late
}

// TestFollows: the follower sets and reports the whole state, then each change, and reports only what has changed.
func TestFollows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHarness(whole(t, first)).runs(t)
		s, r, _, _ := h.last()
		if len(s.Ranges) != 1 || s.Ranges[0].OnCut != edge.Keep || len(s.Mappings) != 1 || s.Check() != nil {
			t.Errorf("it sets %+v (%v)", s, s.Check())
		}
		if !r.Whole || len(r.Applied) != 1 || r.Applied[0].Association != 7 || r.Applied[0].Error != "" {
			t.Errorf("it reports %+v", r)
		}
		h.hears(ipam.EdgeNews{Set: []ipam.EdgeMapping{second}, Removed: []netip.Addr{first.Elastic}})
		s, r, _, _ = h.last()
		if len(s.Mappings) != 1 || s.Mappings[0].Elastic != second.Elastic || len(s.Ranges) != 1 {
			t.Errorf("it sets %+v", s)
		}
		if r.Whole || len(r.Applied) != 1 || r.Applied[0].Association != 8 || !slices.Equal(r.Withdrawn,
			[]ipam.EdgeWithdrawn{{Address: first.Elastic}}) {
			t.Errorf("it reports %+v", r)
		}
	})
}

// TestGoesOn: if the news break off, the follower connects and reports the whole state again. Mappings stay meanwhile.
func TestGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHarness(whole(t, first)).runs(t)
		h.breaks <- errors.New("the daemon ends")
		synctest.Wait()
		if s, _, sets, _ := h.last(); sets != 1 || len(s.Mappings) != 1 {
			t.Errorf("while the daemon is away it sets %+v", s)
		}
		time.Sleep(connectAgain)
		synctest.Wait()
		if _, r, _, reports := h.last(); h.calls != 2 || reports != 2 || !r.Whole || len(r.Applied) != 1 {
			t.Errorf("after %d connections it reports %+v", h.calls, r)
		}
	})
}

// TestFails: an address that cannot be mapped is reported with the reason and tried again. If the whole state
// failed, nothing is reported as withdrawn.
func TestFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHarness(whole(t, first, second))
		h.fails = errors.Join(&edge.Failure{Address: first.Elastic, Err: errors.New("no device")})
		h.runs(t)
		_, r, sets, _ := h.last()
		if len(r.Applied) != 2 || r.Applied[0].Error != "no device" || r.Applied[1].Error != "" || sets != 1 {
			t.Errorf("it reports %+v", r)
		}
		h.failing(nil, nil)
		time.Sleep(setAgain)
		synctest.Wait()
		if _, r, sets, _ = h.last(); sets != 2 || len(r.Applied) != 1 || r.Applied[0].Error != "" {
			t.Errorf("tried again it reports %+v", r)
		}
		h.failing(errors.New("no nftables"), nil)
		h.hears(ipam.EdgeNews{Removed: []netip.Addr{second.Elastic}})
		if _, r, _, _ = h.last(); len(r.Withdrawn) != 0 || len(r.Applied) != 1 || r.Applied[0].Error != "no nftables" {
			t.Errorf("where nothing could be set it reports %+v", r)
		}
	})
}

// TestOnce: Once sets and reports the state once, and returns an error if it could not be mapped.
func TestOnce(t *testing.T) {
	h := newHarness(whole(t, first))
	if s, err := h.follower().Wanted(t.Context()); err != nil || len(s.Mappings) != 1 {
		t.Errorf("what is wanted is %+v, %v", s, err)
	}
	if _, _, sets, reports := h.last(); sets+reports != 0 {
		t.Errorf("a look sets %d times and reports %d times", sets, reports)
	}
	if err := h.follower().Once(t.Context()); err != nil {
		t.Error(err)
	}
	if _, r, sets, _ := h.last(); sets != 1 || !r.Whole {
		t.Errorf("it reports %+v", r)
	}
	h.fails = errors.New("no nftables")
	if err := h.follower().Once(t.Context()); err == nil {
		t.Error("nothing could be set, and it says nothing of that")
	}
}

// TestRenews: if another host may take over, mappings answer until the range's TTL after the last renewal of the
// session. Each renewal extends this. After a late renewal the follower asks for the whole state again. It never
// renews a state that is not in place.
func TestRenews(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fenced := ranges(t)
		fenced[0].TTL = ipam.Duration(5 * time.Second)
		h := newHarness(ipam.EdgeNews{Whole: true, Ranges: fenced, Ranged: true, Set: []ipam.EdgeMapping{first},
			Session: "s1", Sent: 100 * time.Second}).runs(t)
		s, r, _, _ := h.last()
		if s.Ranges[0].OnCut != edge.Withdraw || s.Until != edge.BootTime(105*time.Second) || r.Session != "s1" {
			t.Errorf("it sets %+v and reports %+v", s, r)
		}
		h.hears(ipam.EdgeNews{Session: "s1", Sent: 101 * time.Second})
		if _, _, sets, reports := h.last(); len(h.renewed) != 1 || h.renewed[0] != edge.BootTime(106*time.Second) ||
			sets != 1 || reports != 2 {
			t.Errorf("it renews %v, with %d sets and %d reports", h.renewed, sets, reports)
		}
		h.failing(errors.New("no nftables"), nil)
		h.more <- ipam.EdgeNews{Session: "s1", Sent: 102 * time.Second, Removed: []netip.Addr{first.Elastic}}
		h.hears(ipam.EdgeNews{Session: "s1", Sent: 103 * time.Second})
		if _, r, sets, _ := h.last(); len(h.renewed) != 1 || sets != 3 || len(r.Withdrawn) != 0 {
			t.Errorf("a state that is not in place was renewed (%v) or not set again (%d), and reported as %+v",
				h.renewed, sets, r)
		}
		h.failing(nil, edge.ErrExpired)
		h.more <- ipam.EdgeNews{Session: "s1", Sent: 104 * time.Second}
		h.more <- ipam.EdgeNews{Session: "s1", Sent: 105 * time.Second}
		time.Sleep(connectAgain)
		synctest.Wait()
		if h.calls != 2 {
			t.Errorf("a renewal came too late, and the whole was asked for %d times", h.calls)
		}
	})
}
