package cluster

import (
	"cmp"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"
)

// stray is an address that a take may have taken without its holder knowing, because etcd's answer to the host was
// lost. The host releases it: it records the release before it answers the take, and delivers it before its next
// request to etcd. Until then others are refused the address, and may find the pool full.
type stray struct {
	op   *operation
	addr netip.Addr
	sure bool // released in any case; otherwise its holder may also have kept it, and learned so later
}

// soonestUnknown is the shortest time until a daemon takes etcd's answer for lost: a request needs this much time
// left for its commit to be sent (store/etcd).
const soonestUnknown = 375 * time.Millisecond

// noteBeside marks the takes that may have a stray that no answer names: a daemon was killed after it had recorded
// the release and before it could answer, or the take got another address, from the headroom.
func (h history) noteBeside(headroom bool) {
	for i := range h {
		op := &h[i]
		op.beside = !op.give && !op.asked.IsValid() &&
			(op.verdict == lost && !op.named || headroom && op.verdict == done &&
				op.returned-op.called >= soonestUnknown)
	}
}

// strays are the strays whose address the history knows: the take's answer names it, or a refusal says that the
// holder has an address that he never asked for and never got.
func (h history) strays() (all []stray) {
	own := map[holder][]netip.Addr{}
	for _, op := range h {
		if !op.give && op.addr.IsValid() {
			own[op.by] = append(own[op.by], op.addr)
		}
	}
	seen := map[holder][]netip.Addr{} // other addresses
	for _, op := range h {
		if op.verdict == taken && !slices.Contains(own[op.holder], op.asked) &&
			!slices.Contains(seen[op.holder], op.asked) {
			seen[op.holder] = append(seen[op.holder], op.asked)
		}
	}
	for i := range h {
		op := &h[i]
		if !op.give && op.verdict == lost && op.addr.IsValid() {
			all = append(all, stray{op, op.addr, !op.again})
		}
		if op.beside {
			for _, addr := range seen[op.by] {
				all = append(all, stray{op, addr, true})
			}
		}
	}
	return all
}

// held is the time during which a stray may have been with its holder.
func (s stray) held() tenure { return tenure{s.op.by, s.op.called, s.op.until} }

// outstayed are the refusals that name a stray's holder too late: they began after an answered take of the host
// that was itself asked after the one with the stray. Until then, and no longer, an unrequested address may have a
// holder.
func (h history) outstayed() (found []operation) {
	over := map[holder]map[netip.Addr]time.Duration{}
	for _, s := range h.strays() {
		if !s.sure {
			continue
		}
		if over[s.op.by] == nil {
			over[s.op.by] = map[netip.Addr]time.Duration{}
		}
		over[s.op.by][s.addr] = max(over[s.op.by][s.addr], s.op.until)
	}
	tenures := h.tenures()
	for _, op := range h {
		until, ok := over[op.holder][op.asked]
		has := slices.ContainsFunc(tenures[op.asked], func(t tenure) bool { return t.by == op.holder })
		if op.verdict == taken && ok && op.called > until && !has {
			found = append(found, op)
		}
	}
	return found
}

// unnamed are the times when a take may hold an address that nothing else in the history mentions, in order.
func (h history) unnamed() (all []tenure) {
	for i := range h {
		if op := &h[i]; op.beside {
			all = append(all, stray{op: op}.held())
		}
	}
	slices.SortFunc(all, func(a, b tenure) int { return cmp.Compare(a.from, b.from) })
	return all
}

// TestStraysNotice: an address taken without an answer explains refusals that name its holder until the host's
// next answer, and none later. The same holds if no answer names it and the holder got another one.
func TestStraysNotice(t *testing.T) {
	a, b := netip.MustParseAddr("10.77.0.9"), netip.MustParseAddr("10.77.0.10")
	ops := map[string]operation{
		"lost":    {host: 1, by: 1, verdict: lost, addr: a, named: true},
		"another": {host: 1, by: 1, verdict: done, addr: b}, // from the headroom
		"refused": {host: 2, by: 2, asked: a, verdict: taken, holder: 1},
		"taker":   {host: 2, by: 3, asked: a, verdict: done, addr: a},
		"answer":  {host: 1, by: 4, verdict: full}, // the host's next one from etcd
	}
	// each operation with the seconds of its call and its return, and "explained" or who has outstayed
	for row := range strings.Lines(strings.TrimSpace(`
		named | lost 0 2, refused 1 3, taker 4 5 | explained
		not taken | lost 0 2, taker 3 4 | explained
		named, until answered | lost 0 2, answer 3 5, refused 4 6 | explained
		named, and longer | lost 0 2, answer 3 5, refused 6 7 | outstayed
		named, and taken later | lost 0 2, taker 3 4, refused 5 6 | -
		named, and kept | lost 0 2, taker 3 4, another 5 6, refused 7 8 | -
		beside | another 0 2, refused 1 3, taker 4 5 | explained
		beside, until answered | another 0 2, answer 3 5, refused 4 6 | explained
		beside, and longer | another 0 2, answer 3 5, refused 6 7 | outstayed
		answered too soon for one | another 2 2, refused 3 4 | -
		of nobody | refused 1 3 | -
	`)) {
		c := strings.Split(strings.TrimSpace(row), " | ")
		var h history
		for text := range strings.SplitSeq(c[1], ", ") {
			words := strings.Fields(text)
			op := ops[words[0]]
			op.called, op.returned = seconds(words[1]), seconds(words[2])
			h = append(h, op)
		}
		h.boundReleases(true)
		h.placeLost()
		h.noteBeside(true)
		if err := h.linearizable(); (err == nil) != (c[2] == "explained") {
			t.Errorf("%s: explained %v: %v", c[0], err == nil, err)
		}
		if found := h.outstayed(); (len(found) == 1) != (c[2] == "outstayed") || len(found) > 1 {
			t.Errorf("%s: outstayed %v", c[0], found)
		}
	}
}

// seconds reads a time of a table.
func seconds(digit string) time.Duration { return time.Duration(digit[0]-'0') * time.Second }
