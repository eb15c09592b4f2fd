package cluster

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"berth/internal/ipam"
	"berth/internal/ipam/edit"
	"berth/internal/ipam/ledger"
	"berth/store"
	"berth/store/mem"
)

// stage is hosts that share a store, for scripts. A line is a step of one host and its result:
//
//	take mac=1 web          host a asks for an address through the pool p
//	b: take mac=1 -> .2     host b does, and gets 10.77.0.2
//	take mac=1 ! away       the request is refused with this kind; after a semicolon, a part of the message
//
// The steps of a host:
//
//	lan N [.N-.N]       the network lan with headroom N and this range, the pool p on it, and a look
//	pool NAME [NET]     a pool of the network lan, or of another; own NAME CIDR: a pool of no network
//	unpool [NAME]; free, spare [NAME]: the headroom that can be given out, and its size
//	net CIDR; resize CIDR CIDR, range R: the network lan with one subnet; its new CIDR; one more range
//	take [NAME] [mac=N] [ip=.N] [pool=NAME] [gateway] [telling]; give .N [POOL]
//	cut, heal; cutnext committed|lost, losenext committed|lost: the outcome of the next update is lost
//	boot, later, open   the daemon starts; it starts a second later; the shared store is opened
//	look, run, read     one round of Run; Run; whether the shared store can be read
//	tell; telling, told the host reports its uses of headroom; the store has them, and the host knows that at "told"
//	headroom N, quarantine D, exclude .N, network.rm, drain HOST, undrain HOST, remove HOST [off], admit HOST
//	wait D, full        its clock moves; its disk is full
//	sleep D             time passes for all hosts
//	here, close, finish its daemon announces itself, closes, or finishes what is half done
//	drop                its headroom is dropped, as when its store is put back
//	held HOST           the leases of HOST as this host knows them; subnets: all subnets and their number of pools
//	review              what a look does for the headroom of the pool p, before it tells anything
//	store, size         the leases held in the shared store; their number
//	lease .N            KIND MAC HOST NAME; none
//	state               whether the store is reached, how much waits, and each attachment's network and headroom
//	                    wanted, used and claimed
//	queued              the waiting releases: .N; "unknown": the lease is unknown, "later": there is another lease
//	kept, warned        whether the host has anything to tell; the number of warnings
//	sound               checks that the records of both stores fit together
//
// The steps for an elastic address (see edgerig_test.go):
//
//	elastic [keep|HOST] a range of one address, kept on a cut or for one host; the address is allocated
//	lead N, unlead, release: the address leads to the container with this MAC; to none; it is released
//	applied HOST        the store's record of it for the edge of a host; shown: which edge is shown to have it
//	untimed; granted HOST: the edge of a has it without an end; the edge of a host has a later grant
//	sessions            the hosts whose edges have a session
type stage struct {
	t      *testing.T
	common *mem.Store
	hosts  map[string]*sharingHost
	pools  map[string]ipam.ID // by their names in scripts
	told   func()             // set by "telling"
	edges  map[string]*edgeOf // by host
}

// plays runs a script.
func plays(t *testing.T, script string) *stage {
	t.Helper()
	st := &stage{t: t, common: mem.New(), hosts: map[string]*sharingHost{}, pools: map[string]ipam.ID{},
		edges: map[string]*edgeOf{}}
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
		case refused && (kindOf(err) != kind || !saysAll(err, says)):
			st.t.Fatalf("%s\n\tgot %s, %s: %v", line, got, kindOf(err), err)
		case !refused && err != nil:
			st.t.Fatalf("%s\n\t%v", line, err)
		case answered && got != strings.TrimSpace(want):
			st.t.Fatalf("%s\n\tgot %s", line, got)
		}
	}
}

// saysAll tells whether a refusal contains each of some texts, which semicolons separate.
func saysAll(err error, texts string) bool {
	return !slices.ContainsFunc(strings.Split(texts, "; "), func(text string) bool {
		return !strings.Contains(told(err), text)
	})
}

// told returns a refusal with its advice, as text.
func told(err error) string {
	text := err.Error()
	for _, a := range ipam.AdviceOf(err) {
		text += " [" + strings.Join(append([]string{string(a.Do)}, a.With...), " ") + "]"
	}
	return text
}

// host returns the host of that name, and creates it if it is new.
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

// kindOf names the kind of a refusal. A complete away refusal says since when the store is out of reach, and
// gives advice; one that does not is bare.
func kindOf(err error) string {
	for _, one := range []struct {
		name string
		kind error
	}{{"unknown", store.ErrUnknown}, {"host", ipam.ErrHost}, {"inuse", ipam.ErrInUse}, {"notfound", ipam.ErrNotFound},
		{"exhausted", ipam.ErrExhausted}, {"invalid", ipam.ErrInvalid}, {"overlap", ipam.ErrOverlap},
		{"changed", ipam.ErrChanged}, {"keyreused", ipam.ErrKeyReused}, {"away", ipam.ErrAway}} {
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
	case "pool", "own":
		req := ipam.PoolRequest{Network: "lan", CIDR: lanCIDR}
		if verb == "own" {
			req = ipam.PoolRequest{Space: ipam.GlobalSpace, CIDR: netip.MustParsePrefix(args[1])}
		} else if len(args) > 1 {
			req = ipam.PoolRequest{Network: args[1]}
		}
		grant, err := h.RequestPool(ctx, req)
		st.pools[first] = grant.ID
		if err != nil {
			return "", err
		}
		return grant.CIDR.String(), nil
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
	case "held", "subnets", "applied", "shown", "sessions":
		return st.known(h, verb, first), nil
	case "edge":
		return st.edge(h, first, append(args, "", "")[1])
	default:
		if e := st.edit(verb, args); e != nil {
			_, err := h.Edit(ctx, ipam.EditOptions{}, e)
			return "", err
		}
		st.befalls(h, verb, first)
	}
	return "", nil
}

// befalls does to a host what a step says.
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
	case "sleep":
		d, err := time.ParseDuration(arg)
		fine(st.t, err)
		time.Sleep(d)
	case "here":
		h.handle.Announce(h.name, nil)
	case "close":
		fine(st.t, h.handle.Close())
	case "finish":
		fine(st.t, edit.Finish(context.Background(), h.svc.Ledger))
	case "elastic":
		st.elastic(h, arg)
	case "untimed", "granted":
		st.grants(h, arg)
	case "drop":
		fine(st.t, DropHeadroom(context.Background(), h.own))
	case "telling":
		st.told = h.tellsUses(h.open())
	case "review":
		fine(st.t, h.reviewOne(context.Background(), h.svc, st.pool("")))
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

// edit returns the edit of a step, or nil if the step is no edit.
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
	case "net":
		return lanWith(0, netip.MustParsePrefix(args[0]))
	case "resize":
		return &ipam.ModifySubnet{Network: "lan", Subnet: args[0], CIDR: new(netip.MustParsePrefix(args[1]))}
	case "range":
		return &ipam.AddPool{Network: "lan", Range: mustRange(st.t, args[0])}
	case "lead":
		mac := testMAC(number(st.t, args[0]))
		return &ipam.AssociateElastic{Address: elasticAddr, Instance: mac.String(), Move: true}
	case "unlead":
		return &ipam.DisassociateElastic{Address: elasticAddr}
	case "release":
		return &ipam.ReleaseElastic{Address: elasticAddr}
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

// pool returns the attachment with that name, or an unknown id if no attachment has it.
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

// stored describes what the shared store holds.
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

// kept describes what a host has to tell the shared store, and its state.
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

// describe describes what a host knows about the shared store.
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

// known describes what a host knows from the shared store.
func (st *stage) known(h *sharingHost, what, host string) string {
	st.t.Helper()
	var all []string
	switch what {
	case "held":
		for l, err := range h.svc.Leases(st.t.Context(), ipam.LeaseFilter{}) {
			fine(st.t, err)
			if l.Host == host {
				all = append(all, short([]netip.Addr{l.Address})+" "+l.Kind.String())
			}
		}
	case "subnets":
		subnets, err := h.svc.Subnets(st.t.Context(), ipam.GlobalSpace)
		fine(st.t, err)
		for _, sub := range subnets {
			all = append(all, fmt.Sprint(sub.CIDR, " ", len(sub.Attachments)))
		}
	case "applied":
		at := ledger.Ask(h.svc.Ledger, func(ix *ledger.Index) *ipam.Applied {
			return ix.Applied(ledger.AppliedAt{Host: host, Address: elasticAddr})
		})
		if at == nil {
			return "none"
		}
		all = append(all, map[bool]string{true: "in force", false: "staged"}[at.InForce])
		if e := st.edges[host]; e != nil && len(e.had) > 0 && e.had[len(e.had)-1].Grant != at.Grant {
			all = append(all, "otherwise")
		}
		if at.Unsaid {
			all = append(all, "unsaid")
		}
		if at.Untimed {
			all = append(all, "untimed")
		}
	case "shown":
		info, err := h.svc.Elastic(st.t.Context(), elasticAddr)
		fine(st.t, err)
		all = append(all, string(info.State))
		if at := info.Applied; at != nil {
			all = append(all, strings.TrimSpace(at.Host+" "+map[bool]string{true: "waits"}[at.Error != ""]))
		}
	case "sessions":
		all = slices.Sorted(maps.Keys(h.handle.Held()))
	}
	return strings.Join(all, "; ")
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

// eachWay runs each variant of a script.
func eachWay(t *testing.T, script string) {
	t.Helper()
	for _, way := range ways(script) {
		plays(t, way)
	}
}

// ways returns the variants of a script: each choice in brackets, as in "[committed|lost]", gives one.
func ways(script string) (all []string) {
	open := strings.Index(script, "[")
	if open < 0 || script[open-1] == ' ' && script[open-2] == ';' { // advice
		return []string{script}
	}
	end := open + strings.Index(script[open:], "]")
	for _, word := range slices.Sorted(strings.SplitSeq(script[open+1:end], "|")) {
		all = append(all, ways(script[:open]+word+script[end+1:])...)
	}
	return all
}
