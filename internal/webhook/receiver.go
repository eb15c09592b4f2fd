package webhook

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"berth/internal/ipam"
	"berth/internal/shorten"

	"github.com/sirupsen/logrus"
)

// Limits for one receiver.
const (
	maxAnswer   = 4 << 10 // of an answer's body, which is discarded
	maxHeaders  = 16 << 10
	firstWait   = time.Second // after the first failure; it doubles with each further one
	longestWait = 5 * time.Minute
)

// receiver is a receiver of events.
type receiver struct {
	cfg    *Config
	url    string
	log    *logrus.Entry
	client *http.Client
	woken  chan struct{}

	path  string // of the file with its position
	at    place
	lost  *gap      // what to send before the next event; nil: nothing
	saved time.Time // when the file was written
	fresh bool      // the file is out of date

	mu    sync.Mutex
	state State
}

func newReceiver(cfg *Config, to *url.URL, text string) *receiver {
	return &receiver{cfg: cfg, url: text, log: cfg.Log.WithField("webhook", shown(to)), path: placePath(cfg.Dir, text),
		woken: make(chan struct{}, 1), state: State{Receiver: shown(to)},
		client: &http.Client{Transport: newTransport(cfg.CAs), Timeout: cfg.Attempt,
			// A redirect would lead to a receiver that the user did not name.
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}}
}

func newTransport(cas *x509.CertPool) *http.Transport {
	return &http.Transport{Proxy: http.ProxyFromEnvironment,
		DialContext:     (&net.Dialer{KeepAlive: 30 * time.Second}).DialContext,
		TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: cas},
		MaxConnsPerHost: 1, IdleConnTimeout: 90 * time.Second,
		MaxResponseHeaderBytes: maxHeaders, DisableCompression: true}
}

// run sends events until ctx ends.
func (r *receiver) run(ctx context.Context) {
	defer r.client.CloseIdleConnections()
	defer r.save()
	for ctx.Err() == nil {
		more, err := r.next(ctx)
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			r.log.WithError(err).Errorf("the events cannot be read, so none is sent; the next try is in %s", pause)
			r.wait(ctx, pause, nil)
		case more:
			if r.due() {
				r.save()
			}
		default:
			r.idle(ctx)
		}
	}
}

// idle waits for an event. It writes a changed position within a second.
func (r *receiver) idle(ctx context.Context) {
	if r.fresh && !r.due() {
		if r.wait(ctx, saveEvery-r.cfg.Clock.Now().Sub(r.saved), r.woken) {
			return
		}
	}
	if ctx.Err() != nil {
		return
	}
	if r.fresh || r.cfg.Clock.Now().Sub(r.saved) > saveIdle {
		r.save()
	}
	r.wait(ctx, lookAgain, r.woken)
}

// wait waits for a time, or until ctx ends or it is woken. It reports whether it was woken.
func (r *receiver) wait(ctx context.Context, d time.Duration, woken <-chan struct{}) bool {
	select {
	case <-ctx.Done():
	case <-r.cfg.Clock.After(d):
	case <-woken:
		return true
	}
	return false
}

// next sends the next event, and reports whether there was one.
func (r *receiver) next(ctx context.Context) (more bool, err error) {
	asked := r.cfg.Clock.Now()
	partial := r.cfg.Service.Partial() != nil
	page, err := r.cfg.Service.EventsBehind(ctx, r.at.Mark, 1, r.wanted)
	if err != nil {
		return false, err
	}
	if r.lost == nil {
		lacks, err := r.cfg.Service.MayLack(ctx, r.at.Mark, r.at.Whole)
		if err != nil {
			return false, err
		}
		if lacks {
			r.lost = &gap{Reason: reasonTrimmed, Since: r.at.since()}
		}
	}
	if r.lost != nil {
		r.lost.Until = asked.UTC()
		if len(page.Events) > 0 {
			r.lost.Until = page.Events[0].Time
		}
		if told, err := r.tellGap(ctx); !told {
			return false, err
		}
	}
	for i := range page.Events {
		m, err := eventMessage(r.cfg.Host, &page.Events[i])
		if err != nil {
			return false, err
		}
		taken := r.send(ctx, m)
		if ctx.Err() != nil && !taken {
			return false, nil
		}
		if !taken {
			r.lost = &gap{Reason: reasonRefused, Since: page.Events[i].Time.UTC()}
			r.at.Lost = r.lost
		}
		r.at.Last = page.Events[i].Time
	}
	r.fresh = r.fresh || len(page.Events) > 0
	r.at.Mark = page.Next
	if len(page.Events) == 0 && !page.More && !partial {
		r.at.Whole = asked
	}
	return len(page.Events) > 0 || page.More, nil
}

func (r *receiver) wanted(e *ipam.Event) bool { return !r.cfg.OwnAlone || e.Host == r.cfg.Host }

// tellGap sends a message about missing events. It reports whether that is done: the receiver has accepted or
// permanently refused it.
func (r *receiver) tellGap(ctx context.Context) (bool, error) {
	m, err := gapMessage(r.cfg.Host, r.lost)
	if err != nil {
		return false, err
	}
	r.log.WithField("since", r.lost.Since).Warn("some events may never be sent: " + r.lost.Reason)
	if !r.send(ctx, m) && ctx.Err() != nil {
		return false, nil
	}
	r.lost, r.at.Lost, r.fresh = nil, nil, true
	return true, nil
}

// send sends a message until it is accepted. It returns false if the message is given up or ctx ends.
func (r *receiver) send(ctx context.Context, m message) bool {
	r.note(func(s *State) { s.Waiting = m.happened })
	var no refusals
	for failed := 0; ; failed++ {
		err := r.attempt(ctx, m)
		if err == nil {
			if failed > 0 {
				r.log.WithField("attempts", failed+1).Info("the receiver accepts events again")
			}
			r.note(func(s *State) { s.Delivered++; s.Waiting, s.Error = time.Time{}, "" })
			return true
		}
		if ctx.Err() != nil {
			return false
		}
		r.note(func(s *State) { s.Failures++; s.Error = err.Error() })
		var refused *refusal
		wait := r.backoff(failed)
		if errors.As(err, &refused) {
			wait = max(wait, min(refused.after, longestWait))
		}
		if no.count(refused, r.cfg.Clock.Now()) {
			r.log.WithError(err).WithFields(logrus.Fields{"message": m.id, "attempts": no.tries}).Error(
				"the receiver permanently refuses an event; Berth continues with the next event")
			r.note(func(s *State) { s.Aside++; s.Waiting, s.Error = time.Time{}, "" })
			return false
		}
		level := logrus.DebugLevel
		if failed == 0 {
			level = logrus.WarnLevel
		}
		r.log.WithError(err).WithField("message", m.id).Logf(level, "the receiver did not accept an event; the next "+
			"try is in %s", wait.Round(time.Millisecond))
		if r.due() {
			r.save() // with what was accepted before
		}
		r.wait(ctx, wait, nil)
		if ctx.Err() != nil {
			return false
		}
	}
}

func (r *receiver) note(change func(*State)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	change(&r.state)
}

// backoff returns the wait after a failure, given the number of failures before it. It doubles up to a limit. A random
// part of up to a half keeps many hosts from retrying at the same time.
func (r *receiver) backoff(before int) time.Duration {
	wait := longestWait
	if before < 20 {
		wait = min(firstWait<<before, longestWait)
	}
	return wait/2 + time.Duration(r.cfg.Clock.Jitter()*float64(wait/2))
}

// When a message is given up: if the receiver refuses it at each attempt for this time. A refusal of the message itself
// ends it sooner than one that a misconfigured receiver gives for all messages.
const (
	leastTries  = 10
	refusedFor  = time.Hour
	mistakenFor = 72 * time.Hour // several days, as Standard Webhooks recommends
)

// refusals counts consecutive refusals of one message.
type refusals struct {
	tries int
	since time.Time
}

// count adds a failure, and reports whether the message must be given up. refused is nil if there was no answer. A
// failure that does not depend on the message resets the count: no answer, 5xx, 3xx, and the 4xx that ask for a later
// attempt.
func (no *refusals) count(refused *refusal, now time.Time) (last bool) {
	if refused == nil || refused.code < 400 || refused.code > 499 || slices.Contains(later, refused.code) {
		*no = refusals{}
		return false
	}
	if no.tries++; no.tries == 1 {
		no.since = now
	}
	enough := mistakenFor
	if slices.Contains(ofMessage, refused.code) {
		enough = refusedFor
	}
	return no.tries >= leastTries && now.Sub(no.since) >= enough
}

var (
	later     = []int{http.StatusRequestTimeout, http.StatusTooEarly, http.StatusTooManyRequests}
	ofMessage = []int{http.StatusBadRequest, http.StatusConflict, http.StatusGone, http.StatusRequestEntityTooLarge,
		http.StatusUnsupportedMediaType, http.StatusUnprocessableEntity}
)

// refusal is an answer other than 2xx.
type refusal struct {
	code   int
	status string
	after  time.Duration // the wait that the receiver asks for
}

func (e *refusal) Error() string { return "the receiver has answered " + e.status }

// attempt sends a message once.
func (r *receiver) attempt(ctx context.Context, m message) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, r.url, bytes.NewReader(m.body))
	if err != nil {
		return err
	}
	stamp := strconv.FormatInt(r.cfg.Clock.Now().Unix(), 10)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("User-Agent", strings.TrimSpace("berth "+r.cfg.Version))
	req.Header.Set(headerID, m.id)
	req.Header.Set(headerTimestamp, stamp)
	if r.cfg.Secret != nil {
		req.Header.Set(headerSignature, r.cfg.Secret.sign(m.id, stamp, m.body))
	}
	res, err := r.client.Do(req)
	if err != nil {
		var why *url.Error
		if errors.As(err, &why) {
			err = why.Err // without the URL, which may contain a secret
		}
		return errors.New(shorten.To(err.Error(), shorten.Most)) // it may contain the receiver's answer
	}
	defer res.Body.Close()
	if res.StatusCode >= 200 && res.StatusCode < 300 {
		_, _ = io.CopyN(io.Discard, res.Body, maxAnswer) // so that the connection can be reused
		return nil
	}
	seconds, _ := strconv.Atoi(res.Header.Get("Retry-After"))
	after := time.Duration(min(max(seconds, 0), int(longestWait/time.Second))) * time.Second
	return &refusal{code: res.StatusCode, status: shorten.To(res.Status, shorten.Most), after: after}
}
