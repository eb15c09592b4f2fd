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

// after is when an address is announced again. Kernels ignore a second announcement within a second, and the first may
// get lost on a network that is being put together.
var after = [...]time.Duration{1100 * time.Millisecond, 2300 * time.Millisecond, 4 * time.Second, 8 * time.Second}

const (
	// doubt is how long one who contests an address is let be: where an address moves, the other side knows first.
	doubt = 300 * time.Millisecond
	// calm is the least time between two answers to those who contest one address.
	calm = time.Second
	// beat is how exact repeats are.
	beat = 50 * time.Millisecond
)

// Config is what an Announcer is made with.
type Config struct {
	// Tell is told of those who contest an address.
	Tell func(edge.Notice)
	// Allowed: this host may say of the address that it is here. It is asked before each frame.
	Allowed func(netip.Addr) bool
}

// Announcer tells neighbours of addresses.
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

// presence is an address that is here.
type presence struct {
	device   string
	since    time.Time // of the first announcement
	said     int       // repeats of it
	doubted  time.Time // when somebody else was heard; zero where nobody was
	by       net.HardwareAddr
	defended time.Time
}

// New makes one that announces nothing yet.
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

// Keep forgets the addresses that are not among the given ones. It announces nothing.
func (a *Announcer) Keep(wanted map[netip.Addr]string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	maps.DeleteFunc(a.here, func(one netip.Addr, p *presence) bool { return wanted[one] != p.device })
}

// Set makes the addresses those that are here, by their devices. New ones are announced before it returns, and others
// are not until they are due. It returns a failure for each address that could not be announced.
func (a *Announcer) Set(wanted map[netip.Addr]string) (failed []error) {
	old, failed := a.set(wanted)
	for _, s := range old { // its ears wait for the lock
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

// Change has some addresses be here no more, and others, by their devices, which are announced before it returns. It
// returns a failure for each that could not be.
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

// enter lets an address be here, and announces it. Where that fails it is tried again when it is due.
func (a *Announcer) enter(one netip.Addr, device string) error {
	p := &presence{device: device, since: time.Now()}
	a.here[one] = p
	return a.say(one, p)
}

// Again announces anew what is on a device, as after a cable was put back; or, without one, everything, as after a time
// in which nothing could be said.
func (a *Announcer) Again(device string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, p := range a.here {
		if device == "" || p.device == device {
			p.since, p.said = time.Now().Add(-after[0]), 0 // at the next beat
		}
	}
}

// say announces an address once, unless it may not be said.
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

// heard is called by stations: somebody else says that he has an address.
func (a *Announcer) heard(device string, mac net.HardwareAddr, one netip.Addr) {
	a.mu.Lock()
	defer a.mu.Unlock()
	p := a.here[one]
	if p == nil || p.device != device || !p.doubted.IsZero() {
		return
	}
	p.doubted, p.by = time.Now(), mac
}

// run repeats announcements, and answers those who contest an address.
func (a *Announcer) run() {
	tick := time.NewTicker(beat)
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
			_ = a.say(one, p) // there is another time, and who is told of the failure was told by Set
		}
		if p.doubted.IsZero() || now.Sub(p.doubted) < doubt {
			continue
		}
		p.doubted = time.Time{}
		if now.Sub(p.defended) < calm || !a.config.Allowed(one) {
			continue
		}
		p.defended = now
		a.contested++
		notices = append(notices, edge.Notice{Kind: edge.Contested, Address: one, Device: p.device, MAC: p.by})
		_ = a.say(one, p)
	}
	return notices
}

// Counts are how many frames were sent, and how often an address was contested.
func (a *Announcer) Counts() (announced, contested int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.announced, a.contested
}

// Close ends all of it.
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
