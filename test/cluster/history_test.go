package cluster

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	api "github.com/docker/go-plugins-helpers/ipam"
)

const optMAC = "com.docker.network.endpoint.macaddress"

// holder is who takes an address: an endpoint, as the number in its MAC. None is used for two endpoints.
type holder uint32

func (h holder) mac() string {
	return fmt.Sprintf("02:42:%02x:%02x:%02x:%02x", h>>24&0xff, h>>16&0xff, h>>8&0xff, h&0xff)
}

var heldBy = regexp.MustCompile(`held by .*MAC 02:42:(..):(..):(..):(..)\b`)

// holderIn reads who a refusal says has the address.
func holderIn(refusal string) (holder, bool) {
	m := heldBy.FindStringSubmatch(refusal)
	if m == nil {
		return 0, false
	}
	n, err := strconv.ParseUint(strings.Join(m[1:], ""), 16, 32)
	return holder(n), err == nil
}

// verdict is how an operation ended.
type verdict string

const (
	done  verdict = "done"
	taken verdict = "taken" // refused: another one has that address
	spare verdict = "spare" // refused: that address is claimed for a host's headroom
	full  verdict = "full"  // refused: no address is free
	away  verdict = "away"  // refused: the store is out of reach, and nothing was written
	lost  verdict = "lost"  // no answer, or one that says that the outcome is unknown
	other verdict = "other" // refused for a reason that there should not be
)

// operation is one call and what became of it. Times are since the history began.
type operation struct {
	host, caller int
	give         bool
	by           holder
	asked        netip.Addr // take: by address; give: what
	called       time.Duration

	verdict  verdict
	addr     netip.Addr // done
	holder   holder     // taken: by whom
	said     string     // lost and other: what was heard
	returned time.Duration
}

// answered tells whether the store decided it: a take that it granted or refused. A release is answered without it, too.
func (op *operation) answered() bool {
	return !op.give && (op.verdict == done || op.verdict == taken || op.verdict == full || op.verdict == spare)
}

// recorder is the history of one caller. Only counts is for others to read while it works.
type recorder struct {
	to     daemon
	pool   string
	begin  time.Time
	host   int
	number int
	ops    []operation
	counts *counts
}

// counts is what became of the operations of one host so far.
type counts struct{ answered, away, lost, unsent atomic.Int64 }

// do makes a call and writes it down. Where the message could not even be sent there is nothing to write down, and it is false.
func (r *recorder) do(op operation) (operation, bool) {
	op.host, op.caller = r.host, r.number
	op.called = time.Since(r.begin)
	var answer reply
	var err error
	if op.give {
		answer, err = call(r.to, "ReleaseAddress", api.ReleaseAddressRequest{PoolID: r.pool, Address: op.asked.String()})
	} else {
		asked := ""
		if op.asked.IsValid() {
			asked = op.asked.String()
		}
		answer, err = call(r.to, "RequestAddress", api.RequestAddressRequest{PoolID: r.pool, Address: asked, Options: map[string]string{optMAC: op.by.mac()}})
	}
	op.returned = time.Since(r.begin)
	if errors.Is(err, errNotSent) {
		r.counts.unsent.Add(1)
		return op, false
	}
	op.judge(answer, err)
	r.ops = append(r.ops, op)
	switch {
	case op.answered():
		r.counts.answered.Add(1)
	case op.verdict == away:
		r.counts.away.Add(1)
	case op.verdict == lost:
		r.counts.lost.Add(1)
	}
	return op, true
}

// judge reads the answer.
func (op *operation) judge(answer reply, err error) {
	refusal := answer.Err
	who, held := holderIn(refusal)
	switch {
	case err != nil:
		op.verdict, op.said = lost, err.Error()
	case refusal == "" && op.give:
		op.verdict, op.addr = done, op.asked
	case refusal == "":
		p, err := netip.ParsePrefix(answer.Address)
		op.verdict, op.addr = done, p.Addr()
		if err != nil || op.asked.IsValid() && op.addr != op.asked {
			op.verdict, op.said = other, "the answer is "+answer.Address
		}
	case op.give: // the engine forgets the address, whatever it is told
		op.verdict, op.said = other, refusal
	case strings.Contains(refusal, "unknown"):
		op.verdict, op.said = lost, refusal
	case strings.Contains(refusal, "out of reach"):
		op.verdict = away
	case op.asked.IsValid() && held:
		op.verdict, op.holder = taken, who
	case op.asked.IsValid() && strings.Contains(refusal, "held by the headroom of host"):
		op.verdict = spare
	case !op.asked.IsValid() && strings.Contains(refusal, "no address is free"):
		op.verdict = full
	default:
		op.verdict, op.said = other, refusal
	}
}

func (op operation) String() string {
	word := "take"
	if op.give {
		word = "give"
	}
	text := fmt.Sprintf("%9.3f-%9.3f ms host %d caller %2d: %s %v by %x: %s", float64(op.called.Microseconds())/1000, float64(op.returned.Microseconds())/1000,
		op.host, op.caller, word, op.asked, op.by, op.verdict)
	switch op.verdict {
	case done:
		text += " " + op.addr.String()
	case taken:
		text += fmt.Sprintf(" by %x", op.holder)
	case lost, other:
		text += ": " + op.said
	}
	return text
}

// never is a time after everything.
const never = time.Duration(math.MaxInt64)

// history is all that was asked and answered, in the order of the calls.
type history []operation

// With headroom a host gives addresses by itself where the store is away, so that a grant does not show that it has been reached.
func newHistory(recorders []*recorder, headroom bool) (h history) {
	for _, r := range recorders {
		h = append(h, r.ops...)
	}
	slices.SortFunc(h, func(a, b operation) int { return cmp.Compare(a.called, b.called) })
	h.boundReleases(headroom)
	h.placeLost()
	return h
}

// boundReleases moves the end of each release to where its effect must have been seen. A host whose store is away keeps a
// release and says yes; it delivers it before its next request there. So a release has come into force when a take that its host
// began after the answer was answered by the store.
func (h history) boundReleases(headroom bool) {
	soonest := map[int]time.Duration{} // by host: the first return among the takes that were called later than here
	type bound struct{ at, until time.Duration }
	bounds := map[int][]bound{}
	for i := len(h) - 1; i >= 0; i-- {
		op := &h[i]
		if !op.answered() || headroom && op.verdict == done {
			continue
		}
		until, ok := soonest[op.host]
		if !ok || op.returned < until {
			until = op.returned
		}
		soonest[op.host] = until
		bounds[op.host] = append(bounds[op.host], bound{op.called, until})
	}
	for _, list := range bounds {
		slices.Reverse(list)
	}
	for i := range h {
		op := &h[i]
		if !op.give {
			continue
		}
		if op.verdict != done {
			op.returned = never
			continue
		}
		list := bounds[op.host]
		at, _ := slices.BinarySearchFunc(list, op.returned, func(b bound, t time.Duration) int { return cmp.Compare(b.at, t) })
		op.returned = never
		if at < len(list) {
			op.returned = list[at].until
		}
	}
}

// placeLost gives each take whose outcome is unknown the address that it may have taken, which its holder, asking again,
// was told; and lets it take effect at any time from its call on. Where the holder was told that there is none, it took none.
func (h history) placeLost() {
	got := map[holder]netip.Addr{}
	for _, op := range h {
		if !op.give && op.verdict == done {
			got[op.by] = op.addr
		}
	}
	for i := range h {
		op := &h[i]
		if op.give || op.verdict != lost {
			continue
		}
		op.returned = never
		op.addr = op.asked
		if !op.asked.IsValid() {
			op.addr = got[op.by]
		}
	}
}
