package nft

import (
	"context"
	"fmt"
	"net/netip"
	"strings"
	"sync"
	"time"

	"berth/internal/edge"
)

// every is the interval of comparisons in Run. A comparison costs one message if the generation of nftables has not
// changed.
const every = 500 * time.Millisecond

// mayAnswer is the announcer's check before each frame.
func (p *Provider) mayAnswer(a netip.Addr) bool {
	allowed := p.allowed.Load()
	r, found := edge.Find(allowed.ranges, a)
	return found && allowed.mayAnswer(r)
}

// Check compares what is in place with the last state and repairs it. It returns the number of missing things.
func (p *Provider) Check(ctx context.Context) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.check(ctx)
}

func (p *Provider) check(ctx context.Context) (int, error) {
	if p.state == nil {
		return 0, nil
	}
	gone, looked, err := p.load(ctx)
	if err != nil {
		return 0, err
	}
	if looked {
		more, err := p.checkElements()
		if err != nil {
			return 0, err
		}
		gone = append(gone, more...)
	}
	more, err := p.checkDocker(ctx, looked)
	if err != nil {
		return 0, err
	}
	gone = append(gone, more...)
	more, err = p.checkAddresses()
	if err != nil {
		return 0, err
	}
	gone = append(gone, more...)
	if len(gone) == 0 {
		if p.whole {
			return 0, nil
		}
		return 0, p.apply(ctx, deltaOf(p.have, p.want), nil) // completes an earlier change that failed
	}
	p.repaired.Add(1)
	p.config.Tell(edge.Notice{Kind: edge.Repaired, Text: strings.Join(gone, ", ")})
	return len(gone), p.apply(ctx, deltaOf(p.have, p.want), nil)
}

// checkElements returns what the sets lack and what they have in excess, and which live elements ended too early.
func (p *Provider) checkElements() ([]string, error) {
	var gone []string
	for at, change := range deltaOf(p.have, p.want) {
		n := len(change.remove) + len(change.add)
		gone = append(gone, fmt.Sprintf("%d elements of %s %s %s", n, at.family, tableName, at.name))
	}
	now, err := edge.Now()
	if err != nil {
		return nil, err
	}
	if now >= p.allowed.Load().ends {
		return gone, nil
	}
	found, err := p.kernel.structure()
	if err != nil {
		return nil, err
	}
	live, err := p.readLive(found)
	if err != nil {
		return nil, err
	}
	for at, granted := range p.live {
		_, add := difference(live[at], granted)
		if len(add) > 0 {
			gone = append(gone, fmt.Sprintf("%d elements of %s %s %s", len(add), at.family, tableName, at.name))
		}
	}
	return gone, nil
}

// checkDocker checks DOCKER-USER when nftables has changed. The legacy iptables changes without a new generation, so it
// is always checked.
func (p *Provider) checkDocker(ctx context.Context, changed bool) ([]string, error) {
	if !changed && !p.docker.legacy {
		return nil, nil
	}
	gone, err := p.docker.missing(ctx, p.state.Ranges)
	if len(gone) > 0 {
		p.accepted = nil
	}
	return gone, err
}

func (p *Provider) checkAddresses() ([]string, error) {
	if !p.stray.Swap(false) && p.watched.Load() { // a later change is seen by the next check
		return nil, nil
	}
	list, err := p.listAddresses()
	if err != nil {
		p.stray.Store(true)
		return nil, err
	}
	var gone []string
	for a, device := range p.here {
		_, there := list.links[device] // Set reports a missing device, and its return causes a notification
		if there && list.on[a] != device {
			gone = append(gone, fmt.Sprintf("address %s on %s", a, device))
		}
	}
	return gone, nil
}

// Run repairs and announces until ctx ends. It leaves everything in place.
func (p *Provider) Run(ctx context.Context) error {
	w, err := watchDevices(ctx, false)
	if err != nil {
		return err
	}
	var hears sync.WaitGroup
	defer hears.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	hears.Go(func() { p.hear(ctx, w) })
	tick := time.NewTicker(every)
	defer tick.Stop()
	failed := ""
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
		_, err := p.Check(ctx)
		switch {
		case ctx.Err() != nil:
		case err == nil:
			failed = ""
		case err.Error() != failed: // once, and not each time
			failed = err.Error()
			p.config.Tell(edge.Notice{Kind: edge.Failed, Text: failed})
		}
	}
}
