package network

import (
	"fmt"
	"net/netip"
	"strings"

	"berth/internal/ipam"
)

const (
	foldAt = 64 // characters to a line of a map
	foldIn = 4  // so many lines in a row that are all free, or all taken, are still drawn
)

// mapRow is one line of a drawn map: the address that it begins with, and what it shows.
type mapRow struct{ label, text string }

// foldMap draws the map of a pool in lines of foldAt, and has one line stand for more than foldIn that are all free or
// all taken.
func foldMap(p *ipam.PoolPlan) []mapRow {
	var rows []mapRow
	for at := 0; at < len(p.Map); {
		start := addrAt(p.Start, at)
		if run := uniform(p.Map[at:]); run > foldIn*foldAt {
			rows = append(rows, mapRow{start.String(), fmt.Sprintf("all %s to %s: %d lines, %d addresses",
				meaning(p.Map[at]), addrAt(p.Start, at+run-1), (run+foldAt-1)/foldAt, run)})
			at += run
			continue
		}
		line := p.Map[at:min(at+foldAt, len(p.Map))]
		rows = append(rows, mapRow{start.String(), line})
		at += len(line)
	}
	return rows
}

// uniform is the length of the part of a map that has one character only and ends with a line, or with the map.
func uniform(m string) int {
	run := len(m) - len(strings.TrimLeft(m, m[:1]))
	if run == len(m) {
		return run
	}
	return run / foldAt * foldAt
}

func meaning(c byte) string {
	if c == '.' {
		return "free"
	}
	return "taken"
}

// addrAt is the nth address behind start, of at most ipam.MaxMap.
func addrAt(start netip.Addr, n int) netip.Addr {
	b := start.AsSlice()
	for i := len(b) - 1; n > 0 && i >= 0; i-- {
		n += int(b[i])
		b[i] = byte(n)
		n >>= 8
	}
	a, _ := netip.AddrFromSlice(b)
	return a
}
