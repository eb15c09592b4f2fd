package service_test

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"berth/internal/ipam"
)

// ownerStep runs a step that is about owners, and tells whether it is one.
//
//	network NET ... [type=T] [static=RANGE,RANGE] [rule=PATTERN=owner:O,pool:P+PATTERN=...]; network.set NET the same, and static=none
//	reserve NET OWNER [WISH,...] [force] [automatic] [replace] [for=D] [nic=N]
//	bind NET OWNER=WISH,... OWNER@NET=WISH,...     all of them at once
//	end OWNER [under] [replaced]
//	owned NET [OWNER]     answers OWNER=ADDRESS for each address that is reserved, with ":a" where it is automatic, "*" where it
//	                      is in use, "!" where another one replaces it, and "~" where its owner has an end
//	lost ADDRESS          the witness ends the lease, of which no endpoint is left; answers whether there was one
//	events N VERB ...     the addresses of the last N events that are of these kinds
func (r *room) ownerStep(verb string, words []string) (got string, done bool, err error) {
	r.t.Helper()
	switch verb {
	case "owned":
		return r.owned(words), true, nil
	case "events":
		return r.lately(words), true, nil
	case "lost":
		got, err := r.lost(r.addr(words[0]))
		return got, true, err
	}
	e := r.ownerEdit(verb, words)
	if e == nil {
		return "", false, nil
	}
	out, err := r.s.Edit(ctx, ipam.EditOptions{}, e)
	if err != nil {
		return "", true, err
	}
	return answer(out.Results[0]), true, nil
}

// ownerEdit reads a step that is an edit about owners; nil where it is none.
func (r *room) ownerEdit(verb string, words []string) ipam.Edit {
	r.t.Helper()
	args, opt := options(words, "force", "automatic", "replace", "under", "replaced")
	has := func(flag string) bool { _, ok := opt[flag]; return ok }
	switch verb {
	case "network":
		e := r.createNetwork(args[0], opt).(*ipam.CreateNetwork)
		e.Type, e.OwnerRules = opt["type"], r.rules(opt["rule"])
		if has("static") {
			e.Static = r.bands(opt["static"])
		}
		return e
	case "network.set":
		e := r.modifyNetwork(args[0], opt).(*ipam.ModifyNetwork)
		e.OwnerRules = r.rules(opt["rule"])
		if has("static") {
			e.Static = ptr(r.bands(opt["static"]))
		}
		return e
	case "reserve":
		wishes := ""
		if len(args) > 2 {
			wishes = args[2]
		}
		e := &ipam.AddReservation{Network: args[0], Owner: args[1], Wishes: r.wishes(wishes),
			Force: has("force"), Automatic: has("automatic"), Replace: has("replace"),
			WantedTerms: ipam.WantedTerms{For: r.life(opt["for"])}}
		if has("nic") {
			e.Number = int(opt["nic"][0] - '0')
		}
		return e
	case "bind":
		return r.bind(words[0], words[1:])
	case "end":
		return &ipam.ReleaseOwner{Owner: args[0], Under: has("under"), Replaced: has("replaced")}
	}
	return nil
}

func (r *room) life(text string) ipam.Duration {
	r.t.Helper()
	if text == "" {
		return 0
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		r.t.Fatal(err)
	}
	return ipam.Duration(d)
}

func (r *room) bands(text string) []ipam.Range {
	r.t.Helper()
	bands := []ipam.Range{}
	if text == "none" {
		return bands
	}
	for part := range strings.SplitSeq(text, ",") {
		bands = append(bands, r.ranged(part))
	}
	return bands
}

// rules reads "web-*=pool:web,owner:shop/*+db=owner:store"; a rule without owner and pool takes it away.
func (r *room) rules(text string) (all []ipam.OwnerRule) {
	r.t.Helper()
	if text == "" {
		return nil
	}
	for part := range strings.SplitSeq(text, "+") {
		pattern, what, _ := strings.Cut(part, "=")
		rule := ipam.OwnerRule{Pattern: pattern}
		for one := range strings.SplitSeq(what, ",") {
			switch key, value, _ := strings.Cut(one, ":"); key {
			case "owner":
				rule.Owner = value
			case "pool":
				rule.Pool = value
			case "":
			default:
				r.t.Fatalf("%q is no rule", part)
			}
		}
		all = append(all, rule)
	}
	return all
}

func (r *room) bind(network string, words []string) *ipam.BindReservations {
	r.t.Helper()
	e := &ipam.BindReservations{}
	for _, word := range words {
		owner, wishes, _ := strings.Cut(word, "=")
		owner, other, elsewhere := strings.Cut(owner, "@")
		if !elsewhere {
			other = network
		}
		e.Wanted = append(e.Wanted, ipam.AddReservation{Network: other, Owner: owner, Wishes: r.wishes(wishes)})
	}
	return e
}

// owned lists what is reserved in a network, by address.
func (r *room) owned(words []string) string {
	r.t.Helper()
	f := ipam.AddressFilter{Network: words[0]}
	if len(words) > 1 {
		f.Owner = words[1]
	}
	var out []string
	for _, res := range r.reservations(f) {
		marks := map[bool]string{true: ":a"}[res.Kind == ipam.Automatic] + map[bool]string{true: "*"}[res.InUse] +
			map[bool]string{true: "!"}[res.Replaced] + map[bool]string{true: "~"}[!res.Until.IsZero()]
		out = append(out, fmt.Sprintf("%s=%s%s", res.Owner, res.Address, marks))
	}
	return strings.Join(out, " ")
}

// lately lists the addresses of the latest events of some kinds.
func (r *room) lately(words []string) string {
	r.t.Helper()
	n, err := strconv.Atoi(words[0])
	if err != nil {
		r.t.Fatal(err)
	}
	all, err := r.s.Events(ctx, ipam.EventFilter{Last: n})
	if err != nil {
		r.t.Fatal(err)
	}
	var out []string
	for _, e := range all {
		if slices.Contains(words[1:], e.Verb.String()) {
			out = append(out, fmt.Sprintf("%s:%s", e.Verb, e.Address))
		}
	}
	return strings.Join(out, " ")
}

// codes are BOSH's names by the words that scripts and cases have for them.
var codes = map[string]ipam.Code{
	"AlreadyInUse": ipam.AlreadyInUse, "AlreadyExists": ipam.AlreadyExists, "NotEnoughCapacity": ipam.NotEnoughCapacity,
	"OutsideSubnet": ipam.OutsideSubnet, "IPReserved": ipam.IPReserved, "WrongType": ipam.WrongType,
	"IPMissing": ipam.IPMissing, "StaticOutOfRange": ipam.StaticOutOfRange,
}

// coded holds a refusal's code against the one that a script names, and its sentence against its code.
func (r *room) coded(line, want string, err error) {
	r.t.Helper()
	code, known := codes[want]
	if !known {
		r.t.Fatalf("%s\n\tthere is no code %q", line, want)
	}
	if got := ipam.CodeOf(err); got != code {
		r.t.Fatalf("%s\n\twas refused with the code %q: %v", line, got, err)
	}
	if !strings.HasPrefix(err.Error(), string(code)+": ") {
		r.t.Fatalf("%s\n\tdoes not begin with its code: %v", line, err)
	}
}

// lost ends the lease of an address as the witness does, twice: the second time nothing is left of it.
func (r *room) lost(addr netip.Addr) (string, error) {
	r.t.Helper()
	for _, l := range listLeases(r.t, r.s, ipam.LeaseFilter{}) {
		if l.Address != addr {
			continue
		}
		ref := ipam.LeaseRef{Space: l.Space, Address: addr, ID: l.ID}
		ended, err := r.s.ReleaseLease(ctx, ref)
		if again, err2 := r.s.ReleaseLease(ctx, ref); again || err2 != nil {
			r.t.Fatalf("the lease of %s ended twice: %v", addr, err2)
		}
		return strconv.FormatBool(ended), err
	}
	return "false", nil
}

// onlyEnded tells whether since a dump nothing was written but the ends of owners whose time is over, which end
// whatever else is asked, and refused (BO-11).
func (r *room) onlyEnded(before map[string]string) bool {
	r.t.Helper()
	all, err := r.s.Events(ctx, ipam.EventFilter{})
	if err != nil {
		r.t.Fatal(err)
	}
	old := 0
	for key := range before {
		if strings.HasPrefix(key, `"e`) {
			old++
		}
	}
	return len(all) > old && !slices.ContainsFunc(all[old:], func(e ipam.Event) bool {
		return e.Verb != ipam.ReservationRemoved || !strings.Contains(e.Detail, "time is over")
	})
}
