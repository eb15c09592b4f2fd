package cluster

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"
)

var reportFile = flag.String("report", "", "write a table of what TestFaults saw to this `file`")

// report is what one history came to.
type report struct {
	name                                           string
	rounds, operations, unknown, away, full, taken int
	doubled, strays                                int
	gapOfAll, gapOfOne, longestCall, longestStray  time.Duration
	span                                           time.Duration
}

// reports are those of this run.
var reports []report

// decided is how many operations were answered other than with a word about the store.
func (r report) decided() int { return r.operations - r.away }

func (h history) report(name string, tr *trial) report {
	r := report{name: name, rounds: tr.rounds, operations: len(h), doubled: len(h.doubled())}
	for _, op := range h {
		switch op.verdict {
		case lost:
			r.unknown++
		case away:
			r.away++
		case full:
			r.full++
		case taken:
			r.taken++
		}
	}
	r.strays, r.longestStray = h.strayTimes()
	r.gapOfAll, r.span = h.gap(func(operation) bool { return true })
	for i := range tr.parties {
		one, _ := h.gap(func(op operation) bool { return op.host == i })
		r.gapOfOne = max(r.gapOfOne, one)
	}
	for _, c := range tr.clients {
		for _, op := range c.ops {
			r.longestCall = max(r.longestCall, op.returned-op.called)
		}
	}
	return r
}

// gap is the longest time in which none of the takes that are meant was answered by the store, and the time from the
// first answer to the last.
func (h history) gap(meant func(operation) bool) (longest, span time.Duration) {
	var times []time.Duration
	for _, op := range h {
		if op.answered() && meant(op) {
			times = append(times, op.returned)
		}
	}
	slices.Sort(times)
	for i := 1; i < len(times); i++ {
		longest = max(longest, times[i]-times[i-1])
	}
	return longest, times[len(times)-1] - times[0]
}

func (r report) String() string {
	return fmt.Sprintf("%s, %d times: %d operations in %.1f s, %d unknown, %d refused because away, %d as taken, %d "+
		"as full; %d doubled; "+
		"refused for %d addresses that were taken without an answer, the last time %s after it; longest without an "+
		"answer to a take: of all hosts %s, of one host %s; longest call %s",
		r.name, r.rounds, r.operations, r.span.Seconds(), r.unknown, r.away, r.taken, r.full, r.doubled,
		r.strays, short(r.longestStray), short(r.gapOfAll), short(r.gapOfOne), short(r.longestCall))
}

func short(d time.Duration) string { return fmt.Sprintf("%.2f s", d.Seconds()) }

func writeReports() error {
	var b strings.Builder
	for _, r := range reports {
		fmt.Fprintf(&b, "| %s | %d | %d | %d | %d | %d | %s | %s | %s |\n", r.name, r.rounds, r.operations, r.unknown,
			r.away, r.doubled,
			short(r.gapOfAll), short(r.gapOfOne), short(r.longestCall))
	}
	return os.WriteFile(*reportFile, []byte(b.String()), 0o644)
}
