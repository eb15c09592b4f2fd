package main

import (
	"errors"
	"fmt"
	"time"

	"berth/internal/ipam"
)

// What is compared: requests by so many callers, in so many groups of four turns, two of which are watched. Short turns
// keep what else the machine does alike in both kinds.
const (
	watchedCallers = 16
	watchedGroups  = 50
	watchedTurn    = 500 * time.Millisecond
	watchedSettle  = 100 * time.Millisecond
	watchedWarm    = 3 * time.Second
	watchedBound   = 1.05
)

// measureWatched compares the latency of RequestAddress while a scrape is made each second, and browsers keep a view
// fresh, with that without.
func measureWatched(e env) ([]row, error) {
	s, err := e.servePools()
	if err != nil {
		return nil, err
	}
	defer s.stop()
	c := newSocketClient(s.plugin, watchedCallers)
	pool, err := c.pool("100.64.0.0/10", nil)
	if err != nil {
		return nil, err
	}
	all, err := openBrowsers(s.admin, "/")
	if err != nil {
		return nil, err
	}
	scrape := scraper(s.admin)
	loaded := all.drawn.Load()
	t := &turns{callers: watchedCallers, groups: watchedGroups, length: watchedTurn, settle: watchedSettle,
		warm: watchedWarm,
		take: taking(watchedCallers, func(mac ipam.MAC) error { return c.take(pool, mac) })}
	turn := 0
	found, err := t.run(company{begin: all.look, end: all.away, turn: func() error {
		if turn++; turn%4 > 1 { // two turns are a second: the scrape is in the first of them, or in the second
			return nil
		}
		time.Sleep(watchedTurn / 4)
		_, err := scrape("gzip")
		return err
	}})
	if err != nil {
		return nil, err
	}
	views := float64(all.drawn.Load()-loaded) / (watchedGroups * 2 * (watchedTurn + watchedSettle).Seconds())
	if views == 0 {
		return nil, errors.New("no view was drawn anew while browsers watched")
	}
	return []row{found.watchedRow(views)}, nil
}

func (c *compared) watchedRow(views float64) row {
	const p99 = 0.99
	with, alone := sum(c.with), sum(c.alone)
	ratio := c.ratio(p99)
	low, high := spread(p99, c.with, c.alone)
	sameLow, sameHigh := spread(p99, c.last, c.first)
	met := verdict(ratio <= watchedBound)
	if ratio <= watchedBound && high > watchedBound {
		met = "met, within the spread"
	}
	return row{fmt.Sprintf("p99 of RequestAddress over the socket, scraped each second at %d pools and watched by %d "+
		"browsers, against neither, %d callers: on this disk", scrapedPools, watching, watchedCallers),
		fmt.Sprintf("%.2fx", watchedBound),
		fmt.Sprintf("%.3fx, in 95 of 100 cases %.3fx to %.3fx (%.2f ms, %.2f ms without; median of the groups' ratios "+
			"%.3fx; p50 %.3fx; %dk requests; %.1f views a second were drawn anew); nothing against nothing %.3fx to %.3fx",
			ratio, low, high, with.quantile(p99), alone.quantile(p99), c.typical(p99), c.ratio(0.5),
			(with.count()+alone.count())/1000, views, sameLow, sameHigh),
		met}
}
