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

// Service tells of events. It is a service.Service or, where the
// host shares a store, a cluster.Service.
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
	URLs    []string // of the receivers, each once (CheckURL)
	Dir     string   // where it is kept who has what: the directory of the state
	Host    string   // this host's name, which messages have
	// OwnAlone leaves out what other hosts do that share the store: they tell it themselves.
	OwnAlone bool
	StoreID  string         // of the host's own store: in another one no place is known
	Secret   *Secret        // by which messages are signed; nil: they are not
	CAs      *x509.CertPool // the authorities of https receivers; nil: the system's
	Version  string         // of Berth, for the User-Agent
	Log      *logrus.Entry
	Clock    Clock // zero: the system's
	// Attempt is how long a receiver may take for one message; default: defaultAttempt.
	Attempt time.Duration
}

// Clock is the time as Webhooks have it.
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

// defaultAttempt is how long a receiver may take for one message, from connecting to the end of its answer.
const defaultAttempt = 10 * time.Second

// Bounds of time.
const (
	lookAgain = 10 * time.Second // for events, where nothing has said that there are some
	pause     = 10 * time.Second // after the events could not be read
)

// Open returns Webhooks that go on from where each receiver was; one without a place begins with what happens from now
// on. It refuses URLs and authorities that cannot be used.
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

// CheckURL reads the URL of a receiver: http or https, with a host, and without a fragment.
func CheckURL(text string) (*url.URL, error) {
	u, err := url.Parse(text)
	if err != nil {
		var why *url.Error
		if errors.As(err, &why) {
			err = why.Err // without the URL, which may hold a secret
		}
		return nil, fmt.Errorf("the URL of a receiver cannot be read: %w", err)
	}
	switch {
	case u.Scheme != "http" && u.Scheme != "https":
		return nil, fmt.Errorf("the receiver %s is none: its URL begins with http:// or https://", shown(u))
	case u.Host == "" || u.Hostname() == "":
		return nil, fmt.Errorf("the receiver %s names no host", shown(u))
	case u.Fragment != "":
		return nil, fmt.Errorf("the receiver %s has a fragment (#), which is never sent: leave it out", shown(u))
	}
	return u, nil
}

// shown is what of a URL is told to people: not its path, its query or its password, where receivers have their
// secrets.
func shown(u *url.URL) string { return u.Scheme + "://" + u.Host }

// Run sends events until ctx ends, and returns nil then.
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

// wake tells the receivers' goroutines when something was committed. It waits for none of them. What it misses they
// find when they look again.
func (w *Webhooks) wake(ctx context.Context) {
	for ctx.Err() == nil {
		mark, err := w.cfg.Service.LastEvent(ctx)
		if err == nil {
			w.wakeAll() // for what was committed before the mark
			for _, err = range w.cfg.Service.TailPages(ctx, mark) {
				if err != nil {
					break
				}
				w.wakeAll()
			}
		}
		if err != nil && ctx.Err() == nil {
			w.cfg.Log.WithError(err).Debugf("nobody tells of new events; webhooks look for them every %s", lookAgain)
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
		default: // it was woken, and has not looked yet
		}
	}
}

// State is how it stands with one receiver since the daemon began.
type State struct {
	Receiver  string    // scheme and host of its URL
	Delivered uint64    // events and notices that it has taken
	Failures  uint64    // attempts that it has not
	Aside     uint64    // events and notices that it has refused for good, and that are not sent any more
	Waiting   time.Time // when what is sent at present happened; zero: it has all
	Error     string    // why the last attempt failed; empty: it did not
}

// States tell how it stands with each receiver, in the order of their URLs. They may be asked for at any time.
func (w *Webhooks) States() []State {
	all := make([]State, 0, len(w.receivers))
	for _, r := range w.receivers {
		r.mu.Lock()
		all = append(all, r.state)
		r.mu.Unlock()
	}
	return all
}
