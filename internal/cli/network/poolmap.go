package network

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"strings"

	"berth/internal/ipam"
)

const (
	foldAt = 64 // characters to a line of a map
	foldIn = 4  // so many lines in a row that are all the same are still drawn
)

// mapRow is one line of a drawn map: the address that it begins with, and what it shows.
type mapRow struct{ label, text string }

// excludedIn is the map of a pool in which what is excluded differs from what is taken.
func excludedIn(p *ipam.PoolPlan, excluded []ipam.ExclusionPlan) string {
	text := []byte(p.Map)
	for _, e := range excluded {
		if len(text) == 0 || e.End.Less(p.Start) || p.End.Less(e.Start) {
			continue
		}
		from, to := 0, len(text)-1
		if p.Start.Less(e.Start) {
			from = distance(p.Start, e.Start)
		}
		if e.End.Less(p.End) {
			to = distance(p.Start, e.End)
		}
		for i := from; i <= to; i++ {
			text[i] = '-'
		}
	}
	return string(text)
}

// distance is how far a is behind start, at most ipam.MaxMap.
func distance(start, a netip.Addr) int {
	x, y := start.As16(), a.As16()
	return int(binary.BigEndian.Uint64(y[8:]) - binary.BigEndian.Uint64(x[8:]))
}

// foldMap draws the map of a pool that begins with an address in lines of foldAt, and has one line stand for more than
// foldIn that are all the same.
func foldMap(first netip.Addr, m string) []mapRow {
	var rows []mapRow
	for at := 0; at < len(m); {
		start := addrAt(first, at)
		if run := uniform(m[at:]); run > foldIn*foldAt {
			rows = append(rows, mapRow{start.String(), fmt.Sprintf("all %s to %s: %d lines, %d addresses",
				meaning(m[at]), addrAt(first, at+run-1), (run+foldAt-1)/foldAt, run)})
			at += run
			continue
		}
		line := m[at:min(at+foldAt, len(m))]
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
	switch c {
	case '.':
		return "free"
	case '-':
		return "excluded"
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
