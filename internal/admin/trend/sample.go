package trend

import (
	"context"
	"strings"
	"time"

	"berth/internal/ipam"
)

func key(space, network, subnet, pool string) string {
	return strings.TrimRight(strings.Join([]string{space, network, subnet, pool}, "\n"), "\n")
}

// look records the current use. It forgets networks and pools that were missing for a week. A shorter gap may be an
// outage of a shared store.
func (b *Recorder) look(ctx context.Context) {
	all, err := b.use(ctx)
	if err != nil {
		return
	}
	now := b.now()
	b.mu.Lock()
	defer b.mu.Unlock()
	const week = 7 * 24
	for name, s := range b.all {
		if hours := now.Unix() / int64(time.Hour/time.Second); hours-s[len(s)-1].At > week {
			delete(b.all, name)
		}
	}
	for name, percent := range percents(all) {
		s := b.all[name]
		switch {
		case s == nil && len(b.all) >= mostSeries:
			continue
		case s == nil:
			s = new(series)
			b.all[name] = s
		}
		for i := range s {
			s[i].note(scales[i], now, byte(percent))
		}
	}
}

// percents returns the use of each network and each pool.
func percents(all []ipam.PoolUse) map[string]int {
	of := map[string]int{}
	for len(all) > 0 {
		first := &all[0]
		n := 1
		for n < len(all) && all[n].Subnet == first.Subnet && all[n].Space == first.Space && all[n].Network == first.Network {
			n++
		}
		use := ipam.SubnetUse(first.Subnet, all[:n])
		if percent, ok := use.Percent(); ok {
			network := key(first.Space, first.Network, "", "")
			of[network] = max(of[network], percent)
		}
		for i := range all[:n] {
			if percent, ok := all[i].StateCounts.Percent(); ok && all[i].Pool != "" {
				of[key(first.Space, first.Network, first.Subnet.String(), all[i].Pool)] = percent
			}
		}
		all = all[n:]
	}
	return of
}
