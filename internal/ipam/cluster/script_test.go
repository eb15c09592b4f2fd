package cluster

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"berth/internal/ipam"
	"berth/store"
	"berth/store/mem"
)

// stage is hosts that share a store, for scripts. A line is a step of one host, and what comes of it:
//
//	take mac=1 web          host a asks for an address through the pool p
//	b: take mac=1 -> .2     host b does, and it is 10.77.0.2
//	take mac=1 ! away       it is refused so, with a part of what is said behind a semicolon
//
// The steps of a host:
//
//	lan N [.N-.N]       the network lan with so much headroom, of this range, the pool p on it, and a look
//	pool NAME; unpool [NAME]; free, spare [NAME]: the headroom that can be given out, and how much it is
//	take [NAME] [mac=N] [ip=.N] [pool=NAME] [gateway] [telling]; give .N [POOL]
//	cut, heal; cutnext committed|lost, losenext committed|lost: the next update, of which nobody hears
//	boot, later, open   the daemon starts, or does so a second later; the shared store is opened
//	look, run, read     what Run does once; Run; whether the shared store can be read
//	tell; telling, told the store hears of the uses of headroom; it does now, and that is known at "told"
//	headroom N, quarantine D, exclude .N, network.rm, drain HOST, undrain HOST, remove HOST [off], admit HOST
//	wait D, full        its clock moves; its disk is full
//	silent, drop        it announces itself no more; its headroom is dropped, as when its store is put back
//	store, size         what is held in the shared store; of how many addresses
//	lease .N            KIND MAC HOST NAME; none
//	state               whether the store is reached, what waits, and of each attachment the network, and the headroom
//	                    wanted, used and claimed
//	queued              the releases that wait: .N; "unknown" where the lease is, "later" where there is another one
//	kept, warned        whether the host has anything to tell; how many warnings there are
//	sound               the records of both stores fit one another
type stage struct {
	t      *testing.T
	common *mem.Store
	hosts  map[string]*sharingHost
	pools  map[string]ipam.ID // by the name that scripts have for them
	told   func()             // of "telling"
}

// plays runs a script.
func plays(t *testing.T, script string) *stage {
	t.Helper()
	st := &stage{t: t, common: mem.New(), hosts: map[string]*sharingHost{}, pools: map[string]ipam.ID{}}
	st.run(script)
	return st
}

func (st *stage) run(script string) {
	st.t.Helper()
	for line := range strings.Lines(script) {
		if line = strings.TrimSpace(line); line == "" || line[0] == '#' {
			continue
		}
		step, want, answered := strings.Cut(line+" ", " -> ")
		step, refusal, refused := strings.Cut(step, " ! ")
		host := "a"
		if name, rest, other := strings.Cut(step, ": "); other {
			host, step = name, rest
		}
		got, err := st.step(st.host(host), strings.Fields(step))
		kind, says, _ := strings.Cut(strings.TrimSpace(refusal), "; ")
		switch {
		case refused && (kindOf(err) != kind || !strings.Contains(told(err), says)):
			st.t.Fatalf("%s\n\tgot %s, %s: %v", line, got, kindOf(err), err)
		case !refused && err != nil:
			st.t.Fatalf("%s\n\t%v", line, err)
		case answered && got != strings.TrimSpace(want):
			st.t.Fatalf("%s\n\tgot %s", line, got)
		}
	}
}

// host is the host of that name, which is there when it is named first.
func (st *stage) host(name string) *sharingHost {
	st.t.Helper()
	h := st.hosts[name]
	if h == nil {
		h = newSharingHost(st.t, st.common, name)
		h.open()
		st.hosts[name] = h
	}
	return h
}

// kindOf names the kind of a refusal. One of an unreachable store says since when, and what helps; else it is bare.
func kindOf(err error) string {
	for _, one := range []struct {
		name string
		kind error
	}{{"unknown", store.ErrUnknown}, {"host", ipam.ErrHost}, {"inuse", ipam.ErrInUse}, {"notfound", ipam.ErrNotFound},
		{"exhausted", ipam.ErrExhausted}, {"away", ipam.ErrAway}} {
		if !errors.Is(err, one.kind) {
			continue
		}
		if one.name == "away" && (!strings.Contains(told(err), "out of reach since 20") ||
			!strings.Contains(told(err), "[status")) {
			return "bare"
		}
		return one.name
	}
	return "other"
}

func (st *stage) step(h *sharingHost, words []string) (string, error) {
	st.t.Helper()
	ctx := context.Background()
	verb, args := words[0], words[1:]
	first := append(args, "")[0]
	switch verb {
	case "lan":
		st.lan(h, number(st.t, first), args[1:])
		return "", h.look()
	case "pool":
		grant, err := h.RequestPool(ctx, ipam.PoolRequest{Network: "lan", CIDR: lanCIDR})
		st.pools[first] = grant.ID
		return "", err
	case "unpool":
		return "", h.ReleasePool(ctx, st.pool(first))
	case "free":
		return short(h.free(st.pool(first))), nil
	case "spare":
		return strconv.Itoa(len(h.free(st.pool(first)))), nil
	case "take":
		addr, err := h.ask(st.request(args))
		return short([]netip.Addr{addr}), err
	case "give":
		return "", h.ReleaseAddress(ctx, st.pool(append(args, "", "")[1]), addrs(first[1:])[0])
	case "look":
		return "", h.look()
	case "run":
		return "", h.Run(ctx)
	case "open":
		_, err := h.attempt()
		return "", err
	case "read":
		_, err := h.service()
		return "", err
	case "tell":
		svc, _ := h.service()
		return "", h.tellUses(ctx, svc, h.usesPage())
	case "store", "size", "lease":
		return st.stored(verb, first), nil
	case "state", "queued", "kept", "warned":
		return st.kept(h, verb), nil
	default:
		if e := st.edit(verb, args); e != nil {
			_, err := h.Edit(ctx, ipam.EditOptions{}, e)
			return "", err
		}
		st.befalls(h, verb, first)
	}
	return "", nil
}

// befalls is what comes over a host.
func (st *stage) befalls(h *sharingHost, verb, arg string) {
	st.t.Helper()
	switch verb {
	case "cut":
		h.handle.Cut(errCut)
	case "heal":
		h.handle.Heal()
	case "cutnext":
		h.handle.CutNext(arg == "committed", errCut)
	case "losenext":
		h.handle.LoseNext(arg == "committed")
	case "boot":
		h.boot()
	case "later":
		h.bootLater()
	case "full":
		h.left = 0
	case "silent":
		h.handle.Announce(h.name, nil)
	case "drop":
		fine(st.t, DropHeadroom(context.Background(), h.own))
	case "telling":
		st.told = h.tellsUses(h.open())
	case "told":
		if st.told != nil {
			st.told()
		}
	case "sound":
		h.sound()
	case "wait":
		d, err := time.ParseDuration(arg)
		fine(st.t, err)
		h.now = h.now.Add(d)
	default:
		st.t.Fatalf("there is no step %s", verb)
	}
}

// edit reads a step that is an edit; nil where it is none.
func (st *stage) edit(verb string, args []string) ipam.Edit {
	st.t.Helper()
	switch verb {
	case "headroom":
		return &ipam.ModifyNetwork{Network: "lan", Headroom: new(number(st.t, args[0]))}
	case "quarantine":
		d, err := time.ParseDuration(args[0])
		fine(st.t, err)
		return &ipam.ModifyNetwork{Network: "lan", Quarantine: new(ipam.Duration(d))}
	case "network.rm":
		return &ipam.RemoveNetwork{Network: "lan"}
	case "exclude":
		return &ipam.AddExclusion{Network: "lan", Range: mustRange(st.t, "10.77.0"+args[0])}
	case "drain", "undrain":
		return &ipam.DrainHost{Name: args[0], Undo: verb == "undrain"}
	case "remove":
		return &ipam.RemoveHost{Name: args[0], Off: len(args) > 1}
	case "admit":
		return &ipam.AdmitHost{Name: args[0]}
	}
	return nil
}

// lan makes the network and attaches a Docker network to it.
func (st *stage) lan(h *sharingHost, headroom int, ranges []string) {
	st.t.Helper()
	network := lanWith(headroom, lanCIDR)
	network.Subnets[0].Pool = len(ranges) == 0
	h.edit(network)
	for _, text := range ranges {
		r := mustRange(st.t, strings.ReplaceAll(text, ".", "10.77.0."))
		h.edit(&ipam.AddPool{Network: "lan", Range: r})
	}
	st.pools["p"] = h.pool()
}

// pool is an attachment; of a name that nobody has one that is not there.
func (st *stage) pool(name string) ipam.ID {
	if id, there := st.pools[cmpOr(name, "p")]; there {
		return id
	}
	return ipam.NewID()
}

func (st *stage) request(words []string) ipam.AddressRequest {
	st.t.Helper()
	req := ipam.AddressRequest{Pool: st.pool("")}
	for _, word := range words {
		key, value, _ := strings.Cut(word, "=")
		switch key {
		case "mac":
			req.MAC = testMAC(number(st.t, value))
		case "ip":
			req.Preferred = addrs(value[1:])[0]
		case "pool":
			req.Pool = st.pool(value)
		case "gateway":
			req.Gateway = true
		case "telling":
			req.Telling = true
		default:
			req.Name = word
		}
	}
	return req
}

// stored describes what the shared store has.
func (st *stage) stored(verb, addr string) string {
	st.t.Helper()
	all := inStore(st.t, st.common)
	switch verb {
	case "store":
		return strings.ReplaceAll(strings.Join(all, "; "), "10.77.0", "")
	case "size":
		return strconv.Itoa(len(all))
	}
	l := heldAt(st.t, st.common, addrs(addr[1:])[0])
	if l == nil {
		return "none"
	}
	return strings.TrimSpace(fmt.Sprintf("%s %d %s %s", l.Kind, int(l.MAC[4])<<8+int(l.MAC[5]), l.Host, l.Name))
}

// kept describes what a host has to tell the shared store, and what it makes of it.
func (st *stage) kept(h *sharingHost, verb string) string {
	st.t.Helper()
	switch verb {
	case "warned":
		return strconv.Itoa(len(h.warned))
	case "kept":
		return strconv.FormatBool(h.keeps())
	case "state":
		return st.describe(h.State())
	}
	var all []string
	for _, q := range h.outbox {
		l := heldAt(st.t, st.common, q.Address)
		switch {
		case !q.Address.IsValid():
			all = append(all, "pool")
		case q.Lease == 0:
			all = append(all, short([]netip.Addr{q.Address})+" unknown")
		case l != nil && l.ID != q.Lease:
			all = append(all, short([]netip.Addr{q.Address})+" later")
		default:
			all = append(all, short([]netip.Addr{q.Address}))
		}
	}
	return strings.Join(all, " ")
}

// describe is what a host knows of the shared store.
func (st *stage) describe(s ipam.SharedState) string {
	st.t.Helper()
	if s.Since.IsZero() == (s.Err != nil) || s.Oldest.IsZero() == (s.Waiting > 0) || s.Mark != sharedMark {
		st.t.Fatalf("%+v", s)
	}
	text := "reached"
	switch {
	case errors.Is(s.Err, ipam.ErrHost):
		text = "refused"
	case s.Err != nil:
		text = "away"
	}
	if s.Fresh.IsZero() {
		text += " never"
	}
	text += fmt.Sprint(" waiting ", s.Waiting)
	for _, one := range s.Headroom {
		text += fmt.Sprintf(" %s %d-%d+%d", one.Network, one.Wanted, one.Used, one.Claimed)
	}
	return text + map[bool]string{true: " draining"}[s.Host == ipam.HostDraining]
}

func short(all []netip.Addr) string {
	var texts []string
	for _, addr := range all {
		texts = append(texts, strings.TrimPrefix(addr.String(), "10.77.0"))
	}
	return strings.Join(texts, " ")
}

func number(t *testing.T, text string) int {
	t.Helper()
	n, err := strconv.Atoi(text)
	fine(t, err)
	return n
}

// eachWay runs a script with each of its words in brackets, as in "[committed|lost]", chosen in each way; an empty
// choice leaves the rest of its line out.
func eachWay(t *testing.T, script string) {
	t.Helper()
	open := strings.Index(script, "[")
	if open < 0 {
		plays(t, script)
		return
	}
	end := open + strings.Index(script[open:], "]")
	for _, word := range slices.Sorted(strings.SplitSeq(script[open+1:end], "|")) {
		eachWay(t, script[:open]+word+script[end+1:])
	}
}
