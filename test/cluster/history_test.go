package cluster

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"net"
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

// holder is an endpoint that takes an address, as the number in its MAC. No two endpoints share one.
type holder uint32

func (h holder) mac() string {
	return fmt.Sprintf("02:42:%02x:%02x:%02x:%02x", h>>24&0xff, h>>16&0xff, h>>8&0xff, h&0xff)
}

var (
	heldBy   = regexp.MustCompile(`held by .*MAC 02:42:(..):(..):(..):(..)\b`)
	notGiven = regexp.MustCompile(`so Berth does not give ([^ ;]+)`)
)

// holderIn reads from a refusal which holder has the address.
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
	taken verdict = "taken" // refused: another holder has that address
	spare verdict = "spare" // refused: a host's headroom claims that address
	full  verdict = "full"  // refused: no address is free
	away  verdict = "away"  // refused: the store is out of reach, or not trusted, and nothing was written
	lost  verdict = "lost"  // no answer, or an answer that the outcome is unknown
	other verdict = "other" // refused for a reason that should not occur
)

// operation is one call and its outcome. Times count from the start of the history.
type operation struct {
	host, caller int
	give         bool
	by           holder
	asked        netip.Addr // take: the requested address; give: the released one
	called       time.Duration

	verdict  verdict
	addr     netip.Addr // done; lost: the address that he may have, if known
	holder   holder     // taken: the other holder
	said     string     // lost and other: the answer
	returned time.Duration

	// What the whole history reveals about a take (newHistory).
	until  time.Duration // by then its host has delivered all that it kept before the answer
	named  bool          // lost: the answer says that its host gives addr back
	again  bool          // lost: addr is the answer to his second request
	beside bool          // may have taken an address that no answer names (stray_test.go)
}

// answered reports whether the store decided the operation: a take that it granted or refused. A release is
// answered without the store too.
func (op *operation) answered() bool {
	return !op.give && (op.verdict == done || op.verdict == taken || op.verdict == full || op.verdict == spare)
}

// recorder is the history of one caller. Others may read only counts while it works.
type recorder struct {
	to     daemon
	pool   string
	begin  time.Time
	host   int
	number int
	ops    []operation
	counts *counts
}

// counts are the outcomes of one host's operations so far. Refusals because the store is away decide nothing.
type counts struct{ decided, answered, away, lost, unsent atomic.Int64 }

// do makes a call and records it. If the message could not be sent, it records nothing and returns false.
func (r *recorder) do(op operation) (operation, bool) {
	op.host, op.caller = r.host, r.number
	op.called = time.Since(r.begin)
	var answer reply
	var err error
	if op.give {
		answer, err = call(r.to, "ReleaseAddress",
			api.ReleaseAddressRequest{PoolID: r.pool, Address: op.asked.String()})
	} else {
		asked := ""
		if op.asked.IsValid() {
			asked = op.asked.String()
		}
		answer, err = call(r.to, "RequestAddress",
			api.RequestAddressRequest{PoolID: r.pool, Address: asked, Options: map[string]string{optMAC: op.by.mac()}})
	}
	op.returned = time.Since(r.begin)
	if dial := new(net.OpError); errors.As(err, &dial) && dial.Op == "dial" { // it was not sent
		r.counts.unsent.Add(1)
		return op, false
	}
	op.judge(answer, err)
	r.ops = append(r.ops, op)
	if op.verdict != away {
		r.counts.decided.Add(1)
	}
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
	case op.give: // the engine forgets the address whatever the answer
		op.verdict, op.said = other, refusal
	case strings.Contains(refusal, "unknown"):
		op.verdict, op.said = lost, refusal
		if m := notGiven.FindStringSubmatch(refusal); m != nil {
			op.addr, err = netip.ParseAddr(m[1])
			op.named = err == nil
		}
	case strings.Contains(refusal, "out of reach"), distrusts(refusal):
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

// distrusts reports whether a refusal is for lack of trust in the store, which went back to an earlier state.
func distrusts(refusal string) bool {
	return strings.Contains(refusal, "not trusted the shared store") ||
		strings.Contains(refusal, "the shared store went back")
}

func (op operation) String() string {
	word := "take"
	if op.give {
		word = "give"
	}
	text := fmt.Sprintf("%9.3f-%9.3f ms host %d caller %2d: %s %v by %x: %s", float64(op.called.Microseconds())/1000,
		float64(op.returned.Microseconds())/1000,
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

// never is a time later than any other.
const never = time.Duration(math.MaxInt64)

// history is all requests and answers, in the order of the calls.
type history []operation

// With headroom a host gives addresses by itself while the store is away, so a grant does not show that it reached
// the store.
func newHistory(recorders []*recorder, headroom bool) (h history) {
	for _, r := range recorders {
		h = append(h, r.ops...)
	}
	slices.SortFunc(h, func(a, b operation) int { return cmp.Compare(a.called, b.called) })
	h.boundReleases(headroom)
	h.placeLost()
	h.noteBeside(headroom)
	return h
}

// bound says that by `until` a host has told the store what it kept at `at`.
type bound struct{ at, until time.Duration }

// bounds are the bounds of each host, in order. A host whose store is away accepts releases and keeps them. It
// delivers them before its next request to the store. So what it kept is in force once the store has answered a
// take that began later.
type bounds map[int][]bound

func (h history) bounds(headroom bool) bounds {
	soonest := map[int]time.Duration{} // by host: the first return among the takes called later than this one
	all := bounds{}
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
		all[op.host] = append(all[op.host], bound{op.called, until})
	}
	for _, list := range all {
		slices.Reverse(list)
	}
	return all
}

// of is the time by which a host has told the store what it kept at a time.
func (b bounds) of(host int, kept time.Duration) time.Duration {
	list := b[host]
	at, _ := slices.BinarySearchFunc(list, kept, func(b bound, t time.Duration) int { return cmp.Compare(b.at, t) })
	if at == len(list) {
		return never
	}
	return list[at].until
}

// boundReleases moves the end of each release to the time by which its effect must have been visible, and notes
// when the releases that a take left behind are in force.
func (h history) boundReleases(headroom bool) {
	all := h.bounds(headroom)
	for i := range h {
		switch op := &h[i]; {
		case !op.give:
			op.until = all.of(op.host, op.returned)
		case op.verdict == done:
			op.returned = all.of(op.host, op.returned)
		default:
			op.returned = never
		}
	}
}

// placeLost gives each take with an unknown outcome the address that it may have taken: the one that the answer
// names, the requested one, or the answer to its holder's second request.
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
		if !op.named {
			op.addr = op.asked
		}
		if !op.addr.IsValid() {
			op.addr = got[op.by]
		}
		op.again = !op.named && op.addr.IsValid() && op.addr == got[op.by]
	}
}
