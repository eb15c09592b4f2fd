package page

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
)

// line is a graph of the use over time, the oldest value on the left.
type line struct {
	Label  string
	Level  string // the current level
	Width  int
	Points string
}

// lineHeight is the height of 100 % in a line's own units.
const lineHeight = 24

// lineOf draws percentages with a maximum number of points, or returns nil if there are none. A missing value repeats
// the one before it.
func lineOf(values []int, points int, label string) *line {
	if len(values) < 2 {
		return nil
	}
	each := (len(values) + points - 1) / points
	var drawn []int
	last := 0
	for part := range slices.Chunk(values, each) {
		if highest := slices.Max(part); highest >= 0 {
			last = highest
		}
		drawn = append(drawn, last)
	}
	var b strings.Builder
	for i, percent := range drawn {
		fmt.Fprintf(&b, "%d,%d ", i, lineHeight-percent*lineHeight/100)
	}
	lowest, highest := 100, 0
	for _, percent := range values {
		if percent >= 0 {
			lowest, highest = min(lowest, percent), max(highest, percent)
		}
	}
	return &line{Label: fmt.Sprintf("%s: %d to %d%%, now %d%%", label, lowest, highest, last), Level: levelOf(last),
		Width: max(len(drawn)-1, 1), Points: strings.TrimSpace(b.String())}
}

// sparkPoints is the maximum number of points of a line in a list.
const sparkPoints = 24

// trend returns the last day of a network.
func (p *Page) trend(space, network string) cell {
	return cell{Line: lineOf(p.cfg.Trend.Of(space, network, "", "").Day, sparkPoints, "last day")}
}

// chartPoints is the maximum number of points of a chart.
const chartPoints = 168

// charts returns the last hour, day and week of a pool.
func (p *Page) charts(space, network string, subnet netip.Prefix, pool string) row {
	h := p.cfg.Trend.Of(space, network, subnet.String(), pool)
	return row{{Line: lineOf(h.Hour, chartPoints, "last hour")}, {Line: lineOf(h.Day, chartPoints, "last day")},
		{Line: lineOf(h.Week, chartPoints, "last week")}}
}
