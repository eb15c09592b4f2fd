package elastic_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"berth/internal/ipam"
	"berth/internal/ipam/ipamtest"
)

// plays runs a script on a bench. A line is a step and its result:
//
//	told -> E0=G9 staged              the answer; after "-> ~" a part of it
//	soon system -> web S1             the answer within some seconds
//	to E0 job ! GuestUnclear; job     a refusal: its code, or "-" for none, and parts of its text; no record changes
//
// E0 is the elastic address 203.0.113.10, G9 the guest address 10.20.0.9, S1 the address 198.51.100.1. A step is an
// edit of ipamtest's scripts, or one of these:
//
//	account NAME [OWNERS] [quota=N]; account.rm NAME [force]
//	range RANGE [host=H]; range.rm RANGE
//	allocate [ADDR] [account=A] [host=H] [on=WHAT]; free ADDR
//	to ADDR INSTANCE [net=N] [guest=A] [move] [egress]; off ADDR
//	elastic NET MODE
//	declare INSTANCE...                all that the Compose project shop declares; addresses, and number of changes
//	declares INSTANCE [at=A]           one more that it declares
//	try EDIT; changes                  a dry run; the number of changes, or what the last edit has changed
//	run NAME [mac=N] [ip=A]; stop NAME an engine's requests; NAME "-" is none
//	attach CIDR; detach                a Docker network
//	driver D; publishes NAME [PORT]; there NAME; gone NAME; deaf; hears; says NAME [ended|unknown|PORT]
//	                                   what the witness and the engine report
//	applies [TEXT]; whole              the edge maps all that it got, or fails; it maps nothing
//	wait D; restart [off]; host NAME   time passes; the daemon starts again
//	freeze; engine                     only the test advances the moment; an engine reports
//	keep; rest; round                  system addresses are kept; are no longer kept; are checked once
//	crowd N                            the account crowd has N addresses
//	look D                             containers that ended are checked now and after D
//	show ADDR                          STATE ACCOUNT INSTANCE [egress] [system]
//	guest ADDR                         its guest and the guest's interface; at ADDR: the host
//	mapped ADDR                        the host that is known to map it, and the error
//	revision ADDR, since ADDR          whether it is the same as at the last query
//	on ADDR                            when it is released
//	told; ranges                       what an edge gets; the number of ranges
//	uses                               for each range, the number of allocated and associated addresses
//	system, gaps                       system addresses by container; containers without one, with published ports
//	found, details, unmapped           what a check finds; numbers of wanted and unmapped addresses
func (b *bench) plays(script string) {
	b.t.Helper()
	for line := range strings.Lines(script) {
		line = short.ReplaceAllStringFunc(strings.TrimSpace(line), long)
		if line == "" || line[0] == '#' {
			continue
		}
		step, want, answered := strings.Cut(line+" ", " -> ")
		step, refusal, refused := strings.Cut(step, " ! ")
		step, soon := strings.CutPrefix(step, "soon ")
		want = strings.TrimSpace(want)
		var before map[string]string
		if refused && !b.keeps {
			before = ipamtest.Dump(b.t, b.Ledger.Store())
		}
		got, err := b.step(strings.Fields(step))
		for late := time.Now().Add(20 * time.Second); soon && got != want && time.Now().Before(late); {
			time.Sleep(5 * time.Millisecond)
			got, err = b.step(strings.Fields(step))
		}
		switch part, some := strings.CutPrefix(want, "~"); {
		case refused:
			b.refusedAs(line, err, strings.Split(refusal, ";"))
			if before != nil && !maps.Equal(before, ipamtest.Dump(b.t, b.Ledger.Store())) {
				b.t.Fatalf("%s\n\thas changed records", line)
			}
		case err != nil:
			b.t.Fatalf("%s\n\t%v", line, err)
		case answered && got != want && !(some && strings.Contains(got, part)):
			b.t.Fatalf("%s\n\tgot %s", line, got)
		}
		b.consistent()
	}
}

var short = regexp.MustCompile(`\b[EGS]\d+\b`)

func long(text string) string {
	return map[byte]string{'E': "203.0.113.1", 'G': "10.20.0.", 'S': "198.51.100."}[text[0]] + text[1:]
}

// begins plays a script on a new bench.
func begins(t testing.TB, script string) *bench {
	t.Helper()
	b := begin(t)
	b.plays(script)
	return b
}

// refusedAs checks the code and the text of a refusal.
func (b *bench) refusedAs(line string, err error, says []string) {
	b.t.Helper()
	code := strings.TrimPrefix(string(ipam.CodeOf(err)), "Elastic")
	if err == nil || cmp.Or(code, "-") != strings.TrimSpace(says[0]) {
		b.t.Fatalf("%s\n\tis answered with %s: %v", line, code, err)
	}
	for _, text := range says[1:] {
		if !strings.Contains(err.Error(), strings.TrimSpace(text)) {
			b.t.Fatalf("%s\n\tdoes not say %q: %v", line, text, err)
		}
	}
}

// arguments splits the words of a step into plain and named ones.
func arguments(words []string) (rest []string, named map[string]string) {
	named = map[string]string{}
	for _, word := range words {
		switch key, value, has := strings.Cut(word, "="); {
		case has || slices.Contains([]string{"move", "egress", "force"}, word):
			named[key] = value
		default:
			rest = append(rest, word)
		}
	}
	return append(rest, "", "", ""), named
}

func (b *bench) step(words []string) (got string, err error) {
	b.t.Helper()
	if words[0] == "try" {
		out, err := b.Edit(b.t.Context(), ipam.EditOptions{DryRun: true}, b.read(words[1:])...)
		return strconv.Itoa(len(out.Changes)), err
	}
	if edits := b.read(words); edits != nil {
		out, err := b.Edit(b.t.Context(), ipam.EditOptions{Key: b.key}, edits...)
		if err != nil {
			return "", err
		}
		b.changed = out.Changes
		return b.came(words[0], &out), nil
	}
	rest, named := arguments(words[1:])
	for _, does := range []func(string, []string, map[string]string) (string, bool, error){b.asks, b.befalls, b.shows} {
		if got, done, err := does(words[0], rest, named); done {
			return got, err
		}
	}
	b.t.Fatalf("there is no step %q", words)
	return "", nil
}

// came describes the result of an edit.
func (b *bench) came(verb string, out *ipam.Outcome) string {
	b.t.Helper()
	r := out.Results[len(out.Results)-1]
	switch verb {
	case "subnet":
		return r.CIDR.String()
	case "declare":
		return fmt.Sprint(ipamtest.Joined(r.Addresses), " ", len(out.Changes))
	case "to":
		n, err := b.Network(b.t.Context(), r.Network.String())
		must(b, err)
		return fmt.Sprint(n.Name, " ", r.CIDR, " ", ipamtest.Joined(r.Addresses))
	}
	return ipamtest.Joined(r.Addresses)
}

// read returns the edits of a step, or none if the step is no edit.
func (b *bench) read(words []string) []ipam.Edit {
	b.t.Helper()
	rest, named := arguments(words[1:])
	at, _ := netip.ParseAddr(rest[0])
	_, force := named["force"]
	switch words[0] {
	case "account":
		e := &ipam.CreateAccount{Account: rest[0]}
		if rest[1] != "" {
			e.Owners = strings.Split(rest[1], ",")
		}
		if text, has := named["quota"]; has {
			n, err := strconv.Atoi(text)
			must(b, err)
			e.Quota = &n
		}
		return []ipam.Edit{e}
	case "account.rm":
		return []ipam.Edit{&ipam.RemoveAccount{Account: rest[0], Force: force}}
	case "range":
		return []ipam.Edit{&ipam.AddElasticRange{Range: ipamtest.MustRange(rest[0]), Host: named["host"]}}
	case "range.rm":
		return []ipam.Edit{&ipam.RemoveElasticRange{Range: ipamtest.MustRange(rest[0])}}
	case "allocate":
		return []ipam.Edit{&ipam.AllocateElastic{Address: at, Account: named["account"], Host: named["host"],
			ReleaseOn: named["on"]}}
	case "free":
		return []ipam.Edit{&ipam.ReleaseElastic{Address: at}}
	case "to":
		e := &ipam.AssociateElastic{Address: at, Instance: rest[1], Network: named["net"]}
		_, e.Move = named["move"]
		_, e.EgressOnly = named["egress"]
		e.Guest, _ = netip.ParseAddr(named["guest"])
		return []ipam.Edit{e}
	case "off":
		return []ipam.Edit{&ipam.DisassociateElastic{Address: at}}
	case "elastic":
		return []ipam.Edit{&ipam.ModifyNetwork{Network: rest[0], Elastic: &rest[1]}}
	case "declare":
		end := &ipam.EndDeclaredElastic{Project: "shop"}
		all := []ipam.Edit{end}
		for _, one := range slices.DeleteFunc(rest, func(one string) bool { return one == "" }) {
			end.But = append(end.But, ipam.DeclaredElastic{Instance: one})
			all = append(all, &ipam.DeclareElastic{Project: "shop", Instance: one, EgressOnly: true})
		}
		return all
	case "declares":
		at, _ = netip.ParseAddr(named["at"])
		return []ipam.Edit{&ipam.DeclareElastic{Project: "shop", Instance: rest[0], Address: at}}
	case "network", "network.set", "network.rm", "subnet", "subnet.set", "subnet.rm", "reserve", "unreserve", "take",
		"end":
		return ipamtest.Edits(b.t, strings.Join(words, " "))
	}
	return nil
}

// asks does the steps of engines and of the edge.
func (b *bench) asks(verb string, rest []string, named map[string]string) (got string, done bool, err error) {
	b.t.Helper()
	ctx := b.t.Context()
	switch verb {
	case "run":
		req := ipam.AddressRequest{Pool: b.pool, Name: strings.TrimPrefix(rest[0], "-")}
		if n, has := named["mac"]; has {
			req.MAC = ipam.MAC{2, 0, 0, 0, 0, n[0] - '0'}
		}
		req.Preferred, _ = netip.ParseAddr(named["ip"])
		given, err := b.RequestAddress(ctx, req)
		if err != nil {
			return "", true, err
		}
		b.runs[rest[0]] = given.Addr()
		return given.Addr().String(), true, nil
	case "stop":
		return "", true, b.ReleaseAddress(ctx, b.pool, b.runs[rest[0]])
	case "attach":
		_, err := b.RequestPool(ctx, ipam.PoolRequest{Space: ipam.LocalSpace, CIDR: netip.MustParsePrefix(rest[0])})
		return "", true, err
	case "detach":
		return "", true, b.ReleasePool(ctx, b.pool)
	case "applies":
		report := ipam.EdgeReport{Whole: true}
		for _, m := range b.wanted().Set {
			report.Applied = append(report.Applied, ipam.EdgeApplied{Address: m.Elastic, Association: m.Association,
				Guest: m.Guest, Error: strings.TrimSpace(strings.Join(rest, " "))})
		}
		return "", true, b.ReportEdge(ctx, report)
	case "whole":
		return "", true, b.ReportEdge(ctx, ipam.EdgeReport{Whole: true})
	}
	return "", false, nil
}

// befalls does the steps that happen to a host.
func (b *bench) befalls(verb string, rest []string, _ map[string]string) (got string, done bool, err error) {
	b.t.Helper()
	switch name := rest[0]; verb {
	case "driver":
		b.driver = name
	case "publishes":
		b.published[name] = slices.DeleteFunc(rest[1:], func(one string) bool { return one == "" })
		if len(b.published[name]) == 0 {
			delete(b.published, name)
		}
	case "there", "gone":
		b.there[name] = verb == "there"
	case "deaf", "hears":
		b.deaf = verb == "deaf"
	case "says":
		h := ipam.Holder{Known: true, PortsKnown: rest[1] != "unknown", Ended: rest[1] == "ended"}
		if strings.Contains(rest[1], "/") {
			h.Published = rest[1:2]
		}
		b.engine.says(name, h)
	case "wait":
		d, err := time.ParseDuration(name)
		must(b, err)
		b.later += d
	case "restart":
		b.again(name == "off")
	case "engine":
		b.engine = newEngine()
		b.again(false)
	case "freeze":
		b.freeze()
	case "crowd":
		n, err := strconv.Atoi(name)
		must(b, err)
		b.crowd(n)
	case "round":
		return "", true, keeps(b)
	case "host":
		b.host = name
		b.again(false)
	case "keep":
		b.keep()
	case "rest":
		b.ends()
	case "look":
		d, err := time.ParseDuration(name)
		must(b, err)
		must(b, b.Ledger.CatchUp(b.t.Context()))
		must(b, b.releases.Look(b.t.Context()))
		b.passes(d)
		return "", true, b.releases.Look(b.t.Context())
	default:
		return "", false, nil
	}
	return "", true, nil
}

// shows does the steps that show something.
func (b *bench) shows(verb string, rest []string, _ map[string]string) (got string, done bool, err error) {
	b.t.Helper()
	switch verb {
	case "changes":
		var all []string
		for _, e := range b.changed {
			all = append(all, fmt.Sprint(e.Verb, " ", e.Address))
		}
		return strings.Join(all, "; "), true, nil
	case "told":
		var all []string
		for _, m := range b.wanted().Set {
			all = append(all, fmt.Sprint(m.Elastic, "=", m.Guest, map[bool]string{true: " staged"}[m.Staged],
				map[bool]string{true: " egress"}[m.EgressOnly]))
			if m.Association == 0 || !m.Subnet.Contains(m.Guest) {
				return "", true, fmt.Errorf("told is %+v", m)
			}
		}
		return strings.Join(all, "; "), true, nil
	case "ranges":
		news := b.wanted()
		if !news.Whole {
			return "", true, errors.New("it is not the whole")
		}
		return strconv.Itoa(len(news.Ranges)), true, nil
	case "system":
		return strings.Join(b.system(), "; "), true, nil
	case "uses":
		var all []string
		list, err := b.ElasticRanges(b.t.Context())
		for _, r := range list {
			all = append(all, fmt.Sprint(r.Range, " ", r.Allocated, "/", r.Associated))
		}
		return strings.Join(all, "; "), true, err
	case "gaps":
		var all []string
		gaps, err := b.SystemGaps(b.t.Context())
		for _, gap := range gaps {
			ports := strings.Join(gap.Published, " ")
			all = append(all, strings.TrimSpace(fmt.Sprint(gap.Instance, " ", gap.Guest, " ", ports)))
		}
		return strings.Join(all, "; "), true, err
	case "found", "details", "unmapped":
		got, err := b.found(verb)
		return got, true, err
	case "show", "guest", "at", "mapped", "revision", "since", "on":
		info, err := b.Elastic(b.t.Context(), addr(rest[0]))
		return b.shown(verb, &info), true, err
	}
	return "", false, nil
}

// shown describes an address.
func (b *bench) shown(what string, info *ipam.ElasticInfo) string {
	same := func(now string) string {
		was := b.seen[what]
		b.seen[what] = now
		return map[bool]string{true: "same", false: "new"}[was == now]
	}
	switch what {
	case "guest":
		return fmt.Sprint(info.Guest, " ", info.Interface)
	case "at":
		return info.Host
	case "on":
		return info.ReleaseOn
	case "revision":
		return same(strconv.FormatUint(info.Revision, 10))
	case "since":
		return same(info.Applied.Since.String())
	case "mapped":
		if info.Applied == nil {
			return "none"
		}
		return strings.TrimSpace(info.Applied.Host + " " + info.Applied.Error)
	}
	text := fmt.Sprint(info.State, " ", info.Account)
	if info.Associated {
		text += " " + info.Instance
	}
	return strings.TrimSpace(text + map[bool]string{true: " egress"}[info.EgressOnly] +
		map[bool]string{true: " system"}[info.Kind == ipam.KindSystem])
}

// found returns what a check of elastic addresses finds.
func (b *bench) found(what string) (string, error) {
	b.t.Helper()
	c, err := b.CheckElastic(b.t.Context())
	if what == "unmapped" {
		return fmt.Sprint(c.Wanted, " ", c.Unmapped), err
	}
	var all []string
	for _, f := range c.Findings {
		if f.Detail == "" || f.Host != "h1" || f.Network != "net1" || f.Owner == "" ||
			strings.Contains(f.Detail, "%!") {
			b.t.Errorf("%s says too little: %+v", f.Kind, f)
		}
		all = append(all, map[bool]string{true: fmt.Sprint(f.Kind, " ", f.Address), false: f.Detail}[what == "found"])
	}
	return strings.Join(all, "; "), err
}

// eachWay plays a script once for each set of words.
func eachWay(t *testing.T, ways map[string][]string, script string) {
	t.Helper()
	for _, way := range slices.Sorted(maps.Keys(ways)) {
		t.Run(way, func(t *testing.T) { begins(t, strings.NewReplacer(ways[way]...).Replace(script)) })
	}
}

// keep runs a keeper until ends is called or the test ends.
func (b *bench) keep() {
	ctx, cancel := context.WithCancel(b.t.Context())
	ended := make(chan struct{})
	go func() { defer close(ended); b.KeepSystem(ctx, func(err error) { b.t.Error(err) }) }()
	b.keeps = true
	b.ends = func() { cancel(); <-ended; b.keeps = false }
	b.t.Cleanup(b.ends)
}

// keeps runs a keeper that checks everything once.
func keeps(b *bench) error {
	ctx, cancel := context.WithCancel(b.t.Context())
	kept := b.Kept(ctx)
	defer func() { cancel(); kept.End() }()
	return kept.Round(b.t.Context())
}
