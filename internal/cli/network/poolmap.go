package network

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"strings"

	"berth/internal/ipam"
)

const (
	foldAt = 64 // addresses on a line of a map
	foldIn = 4  // more equal lines than this in a row become one
)

// mapRow is one line of a map, labelled with its first address.
type mapRow struct{ label, text string }

// excludedIn returns the map of a pool, with "-" at excluded addresses.
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
			text[i] = ipam.MarkExcluded
		}
	}
	return string(text)
}

// distance counts the addresses from start to a. The result must be at most ipam.MaxMap.
func distance(start, a netip.Addr) int {
	x, y := start.As16(), a.As16()
	return int(binary.BigEndian.Uint64(y[8:]) - binary.BigEndian.Uint64(x[8:]))
}

// foldMap draws a pool's map in lines of foldAt addresses. The map begins with the address first. More than foldIn
// equal lines in a row become one line.
func foldMap(first netip.Addr, m string) []mapRow {
	var rows []mapRow
	for at := 0; at < len(m); {
		start := addrAt(first, at)
		if run := uniform(m[at:]); run > foldIn*foldAt {
			rows = append(rows, mapRow{start.String(), fmt.Sprintf("all %s to %s: %d lines, %d addresses",
				ipam.MarkWords(m[at]), addrAt(first, at+run-1), (run+foldAt-1)/foldAt, run)})
			at += run
			continue
		}
		line := m[at:min(at+foldAt, len(m))]
		rows = append(rows, mapRow{start.String(), line})
		at += len(line)
	}
	return rows
}

// uniform returns how many characters at the start of a map are the same, in whole lines or up to the map's end.
func uniform(m string) int {
	run := len(m) - len(strings.TrimLeft(m, m[:1]))
	if run == len(m) {
		return run
	}
	return run / foldAt * foldAt
}

// addrAt returns the nth address after start, for n up to ipam.MaxMap.
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
