package webhook

import (
	"crypto/x509"
	"encoding/json"
	"errors"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"berth/internal/ipam"
	"berth/internal/shorten"
)

// Each receiver gets each event once, in order, as the admin API shows it. It gets nothing from before the first
// start.
func TestEvents(t *testing.T) {
	one, two := newInbox(t, httptest.NewServer), newInbox(t, httptest.NewServer)
	h := newHarness(t, ipam.Retention{}, one.URL+"/a?b=c", two.URL)
	h.take(3)
	h.begin()
	owners := h.take(20)
	for _, in := range []*inbox{one, two} {
		all := in.receives(t, owners)
		seen := map[string]bool{}
		for _, m := range all {
			id := m.header.Get("webhook-id")
			if seen[id] || !strings.HasPrefix(id, "evt_") || strings.Contains(id, ".") {
				t.Errorf("the id %q", id)
			}
			seen[id] = true
		}
		m := all[0]
		if m.Host != "alpha" || !m.Timestamp.Equal(m.event.Time) || m.event.Verb != ipam.LeaseTaken ||
			m.event.Address.String() != "10.1.0.4" || m.event.Network == "" && m.event.Space == "" {
			t.Errorf("it is %s", m.body)
		}
		if got := m.header.Get("User-Agent"); got != "berth 1.2" {
			t.Errorf("the user agent is %q", got)
		}
		if got := m.header.Get("webhook-signature"); got != "" {
			t.Errorf("without a secret it is signed: %s", got)
		}
	}
	comes(t, "the counts", func() bool {
		all := h.hooks.States()
		return all[0].Delivered == 20 && all[0].Failures == 0 && all[0].Waiting.IsZero() && all[1].Delivered == 20
	})
	if got := h.hooks.States()[0].Receiver; got != one.URL { // without path and query
		t.Errorf("the receiver is shown as %q", got)
	}
}

// A receiver that refuses gets the event again, after longer waits each time, until it takes it. Later events wait
// for that; other receivers do not.
func TestRetries(t *testing.T) {
	one, two := newInbox(t, httptest.NewServer), newInbox(t, httptest.NewServer)
	h := newHarness(t, ipam.Retention{}, one.URL, two.URL)
	one.answers(refuses(http.StatusInternalServerError))
	h.begin()
	owners := h.take(3)
	two.receives(t, owners)
	first := one.receives(t, owners[:1])[0]
	var again sent
	for failed := range 4 {
		wait := firstWait << failed / 2 // the least, without jitter
		comes(t, "it has failed", func() bool { return h.hooks.States()[0].Failures == uint64(failed+1) })
		h.awaits(wait)
		h.clock.advance(wait - time.Millisecond)
		one.none(t)
		if failed == 3 {
			one.answers(nil)
		}
		h.clock.advance(time.Millisecond)
		again = one.receives(t, owners[:1])[0]
	}
	if a, b := first.header.Get("webhook-id"), again.header.Get("webhook-id"); a != b {
		t.Errorf("the same event has the ids %s and %s", a, b)
	}
	if a, b := first.header.Get("webhook-timestamp"), again.header.Get("webhook-timestamp"); a == b {
		t.Errorf("two attempts have one timestamp, %s", a)
	}
	one.receives(t, owners[1:])
	if s := h.hooks.States()[0]; s.Failures != 4 {
		t.Errorf("it has failed %d times", s.Failures)
	}
}

// TestLongAnswers: Berth does not repeat a receiver's answer at full length.
func TestLongAnswers(t *testing.T) {
	for name, line := range map[string]string{
		"a reason":  "HTTP/1.1 500 " + strings.Repeat("x", 10_000),
		"zeros":     "HTTP/1.1 500 " + strings.Repeat("\x00", 10_000),
		"no answer": strings.Repeat("\x00", 10_000),
		"a header":  "HTTP/1.1 500 No\r\n" + strings.Repeat("no header ", 1000),
	} {
		t.Run(name, func(t *testing.T) {
			in := newInbox(t, httptest.NewServer)
			in.answers(func(w http.ResponseWriter, _ *http.Request, _ *sent) {
				conn, _, err := http.NewResponseController(w).Hijack()
				if err != nil {
					t.Error(err)
					return
				}
				defer conn.Close()
				_, _ = io.WriteString(conn, line+"\r\n\r\n")
			})
			h := newHarness(t, ipam.Retention{}, in.URL)
			h.begin()
			h.take(1)
			comes(t, "it has failed", func() bool { return h.hooks.States()[0].Failures > 0 })
			if why := h.hooks.States()[0].Error; utf8.RuneCountInString(why) > shorten.Most+50 || why == "" {
				t.Errorf("%d characters are shown: %.300s", len(why), why)
			}
		})
	}
}

// awaits waits until a receiver begins a wait of d.
func (h *harness) awaits(d time.Duration) {
	h.t.Helper()
	late := time.After(30 * time.Second)
	for {
		select {
		case got := <-h.clock.asked:
			if got == d {
				return
			}
		case <-late:
			h.t.Fatalf("nobody waits for %s", d)
		}
	}
}

// The waits double up to a bound, with jitter from half of each.
func TestBackoff(t *testing.T) {
	jitter := 0.0
	r := &receiver{cfg: &Config{Clock: Clock{Jitter: func() float64 { return jitter }}}}
	for _, c := range []struct {
		before int
		jitter float64
		want   time.Duration
	}{
		{0, 0, 500 * time.Millisecond}, {0, 0.5, 750 * time.Millisecond}, {1, 0, time.Second}, {5, 0, 16 * time.Second},
		{8, 0, 128 * time.Second}, {9, 0, longestWait / 2}, {9, 0.999, longestWait/2 + 149850*time.Millisecond},
		{1000, 0, longestWait / 2}, {1 << 40, 0, longestWait / 2},
	} {
		jitter = c.jitter
		if got := r.backoff(c.before); got != c.want {
			t.Errorf("after %d and one failures with %v: %s, want %s", c.before, c.jitter, got, c.want)
		}
	}
}

// A receiver that says when to come again gets nothing before.
func TestRetryAfter(t *testing.T) {
	in := newInbox(t, httptest.NewServer)
	h := newHarness(t, ipam.Retention{}, in.URL)
	in.answers(func(w http.ResponseWriter, _ *http.Request, _ *sent) {
		w.Header().Set("Retry-After", "77")
		w.WriteHeader(http.StatusServiceUnavailable)
	})
	h.begin()
	h.take(1)
	h.awaits(77 * time.Second)
	in.answers(nil)
	in.next(t)
	h.clock.advance(77 * time.Second)
	in.next(t)
}

// Events that a receiver has not taken when the daemon ends come after the restart. So do the events in between.
func TestRestart(t *testing.T) {
	in := newInbox(t, httptest.NewServer)
	h := newHarness(t, ipam.Retention{}, in.URL)
	h.begin()
	in.receives(t, h.take(5))
	comes(t, "all is taken", func() bool { return h.hooks.States()[0].Delivered == 5 })
	in.answers(refuses(http.StatusBadGateway))
	owners := h.take(1)
	in.receives(t, owners)
	h.stop()
	owners = append(owners, h.take(4)...)
	in.answers(nil)
	h.begin()
	in.receives(t, owners)
	h.stop()
	in.none(t)
}

// After a crash, the events since the place was last written are sent again, with the same ids and in order. No
// event is missing.
func TestKilled(t *testing.T) {
	in := newInbox(t, httptest.NewServer)
	h := newHarness(t, ipam.Retention{}, in.URL)
	h.begin()
	h.clock.advance(2 * time.Second)
	in.receives(t, h.take(1))
	path := placePath(h.dir, in.URL)
	var place []byte
	comes(t, "the place is behind the first", func() bool {
		var err error
		place, err = os.ReadFile(path)
		must(t, err)
		return strings.Contains(string(place), `"last"`)
	})
	owners := h.take(10)
	before := in.receives(t, owners)
	h.stop()
	must(t, os.WriteFile(path, place, 0o600)) // nothing was written after that
	h.begin()
	after := in.receives(t, owners)
	for i := range before {
		if a, b := before[i].header.Get("webhook-id"), after[i].header.Get("webhook-id"); a != b {
			t.Errorf("%s came again as %s", a, b)
		}
	}
	in.receives(t, h.take(2))
}

// While events are sent, the place is written about once a second, not for each event.
func TestPlaceIsWritten(t *testing.T) {
	in := newInbox(t, httptest.NewServer)
	h := newHarness(t, ipam.Retention{}, in.URL)
	h.begin()
	path := placePath(h.dir, in.URL)
	modified := func() os.FileInfo {
		info, err := os.Stat(path)
		must(t, err)
		return info
	}
	begun := modified()
	for range 50 {
		in.receives(t, h.take(1))
	}
	if !os.SameFile(begun, modified()) {
		t.Error("it was written within a second")
	}
	comes(t, "it is written when a second is over", func() bool {
		h.clock.advance(saveEvery)
		return !os.SameFile(begun, modified())
	})
	if mode := modified().Mode().Perm(); mode != 0o600 {
		t.Errorf("the file has the mode %o", mode)
	}
	files, err := filepath.Glob(filepath.Join(h.dir, "*"))
	must(t, err)
	if !slices.Equal(files, []string{path}) {
		t.Errorf("there are %q", files)
	}
}

// Before the next event, the receiver gets one gap for the unsent events that the retention has removed. Removed
// events that had been sent make no gap.
func TestGap(t *testing.T) {
	for name, keep := range map[string]ipam.Retention{"count": {Count: 10}, "size": {Bytes: 1500}} {
		t.Run(name, func(t *testing.T) { testGap(t, keep) })
	}
}

func testGap(t *testing.T, keep ipam.Retention) {
	in := newInbox(t, httptest.NewServer)
	h := newHarness(t, keep, in.URL)
	h.begin()
	in.receives(t, h.take(2))
	comes(t, "all is taken", func() bool { return h.hooks.States()[0].Delivered == 2 })
	h.stop()
	owners := h.take(30)
	must(t, h.service.Trim(t.Context()))
	h.begin()
	m := in.next(t)
	if m.Type != typeGap || m.gap.Reason != reasonTrimmed || m.Host != "alpha" {
		t.Fatalf("%s came, want a gap", m.body)
	}
	events, err := h.service.Events(t.Context(), ipam.EventFilter{})
	must(t, err)
	if len(events) < 5 || len(events) > 15 {
		t.Fatalf("%d events are kept", len(events))
	}
	all := in.receives(t, owners[len(owners)-len(events):])
	if !m.gap.Since.Before(all[0].event.Time) || !m.gap.Until.Equal(all[0].event.Time) {
		t.Errorf("the gap is from %s to %s", m.gap.Since, m.gap.Until)
	}
	for range 5 { // all events are removed after they were sent
		in.receives(t, h.take(15))
		must(t, h.service.Trim(t.Context()))
	}
	in.none(t)
}

// A daemon that has no events for longer than the retention keeps them reports no gap. One that was down that long
// does.
func TestGapByAge(t *testing.T) {
	in := newInbox(t, httptest.NewServer)
	h := newHarness(t, ipam.Retention{Age: 24 * time.Hour}, in.URL)
	h.begin()
	in.receives(t, h.take(1))
	for range 50 {
		h.clock.advance(time.Hour)
		asked := h.clock.Now()
		h.turns(lookAgain, "it has looked again", func() bool {
			place, err := os.ReadFile(placePath(h.dir, in.URL))
			must(t, err)
			return writtenSince(t, place, asked)
		})
		must(t, h.service.Trim(t.Context()))
	}
	in.receives(t, h.take(2))
	comes(t, "all is taken", func() bool { return h.hooks.States()[0].Delivered == 3 })
	h.stop()
	h.take(1)
	h.clock.advance(23 * time.Hour)
	must(t, h.service.Trim(t.Context()))
	h.clock.advance(2 * time.Hour)
	owners := h.take(1)
	must(t, h.service.Trim(t.Context()))
	h.begin()
	if m := in.next(t); m.Type != typeGap {
		t.Errorf("%s came, want a gap", m.body)
	}
	in.receives(t, owners)
}

// Another store, a store that was put back, and an unreadable place are reported as gaps. The daemon starts with
// each.
func TestGapOfState(t *testing.T) {
	moved := func(move func(*place)) func(*harness, string) {
		return func(_ *harness, path string) {
			text, err := os.ReadFile(path)
			must(t, err)
			at := &place{}
			must(t, json.Unmarshal(text, at))
			move(at)
			text, err = json.Marshal(at)
			must(t, err)
			must(t, os.WriteFile(path, text, 0o600))
		}
	}
	for name, c := range map[string]struct {
		spoil func(*harness, string)
		want  string
	}{
		"another store": {func(h *harness, _ string) { h.cfg.StoreID = "other" }, reasonStore},
		"no JSON": {func(h *harness, path string) { must(h.t, os.WriteFile(path, []byte("{"), 0o600)) },
			reasonPlace},
		"a later version": {func(h *harness, path string) {
			must(h.t, os.WriteFile(path, []byte(`{"version":2}`), 0o600))
		}, reasonPlace},
		"another host": {moved(func(at *place) { at.Mark.Host = ipam.HostMark("beta") }), reasonStore},
		"put back":     {moved(func(at *place) { at.Mark.Own.After += uint64(time.Hour / time.Microsecond) }), reasonStore},
	} {
		t.Run(name, func(t *testing.T) {
			in := newInbox(t, httptest.NewServer)
			h := newHarness(t, ipam.Retention{}, in.URL)
			h.begin()
			in.receives(t, h.take(2))
			h.stop()
			c.spoil(h, placePath(h.dir, in.URL))
			h.open()
			h.open() // a crash does not lose the gap
			owners := h.take(2)
			h.run()
			if m := in.next(t); m.Type != typeGap || m.gap.Reason != c.want {
				t.Errorf("%s came, want the gap: %s", m.body, c.want)
			}
			in.receives(t, owners)
			comes(t, "all is taken", func() bool { return h.hooks.States()[0].Delivered == 3 })
			h.stop()
			h.begin()
			in.receives(t, h.take(1)) // there is no second notice
		})
	}
}

// A receiver that hangs is given up after its time. It delays neither another receiver, nor a request for
// addresses, nor the end of the daemon.
func TestHangs(t *testing.T) {
	hanging, other := newInbox(t, httptest.NewServer), newInbox(t, httptest.NewServer)
	hanging.answers(func(_ http.ResponseWriter, r *http.Request, _ *sent) { <-r.Context().Done() })
	h := newHarness(t, ipam.Retention{}, hanging.URL, other.URL)
	h.cfg.Attempt = 50 * time.Millisecond
	h.begin()
	other.receives(t, h.take(100))
	// an attempt may be over before it has reached the receiver
	h.turns(longestWait, "it was asked", func() bool { return len(hanging.got) > 0 })
	comes(t, "it was given up", func() bool { return h.hooks.States()[0].Failures > 0 })
	if s := h.hooks.States()[0]; s.Delivered != 0 || s.Waiting.IsZero() || !strings.Contains(s.Error, "deadline") {
		t.Errorf("it stands so: %+v", s)
	}
	h.stop()
	for len(hanging.got) > 0 {
		hanging.next(t)
	}
	h.cfg.Attempt = time.Hour
	h.begin()
	hanging.next(t)
	h.stop() // otherwise the test takes that hour
}

// A redirect is a refusal: it leads elsewhere than a person has said.
func TestRedirect(t *testing.T) {
	elsewhere := newInbox(t, httptest.NewServer)
	for _, status := range []int{301, 302, 303, 307, 308} {
		in := newInbox(t, httptest.NewServer)
		in.answers(func(w http.ResponseWriter, r *http.Request, _ *sent) {
			http.Redirect(w, r, elsewhere.URL, status)
		})
		h := newHarness(t, ipam.Retention{}, in.URL)
		h.begin()
		h.take(1)
		in.next(t)
		comes(t, "it has failed", func() bool { return h.hooks.States()[0].Failures == 1 })
		h.stop()
		elsewhere.none(t)
	}
}

// Berth knows a TLS receiver by its authority, and sends nothing to any other.
func TestTLS(t *testing.T) {
	in := newInbox(t, httptest.NewTLSServer)
	in.Config.ErrorLog = log.New(io.Discard, "", 0) // the handshakes are meant to fail
	h := newHarness(t, ipam.Retention{}, in.URL)
	h.begin()
	owners := h.take(1)
	comes(t, "the stranger is refused", func() bool {
		return strings.Contains(h.hooks.States()[0].Error, "certificate")
	})
	in.none(t)
	h.stop()
	h.cfg.CAs = x509.NewCertPool()
	h.cfg.CAs.AddCert(in.Certificate())
	h.begin()
	in.receives(t, owners)
}

// The signature equals that of the specification's own example, and what openssl makes of the secret.
func TestSignature(t *testing.T) {
	secret, err := ParseSecret("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw\n")
	must(t, err)
	got := secret.sign("msg_p5jXN8AQM9LWM0D4loKWxJek", "1614265330", []byte(`{"test": 2432232314}`))
	if want := "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="; got != want {
		t.Errorf("the signature is %s, want %s", got, want)
	}
	in := newInbox(t, httptest.NewServer)
	h := newHarness(t, ipam.Retention{}, in.URL)
	h.cfg.Secret = secret
	h.begin()
	m := in.receives(t, h.take(1))[0]
	check := exec.Command("sh", "-c", `key=$(printf %s "${SECRET#whsec_}" | base64 -d | od -An -v -tx1 | tr -d ' \n')
		printf 'v1,%s' "$(openssl dgst -sha256 -mac HMAC -macopt "hexkey:$key" -binary | base64)"`)
	check.Env = append(os.Environ(), "SECRET=whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
	check.Stdin = strings.NewReader(m.header.Get("webhook-id") + "." + m.header.Get("webhook-timestamp") + "." +
		string(m.body))
	want, err := check.Output()
	must(t, err)
	if got := m.header.Get("webhook-signature"); got != string(want) {
		t.Errorf("the signature is %s, openssl makes %s", got, want)
	}
}

func TestParseSecret(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"", "does not begin with whsec_"},
		{"MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "does not begin with whsec_"},
		{"whsec_!", "is not base64"},
		{"whsec_c2hvcnQ=", "has 5 bytes; it must have 24 to 64"},
	} {
		if _, err := ParseSecret(c.text); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: %v, want %s", c.text, err, c.want)
		}
	}
}

func TestCheckURL(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"https://hooks.example/x?y=z", ""},
		{"http://[::1]:8080", ""},
		{"ftp://a", "begin with http:// or https://"},
		{"hooks.example", "begin with http:// or https://"},
		{"http://", "names no host"},
		{"http://:80/", "names no host"},
		{"http://a/#b", "has a fragment"},
		{"http://a:b:c/secret", "cannot be read"},
	} {
		_, err := CheckURL(c.text)
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v, want %q", c.text, err, c.want)
		}
		if err != nil && strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: it says the secret: %v", c.text, err)
		}
	}
	h := newHarness(t, ipam.Retention{}, "http://a", "http://a")
	if _, err := Open(t.Context(), h.cfg); err == nil || !strings.Contains(err.Error(), "http://a is given twice") {
		t.Errorf("twice: %v", err)
	}
}

// If the state's directory takes no file, the events are sent all the same.
func TestPlaceCannotBeWritten(t *testing.T) {
	in := newInbox(t, httptest.NewServer)
	h := newHarness(t, ipam.Retention{}, in.URL)
	h.cfg.Dir = filepath.Join(h.dir, "gone")
	h.begin()
	in.receives(t, h.take(3))
	if _, err := os.Stat(h.cfg.Dir); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
}

// An event that a receiver refuses for what it is does not delay the others for ever. After many attempts and some
// time it is set aside: Berth reports that to the receiver, counts it, and does not send it again after a restart.
func TestSetAside(t *testing.T) {
	for name, c := range map[string]struct {
		status  int
		ends    time.Duration // 0: never
		gapToo  bool          // a gap is refused, too
		between int           // another answer after some attempts, which restarts the time
	}{
		"of the message":         {status: http.StatusUnprocessableEntity, ends: refusedFor},
		"gone":                   {status: http.StatusGone, ends: refusedFor},
		"and the notice":         {status: http.StatusBadRequest, ends: refusedFor, gapToo: true},
		"of the receiver":        {status: http.StatusNotFound, ends: mistakenFor},
		"another time":           {status: http.StatusTooManyRequests},
		"its own fault":          {status: http.StatusInternalServerError},
		"an outage in between":   {status: http.StatusBadRequest, ends: refusedFor, between: http.StatusBadGateway},
		"too early to be handed": {status: http.StatusTooEarly},
	} {
		t.Run(name, func(t *testing.T) {
			in := newInbox(t, httptest.NewServer)
			h := newHarness(t, ipam.Retention{}, in.URL)
			h.begin()
			owners := h.take(3)
			in.receives(t, owners)
			refusals, began := 0, h.clock.Now()
			in.answers(func(w http.ResponseWriter, _ *http.Request, m *sent) {
				switch {
				case m.Type == typeGap && !c.gapToo, m.Type != typeGap && m.event.Name != "o4":
					w.WriteHeader(http.StatusNoContent)
				case c.between != 0 && refusals == 8:
					refusals++
					began = h.clock.Now()
					w.WriteHeader(c.between)
				default:
					refusals++
					w.WriteHeader(c.status)
				}
			})
			owners = h.take(2)
			state := func() State { return h.hooks.States()[0] }
			step := max(longestWait, c.ends/20) // between attempts
			if c.ends == 0 {
				step = mistakenFor / 30
			}
			turns := func(until func() bool) { h.turns(step, "the attempts go on", until) }
			if c.ends == 0 {
				turns(func() bool { return state().Failures >= 40 && h.clock.Now().Sub(began) > mistakenFor })
				if s := state(); s.Aside != 0 || s.Delivered != 3 || s.Error == "" {
					t.Errorf("after %s: %+v", h.clock.Now().Sub(began), s)
				}
				return
			}
			turns(func() bool { return state().Aside > 0 })
			if took := h.clock.Now().Sub(began); took < c.ends || state().Failures < leastTries {
				t.Errorf("it was set aside after %s and %d attempts", took, state().Failures)
			}
			aside := uint64(1)
			if c.gapToo {
				turns(func() bool { return state().Aside > 1 })
				aside = 2
			}
			comes(t, "the next is taken", func() bool { return state().Delivered == 6-aside && state().Error == "" })
			h.stop()
			h.begin()
			last := h.take(1)
			var came []string
			for len(came) == 0 || came[len(came)-1] != last[0] {
				switch m := in.next(t); {
				case m.Type == typeGap:
					came = append(came, m.gap.Reason)
				case m.event.Name != "o4":
					came = append(came, m.event.Name)
				}
			}
			came = slices.Compact(came)
			if want := []string{reasonRefused, owners[1], last[0]}; !slices.Equal(came, want) {
				t.Errorf("%q came, want %q", came, want)
			}
		})
	}
}

// A receiver that got the taking of an address gets its release, too, even if both records have become one
// meanwhile. A receiver that was away for both gets both.
func TestThrowAway(t *testing.T) {
	in := newInbox(t, httptest.NewServer)
	h := newHarness(t, ipam.Retention{}, in.URL)
	pool, err := h.service.RequestPool(t.Context(), ipam.PoolRequest{Space: "local", Network: "net1"})
	must(t, err)
	take := func(name string) netip.Prefix {
		h.clock.advance(time.Microsecond)
		addr, err := h.service.RequestAddress(t.Context(), ipam.AddressRequest{Pool: pool.ID, Name: name})
		must(t, err)
		return addr
	}
	release := func(addr netip.Prefix) {
		h.clock.advance(time.Microsecond)
		must(t, h.service.ReleaseAddress(t.Context(), pool.ID, addr.Addr()))
	}
	comesOf := func(verb, name string) sent {
		t.Helper()
		one := in.next(t)
		if one.Type != verb || one.event.Name != name {
			t.Fatalf("%s came, want %s of %s", one.body, verb, name)
		}
		return one
	}
	h.begin()
	addr := take("one")
	taken := comesOf("lease.take", "one")
	release(addr)
	if released := comesOf("lease.release", "one"); released.event.Lease != taken.event.ID {
		t.Errorf("%s ends another lease than %s", released.body, taken.body)
	}
	addr = take("two")
	comesOf("lease.take", "two")
	comes(t, "it is noted", func() bool { return h.hooks.States()[0].Delivered == 3 })
	h.stop()
	release(addr)
	release(take("three"))
	h.begin()
	for _, what := range [][2]string{{"lease.release", "two"}, {"lease.take", "three"}, {"lease.release", "three"}} {
		comesOf(what[0], what[1])
	}
	in.none(t)
}
