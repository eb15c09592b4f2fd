package live

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"berth/internal/ipam"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// past is a fake of the records that has only events.
type past struct {
	mu     sync.Mutex
	events []ipam.Event
	looks  int
	most   int // events read at a time
	err    error
}

func (p *past) add(events ...ipam.Event) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, e := range events {
		e.ID = uint64(len(p.events) + 1)
		p.events = append(p.events, e)
	}
}

func (p *past) LastEvent(context.Context) (m ipam.EventMark, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	m.Own.After = uint64(len(p.events))
	return m, p.err
}

func (p *past) EventsBehind(_ context.Context, after ipam.EventMark, n int, _ func(*ipam.Event) bool) (
	page ipam.EventPage, err error,
) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.looks++
	if after.Host != ([4]byte{}) {
		return page, ipam.ErrInvalid
	}
	left := p.events[after.Own.After:]
	page.More = len(left) > n
	page.Events = slices.Clone(left[:min(n, len(left))])
	p.most = max(p.most, len(page.Events))
	page.Next.Own.After = after.Own.After + uint64(len(page.Events))
	return page, p.err
}

// site is a Hub over a past, with a clock that the test moves, and the server that serves the Hub.
type site struct {
	t     *testing.T
	past  *past
	hub   *Hub
	ticks chan time.Time
	ended chan struct{}
	now   time.Time
	web   *httptest.Server
}

func open(t *testing.T) *site {
	t.Helper()
	s := &site{t: t, past: &past{}, ticks: make(chan time.Time), ended: make(chan struct{}), now: time.Unix(1_800_000_000, 0)}
	s.hub = New(s.past)
	s.hub.ticker = func(time.Duration) (<-chan time.Time, func()) { return s.ticks, func() {} }
	s.web = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var after *ipam.EventMark
		if text := r.URL.Query().Get("after"); text != "" {
			after = new(ipam.EventMark)
			if err := after.UnmarshalText([]byte(text)); err != nil {
				t.Error(err)
			}
		}
		if err := s.hub.Watch(r.Context(), s.ended, w, after, r.URL.Query().Get("network")); err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
		}
	}))
	t.Cleanup(s.web.Close)
	return s
}

// pass advances the clock. When it returns, the Hub has looked and has notified its watchers.
func (s *site) pass(d time.Duration) {
	s.t.Helper()
	for end := s.now.Add(d); s.now.Before(end); {
		s.now = s.now.Add(s.hub.pace)
		s.ticks <- s.now
	}
	s.ticks <- time.Time{} // a time long ago: all earlier ticks have been processed
}

// sent waits until every notified watcher is being sent its message.
func (s *site) sent() {
	s.t.Helper()
	waits := func() (n int) {
		s.hub.mu.Lock()
		defer s.hub.mu.Unlock()
		for w := range s.hub.watchers {
			n += len(w.tell)
		}
		return n
	}
	for end := time.Now().Add(time.Minute); waits() > 0; runtime.Gosched() {
		if time.Now().After(end) {
			s.t.Fatal("somebody is told, and is not sent it")
		}
	}
}

// browser is a watcher.
type browser struct {
	res   *http.Response
	lines *bufio.Reader
	end   context.CancelFunc
}

func (s *site) watch(query string) *browser {
	s.t.Helper()
	ctx, cancel := context.WithCancel(s.t.Context())
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.web.URL+"/?"+query, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	res, err := s.web.Client().Do(req)
	if err != nil {
		s.t.Fatal(err)
	}
	b := &browser{res, bufio.NewReader(res.Body), func() { cancel(); res.Body.Close() }}
	s.t.Cleanup(b.end)
	if res.StatusCode == http.StatusOK {
		if line := b.line(s.t); line != "retry: 5000" {
			s.t.Fatalf("it begins with %q", line)
		}
		b.line(s.t)
	}
	return b
}

func (b *browser) line(t *testing.T) string {
	t.Helper()
	line, err := b.lines.ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSuffix(line, "\n")
}

// told reads the next message, and returns its mark.
func (b *browser) told(t *testing.T) string {
	t.Helper()
	id, found := strings.CutPrefix(b.line(t), "id: ")
	if rest := []string{b.line(t), b.line(t), b.line(t)}; !found ||
		!slices.Equal(rest, []string{"event: changed", "data: again", ""}) {
		t.Fatalf("it is told %q", rest)
	}
	return id
}

// stale is the number of watchers that have something to hear.
func (s *site) stale() (n int) {
	s.hub.mu.Lock()
	defer s.hub.mu.Unlock()
	for w := range s.hub.watchers {
		if w.stale || len(w.tell) > 0 {
			n++
		}
	}
	return n
}

func taken(network string) ipam.Event { return ipam.Event{Verb: ipam.LeaseTaken, Network: network} }

// TestTells: each watcher is notified of changes in what its view shows.
func TestTells(t *testing.T) {
	s := open(t)
	all, one, other := s.watch(""), s.watch("network=one"), s.watch("network=other")
	s.past.add(taken("one"))
	s.pass(2 * time.Second)
	all.told(t)
	one.told(t)
	s.past.add(ipam.Event{Verb: ipam.NetworkModified, Network: "one"}) // a new name or tags can change other views
	s.pass(2 * time.Second)
	all.told(t)
	one.told(t)
	mark := other.told(t) // and nothing before
	s.pass(5 * time.Second)
	if n := s.stale(); n > 0 {
		t.Errorf("%d are to be told, and nothing has happened", n)
	}
	s.past.add(taken("other"))
	again := s.watch("network=other&after=" + mark)
	s.pass(2 * time.Second)
	again.told(t)
	fresh := s.watch("network=one&after=" + mark)
	s.past.add(taken("one"))
	s.pass(2 * time.Second)
	fresh.told(t)
}

// TestTellsWhatWasMissed: a new watcher hears what has happened since its view was drawn, and only that.
func TestTellsWhatWasMissed(t *testing.T) {
	s := open(t)
	mark, err := s.past.LastEvent(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	text, err := mark.MarshalText()
	if err != nil {
		t.Fatal(err)
	}
	s.past.add(taken("one"))
	one, other := s.watch("network=one&after="+string(text)), s.watch("network=other&after="+string(text))
	s.pass(2 * time.Second)
	one.told(t)
	s.past.add(taken("other"))
	s.pass(2 * time.Second)
	other.told(t)
	if one.lines.Buffered() > 0 || s.stale() > 0 {
		t.Error("told twice")
	}
}

// TestPace: with a thousand changes at a time, twenty browsers are notified in turn, no more often than the pace
// allows. For all of them together the Hub reads one page of events each second.
func TestPace(t *testing.T) {
	s := open(t)
	const watchers, seconds = 20, 30
	var mu sync.Mutex
	var heard [watchers]int
	var readers sync.WaitGroup
	for i := range watchers {
		b := s.watch("")
		readers.Go(func() {
			for {
				line, err := b.lines.ReadString('\n')
				if err != nil {
					return
				}
				if line == "event: changed\n" {
					mu.Lock()
					heard[i]++
					mu.Unlock()
				}
			}
		})
		t.Cleanup(readers.Wait)
		t.Cleanup(b.end)
	}
	for range seconds {
		for range 1000 {
			s.past.add(taken("one"))
		}
		for range time.Second / s.hub.pace {
			s.pass(s.hub.pace)
			s.sent()
		}
	}
	s.web.CloseClientConnections()
	readers.Wait()
	most := int(seconds*time.Second/s.hub.pace) / watchers
	for i, n := range heard {
		if n < most-1 || n > most+1 {
			t.Errorf("browser %d was told %d times in %d s; in turn it is %d", i, n, seconds, most)
		}
	}
	if s.past.most > page || s.past.looks > seconds+1 {
		t.Errorf("%d looks, of up to %d events", s.past.looks, s.past.most)
	}
}

// TestCost: views that are slow to draw are drawn less often. They take a hundredth of the time, up to a longest
// wait.
func TestCost(t *testing.T) {
	for took, want := range map[time.Duration]int{0: 40, 5 * time.Millisecond: 20, 20 * time.Millisecond: 5,
		time.Minute: 1} {
		s := open(t)
		for range 100 {
			s.hub.Drew(took)
		}
		for range 40 {
			s.hub.watchers[&watcher{tell: make(chan ipam.EventMark, 1), stale: true}] = true
		}
		for range 40 {
			s.now = s.now.Add(s.hub.pace)
			s.hub.tellOne(s.now)
		}
		told := 0
		for w := range s.hub.watchers {
			told += len(w.tell)
		}
		if told < want || told > want+1 {
			t.Errorf("views of %s: %d were told in 10 s, not %d", took, told, want)
		}
	}
}

// TestWatchersAreBounded: one watcher too many is refused. When one leaves there is room again.
func TestWatchersAreBounded(t *testing.T) {
	s := open(t)
	var all []*browser
	for range maxWatchers {
		all = append(all, s.watch(""))
	}
	if b := s.watch(""); b.res.StatusCode != http.StatusServiceUnavailable {
		t.Fatalf("one more is answered with %s", b.res.Status)
	}
	all[0].end()
	s.await(func() bool { return len(s.hub.watchers) < maxWatchers }) // the server notices when the connection ends
	if b := s.watch(""); b.res.StatusCode != http.StatusOK {
		t.Errorf("after one has gone: %s", b.res.Status)
	}
}

// TestNobodyWatches: without watchers nothing runs. A later watcher is notified like the first.
func TestNobodyWatches(t *testing.T) {
	s := open(t)
	for range 3 {
		b := s.watch("")
		s.past.add(taken("one"))
		s.pass(2 * time.Second)
		b.told(t)
		b.end()
		s.await(func() bool { return s.hub.end == nil })
		s.past.add(taken("one"))
	}
}

// TestEnds: when the server ends, every watcher's stream ends.
func TestEnds(t *testing.T) {
	s := open(t)
	all := []*browser{s.watch(""), s.watch("network=one")}
	close(s.ended)
	for _, b := range all {
		if rest, err := io.ReadAll(b.lines); err != nil || len(rest) > 0 {
			t.Errorf("it ends with %q, %v", rest, err)
		}
	}
	s.await(func() bool { return s.hub.end == nil && len(s.hub.watchers) == 0 })
}

// TestStoreAway: the Hub continues when the store answers again.
func TestStoreAway(t *testing.T) {
	s := open(t)
	b := s.watch("")
	s.past.mu.Lock()
	s.past.err = fmt.Errorf("away")
	s.past.mu.Unlock()
	s.past.add(taken("one"))
	s.pass(3 * time.Second)
	if n := s.stale(); n > 0 {
		t.Fatal("it was told of what nobody knows")
	}
	if late := s.watch(""); late.res.StatusCode != http.StatusServiceUnavailable {
		t.Errorf("who comes is answered with %s", late.res.Status)
	}
	s.past.mu.Lock()
	s.past.err = nil
	s.past.mu.Unlock()
	s.pass(2 * time.Second)
	b.told(t)
}

// await waits until a condition of the Hub is true.
func (s *site) await(is func() bool) {
	s.t.Helper()
	for {
		s.hub.mu.Lock()
		so := is()
		s.hub.mu.Unlock()
		if so {
			return
		}
		time.Sleep(time.Millisecond)
	}
}
