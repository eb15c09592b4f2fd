// Package webhook sends each event to receivers on the network, as a signed POST that is repeated until it is accepted.
// Every event of this host arrives at least once and in order, across restarts. If events were removed before delivery,
// or refused for good, a message reports that. No request waits for a receiver. A slow, vanished or hostile receiver
// costs one event of memory and one connection, and does not delay the others.
//
// The store's events are the outbox. A file per receiver in the state directory records its position (cursor.go). A
// goroutine per receiver reads the next event (Service.EventsBehind), makes a message (message.go), and sends it until
// the receiver answers 2xx (receiver.go). One more goroutine wakes them after each commit (webhook.go).
package webhook

import (
	"cmp"
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"net/url"
	"sync"
	"time"

	"berth/internal/ipam"

	"github.com/sirupsen/logrus"
)

// Service supplies events. It is a service.Service or, if the host shares a store, a cluster.Service.
type Service interface {
	LastEvent(context.Context) (ipam.EventMark, error)
	EventsBehind(ctx context.Context, mark ipam.EventMark, n int, wanted func(*ipam.Event) bool) (ipam.EventPage, error)
	TailPages(context.Context, ipam.EventMark) iter.Seq2[ipam.EventPage, error]
	MayLack(ctx context.Context, mark ipam.EventMark, whole time.Time) (bool, error)
	Partial() error
}

// Config is what Webhooks need. Service, URLs, Dir, Host, StoreID and Log are mandatory.
type Config struct {
	Service Service
	URLs    []string // of the receivers, without duplicates (CheckURL)
	Dir     string   // the state's directory, for the receivers' positions
	Host    string   // this host's name, for messages
	// OwnAlone omits the events of other hosts that share the store, because these hosts send them.
	OwnAlone bool
	StoreID  string         // of the host's own store; positions are valid only for this store
	Secret   *Secret        // signs messages; nil: they are not signed
	CAs      *x509.CertPool // the authorities of https receivers; nil: the system's
	Version  string         // of Berth, for the User-Agent
	Log      *logrus.Entry
	Clock    Clock // zero: the system's
	// Attempt bounds one attempt to send a message; default: defaultAttempt.
	Attempt time.Duration
}

// Clock supplies the time.
type Clock struct {
	Now    func() time.Time
	After  func(time.Duration) <-chan time.Time
	Jitter func() float64 // from 0 to below 1
}

// Webhooks send events to receivers.
type Webhooks struct {
	cfg       Config
	receivers []*receiver
}

// defaultAttempt bounds one attempt, from the connection to the end of the answer.
const defaultAttempt = 10 * time.Second

// Intervals.
const (
	lookAgain = 10 * time.Second // for events, without a notification
	pause     = 10 * time.Second // after a failed read of events
)

// Open returns Webhooks that continue at each receiver's position. A new receiver gets the events from now on. It
// refuses unusable URLs and authorities.
func Open(ctx context.Context, cfg Config) (*Webhooks, error) {
	if cfg.Clock.Now == nil {
		cfg.Clock = Clock{Now: time.Now, After: time.After, Jitter: rand.Float64}
	}
	cfg.Attempt = cmp.Or(cfg.Attempt, defaultAttempt)
	w := &Webhooks{cfg: cfg}
	seen := map[string]bool{}
	for _, text := range cfg.URLs {
		to, err := CheckURL(text)
		if err != nil {
			return nil, err
		}
		if seen[text] {
			return nil, fmt.Errorf("the receiver %s is given twice", shown(to))
		}
		seen[text] = true
		r := newReceiver(&w.cfg, to, text)
		if err := r.open(ctx); err != nil {
			return nil, err
		}
		w.receivers = append(w.receivers, r)
	}
	return w, nil
}

// CheckURL parses the URL of a receiver. It must be http or https with a host and without a fragment.
func CheckURL(text string) (*url.URL, error) {
	u, err := url.Parse(text)
	if err != nil {
		var why *url.Error
		if errors.As(err, &why) {
			err = why.Err // without the URL, which may contain a secret
		}
		return nil, fmt.Errorf("the URL of a receiver cannot be read: %w", err)
	}
	switch {
	case u.Scheme != "http" && u.Scheme != "https":
		return nil, fmt.Errorf("the receiver %s is invalid: its URL must begin with http:// or https://", shown(u))
	case u.Host == "" || u.Hostname() == "":
		return nil, fmt.Errorf("the receiver %s names no host", shown(u))
	case u.Fragment != "":
		return nil, fmt.Errorf("the receiver %s has a fragment (#), which is never sent: leave it out", shown(u))
	}
	return u, nil
}

// shown returns the public part of a URL. Its path, query and password may contain secrets.
func shown(u *url.URL) string { return u.Scheme + "://" + u.Host }

// Run sends events until ctx ends, and then returns nil.
func (w *Webhooks) Run(ctx context.Context) error {
	var all sync.WaitGroup
	for _, r := range w.receivers {
		all.Go(func() { r.run(ctx) })
	}
	if len(w.receivers) > 0 {
		all.Go(func() { w.wake(ctx) })
	}
	all.Wait()
	return nil
}

// wake wakes the receivers' goroutines after a commit. It never blocks. What it misses, they find at their next look.
func (w *Webhooks) wake(ctx context.Context) {
	for ctx.Err() == nil {
		mark, err := w.cfg.Service.LastEvent(ctx)
		if err == nil {
			w.wakeAll() // for commits before the mark
			for _, err = range w.cfg.Service.TailPages(ctx, mark) {
				if err != nil {
					break
				}
				w.wakeAll()
			}
		}
		if err != nil && ctx.Err() == nil {
			w.cfg.Log.WithError(err).Debugf("notifications of new events failed; webhooks look for events every %s",
				lookAgain)
		}
		select {
		case <-ctx.Done():
		case <-w.cfg.Clock.After(pause):
		}
	}
}

func (w *Webhooks) wakeAll() {
	for _, r := range w.receivers {
		select {
		case r.woken <- struct{}{}:
		default: // it was woken and has not looked yet
		}
	}
}

// State is the state of one receiver since the daemon's start.
type State struct {
	Receiver  string    // scheme and host of its URL
	Delivered uint64    // accepted events and notices
	Failures  uint64    // failed attempts
	Aside     uint64    // events and notices that were permanently refused and given up
	Waiting   time.Time // the time of the event that is being sent; zero: none
	Error     string    // why the last attempt failed; empty: it succeeded
}

// States returns the state of each receiver, in the order of their URLs. It may be called at any time.
func (w *Webhooks) States() []State {
	all := make([]State, 0, len(w.receivers))
	for _, r := range w.receivers {
		r.mu.Lock()
		all = append(all, r.state)
		r.mu.Unlock()
	}
	return all
}
