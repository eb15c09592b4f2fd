package ipamtest

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"berth/internal/ipam"
)

// ownerStep runs a step about owners, and reports whether it is one.
func (r *Stage) ownerStep(verb string, words []string) (got string, done bool, err error) {
	r.T.Helper()
	switch verb {
	case "owned":
		return r.Owned(words), true, nil
	case "events":
		return r.lately(words), true, nil
	case "lost":
		got, err := r.lost(r.Addr(words[0]))
		return got, true, err
	}
	return "", false, nil
}

// ownerEdit reads a step that is an edit about owners. It returns nil for any other step.
func (r *Stage) ownerEdit(verb string, words []string) ipam.Edit {
	r.T.Helper()
	args, opt := options(words, "force", "automatic", "replace", "moves", "under", "replaced")
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
			e.Static = new(r.bands(opt["static"]))
		}
		return e
	case "reserve":
		wishes := ""
		if len(args) > 2 {
			wishes = args[2]
		}
		e := &ipam.AddReservation{Network: args[0], Owner: args[1], Wishes: r.Wishes(wishes),
			Force: has("force"), Automatic: has("automatic"), Replace: has("replace"), Moves: has("moves"),
			WantedTerms: ipam.WantedTerms{For: r.life(opt["for"])}}
		for i, not := range strings.Split(opt["not"], ",") {
			if has("not") {
				e.Wishes[i].Not = r.Addr(not)
			}
		}
		if has("only") {
			e.Only = strings.FieldsFunc(opt["only"], func(r rune) bool { return r == ',' })
		}
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

func (r *Stage) life(text string) ipam.Duration {
	r.T.Helper()
	if text == "" {
		return 0
	}
	d, err := time.ParseDuration(text)
	fine(r.T, err)
	return ipam.Duration(d)
}

func (r *Stage) bands(text string) []ipam.Range {
	r.T.Helper()
	bands := []ipam.Range{}
	if text == "none" {
		return bands
	}
	for part := range strings.SplitSeq(text, ",") {
		bands = append(bands, r.Ranged(part))
	}
	return bands
}

// rules reads "web-*=pool:web,owner:shop/*+db=owner:store". Without owner and pool, a rule is removed.
func (r *Stage) rules(text string) (all []ipam.OwnerRule) {
	r.T.Helper()
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
				r.T.Fatalf("%q is no rule", part)
			}
		}
		all = append(all, rule)
	}
	return all
}

func (r *Stage) bind(network string, words []string) *ipam.BindReservations {
	r.T.Helper()
	e := &ipam.BindReservations{}
	for _, word := range words {
		owner, wishes, _ := strings.Cut(word, "=")
		owner, other, elsewhere := strings.Cut(owner, "@")
		if !elsewhere {
			other = network
		}
		e.Wanted = append(e.Wanted, ipam.AddReservation{Network: other, Owner: owner, Wishes: r.Wishes(wishes)})
	}
	return e
}

// Owned lists the reservations of a network, by address.
func (r *Stage) Owned(words []string) string {
	r.T.Helper()
	words = append(words, "", "")
	f := ipam.AddressFilter{Network: words[0], Owner: words[1]}
	var out []string
	for _, res := range r.Reservations(f) {
		marks := map[bool]string{true: ":a"}[res.Kind == ipam.Automatic] + map[bool]string{true: "*"}[res.InUse] +
			map[bool]string{true: "!"}[res.Replaced] + map[bool]string{true: "~"}[!res.Until.IsZero()]
		out = append(out, fmt.Sprintf("%s=%s%s", res.Owner, res.Address, marks))
	}
	return strings.Join(out, " ")
}

// lately lists the addresses of the latest events of some kinds.
func (r *Stage) lately(words []string) string {
	r.T.Helper()
	n, err := strconv.Atoi(words[0])
	fine(r.T, err)
	all, err := r.S.Events(ctx, ipam.EventFilter{Last: n})
	fine(r.T, err)
	var out []string
	for _, e := range all {
		if slices.Contains(words[1:], e.Verb.String()) {
			out = append(out, fmt.Sprintf("%s:%s", e.Verb, e.Address))
		}
	}
	return strings.Join(out, " ")
}

// codes maps the words of scripts and cases to BOSH's names.
var codes = map[string]ipam.Code{
	"AlreadyInUse": ipam.AlreadyInUse, "AlreadyExists": ipam.AlreadyExists, "NotEnoughCapacity": ipam.NotEnoughCapacity,
	"OutsideSubnet": ipam.OutsideSubnet, "IPReserved": ipam.IPReserved, "WrongType": ipam.WrongType,
	"IPMissing": ipam.IPMissing, "StaticOutOfRange": ipam.StaticOutOfRange, "DeployLocked": ipam.DeployLocked,
}

// coded compares a refusal's code with the one that a script names. Its sentence must not show the code.
func (r *Stage) coded(line, want string, err error) {
	r.T.Helper()
	code, known := codes[want]
	if !known {
		r.T.Fatalf("%s\n\tthere is no code %q", line, want)
	}
	if got := ipam.CodeOf(err); got != code {
		r.T.Fatalf("%s\n\twas refused with the code %q: %v", line, got, err)
	}
	if strings.Contains(err.Error(), string(code)) {
		r.T.Fatalf("%s\n\tshows its code: %v", line, err)
	}
}

// lost ends the lease of an address twice, as the witness does. The second time there is no lease.
func (r *Stage) lost(addr netip.Addr) (string, error) {
	r.T.Helper()
	for _, l := range ListLeases(r.T, r.S, ipam.LeaseFilter{}) {
		if l.Address != addr {
			continue
		}
		ref := ipam.LeaseRef{Space: l.Space, Address: addr, ID: l.ID}
		ended, err := r.S.ReleaseLease(ctx, ref)
		if again, err2 := r.S.ReleaseLease(ctx, ref); again || err2 != nil {
			r.T.Fatalf("the lease of %s ended twice: %v", addr, err2)
		}
		return strconv.FormatBool(ended), err
	}
	return "false", nil
}

// onlyEnded reports whether only the ends of expired owners were written since a dump. Any request writes these
// ends, even a refused one (BO-11).
func (r *Stage) onlyEnded(before map[string]string) bool {
	r.T.Helper()
	all, err := r.S.Events(ctx, ipam.EventFilter{})
	fine(r.T, err)
	old := 0
	for key := range before {
		if strings.HasPrefix(key, `"e`) {
			old++
		}
	}
	return len(all) > old && !slices.ContainsFunc(all[old:], func(e ipam.Event) bool {
		return e.Verb != ipam.ReservationRemoved || !strings.Contains(e.Detail, "owner expired")
	})
}
