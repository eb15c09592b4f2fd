package announce

import (
	"errors"
	"maps"
	"net"
	"net/netip"
	"sync"
	"time"

	"berth/internal/edge"
)

// after has the times of repeated announcements. Kernels ignore a second announcement within a second. The first may be
// lost while a network is being set up.
var after = [...]time.Duration{1100 * time.Millisecond, 2300 * time.Millisecond, 4 * time.Second, 8 * time.Second}

const (
	// doubt is the wait before the reply to a machine that contests an address. If an address moves to another host,
	// the other side knows it first.
	doubt = 300 * time.Millisecond
	// replyGap is the minimum time between two replies about one address.
	replyGap = time.Second
	// resolution is how exactly repeats are timed.
	resolution = 50 * time.Millisecond
)

// Config is the configuration of an Announcer.
type Config struct {
	// Tell receives notices about contested addresses.
	Tell func(edge.Notice)
	// Allowed reports whether this host may answer for an address. It is called before each frame.
	Allowed func(netip.Addr) bool
}

// Announcer announces addresses to neighbours.
type Announcer struct {
	config Config
	end    chan struct{}
	repeat sync.WaitGroup

	mu        sync.Mutex
	here      map[netip.Addr]*presence
	stations  map[string]*station
	announced int
	contested int
}

// presence is an announced address.
type presence struct {
	device   string
	since    time.Time // of the first announcement
	said     int       // number of repeats of it
	doubted  time.Time // when another machine claimed it; zero: none
	by       net.HardwareAddr
	defended time.Time
}

// New returns an Announcer without addresses.
func New(config Config) *Announcer {
	a := &Announcer{
		config:   config,
		end:      make(chan struct{}),
		here:     map[netip.Addr]*presence{},
		stations: map[string]*station{},
	}
	a.repeat.Go(a.run)
	return a
}

// Keep removes the addresses that are not in wanted. It announces nothing.
func (a *Announcer) Keep(wanted map[netip.Addr]string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	maps.DeleteFunc(a.here, func(one netip.Addr, p *presence) bool { return wanted[one] != p.device })
}

// Set replaces the addresses by the given ones with their devices. It announces new ones before it returns. The others
// are repeated when they are due. It returns a failure for each address that could not be announced.
func (a *Announcer) Set(wanted map[netip.Addr]string) (failed []error) {
	old, failed := a.set(wanted)
	for _, s := range old { // its goroutines wait for the lock
		failed = append(failed, s.close())
	}
	return failed
}

func (a *Announcer) set(wanted map[netip.Addr]string) (old []*station, failed []error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	needed := map[string]bool{}
	for _, device := range wanted {
		needed[device] = true
	}
	for device, s := range a.stations {
		if needed[device] && !s.stale() {
			continue
		}
		old = append(old, s)
		delete(a.stations, device)
		maps.DeleteFunc(a.here, func(_ netip.Addr, p *presence) bool { return p.device == device })
	}
	maps.DeleteFunc(a.here, func(one netip.Addr, p *presence) bool { return wanted[one] != p.device })
	for one, device := range wanted {
		if a.here[one] != nil {
			continue
		}
		err := a.enter(one, device)
		if err != nil {
			failed = append(failed, &edge.Failure{Address: one, Err: err})
		}
	}
	return old, failed
}

// Change removes the addresses in gone and adds those in come with their devices. It announces the new ones before it
// returns. It returns a failure for each that could not be announced.
func (a *Announcer) Change(gone, come map[netip.Addr]string) (failed []error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for one := range gone {
		delete(a.here, one)
	}
	for one, device := range come {
		err := a.enter(one, device)
		if err != nil {
			failed = append(failed, &edge.Failure{Address: one, Err: err})
		}
	}
	return failed
}

// enter adds an address and announces it. A failed announcement is repeated when it is due.
func (a *Announcer) enter(one netip.Addr, device string) error {
	p := &presence{device: device, since: time.Now()}
	a.here[one] = p
	return a.say(one, p)
}

// Again announces all addresses of a device again, for example after its cable was reconnected. Without a device it
// announces everything, for example after a time in which nothing could be sent.
func (a *Announcer) Again(device string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, p := range a.here {
		if device == "" || p.device == device {
			p.since, p.said = time.Now().Add(-after[0]), 0 // at the next tick
		}
	}
}

// say announces an address once, if that is allowed.
func (a *Announcer) say(one netip.Addr, p *presence) error {
	if !a.config.Allowed(one) {
		return nil
	}
	s := a.stations[p.device]
	if s == nil {
		var err error
		s, err = openStation(p.device, a.heard)
		if err != nil {
			return err
		}
		a.stations[p.device] = s
	}
	frames, err := s.say(one)
	a.announced += frames
	return err
}

// heard is called by stations when another machine claims an address.
func (a *Announcer) heard(device string, mac net.HardwareAddr, one netip.Addr) {
	a.mu.Lock()
	defer a.mu.Unlock()
	p := a.here[one]
	if p == nil || p.device != device || !p.doubted.IsZero() {
		return
	}
	p.doubted, p.by = time.Now(), mac
}

// run repeats announcements, and replies to machines that contest an address.
func (a *Announcer) run() {
	tick := time.NewTicker(resolution)
	defer tick.Stop()
	for {
		select {
		case <-a.end:
			return
		case now := <-tick.C:
			for _, notice := range a.due(now) {
				a.config.Tell(notice)
			}
		}
	}
}

func (a *Announcer) due(now time.Time) (notices []edge.Notice) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for one, p := range a.here {
		if p.said < len(after) && now.Sub(p.since) >= after[p.said] {
			p.said++
			_ = a.say(one, p) // it is repeated later, and Set has already reported the failure
		}
		if p.doubted.IsZero() || now.Sub(p.doubted) < doubt {
			continue
		}
		p.doubted = time.Time{}
		if now.Sub(p.defended) < replyGap || !a.config.Allowed(one) {
			continue
		}
		p.defended = now
		a.contested++
		notices = append(notices, edge.Notice{Kind: edge.Contested, Address: one, Device: p.device, MAC: p.by})
		_ = a.say(one, p)
	}
	return notices
}

// Counts returns the number of sent frames, and how often an address was contested.
func (a *Announcer) Counts() (announced, contested int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.announced, a.contested
}

// Close stops everything.
func (a *Announcer) Close() error {
	close(a.end)
	a.repeat.Wait()
	a.mu.Lock()
	stations := a.stations
	a.stations, a.here = map[string]*station{}, map[netip.Addr]*presence{}
	a.mu.Unlock()
	var err error
	for _, s := range stations {
		err = errors.Join(err, s.close())
	}
	return err
}
