package service_test

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"time"

	"berth/internal/ipam"
)

// onlooker is a witness that says what a test wants.
type onlooker struct {
	hint   ipam.Hint
	asked  []ipam.Question
	wanted map[netip.Addr]string
	sights map[netip.Addr]ipam.Sighting // of the leases of addresses
	exist  []string                     // names of containers
}

func (o *onlooker) as() ipam.Known {
	return ipam.Known{
		Guess: func(q ipam.Question) ipam.Hint {
			o.asked = append(o.asked, q)
			return o.hint
		},
		Wanted:   func(string, netip.Prefix) []ipam.Want { return wantsOf(o.wanted) },
		Endpoint: func(l ipam.LeaseRef, _ time.Time) ipam.Sighting { return o.sights[l.Address] },
		Exists:   func(name string) bool { return slices.Contains(o.exist, name) },
	}
}

// wantsOf is what containers ask for, by address, as a witness tells it.
func wantsOf(wanted map[netip.Addr]string) (all []ipam.Want) {
	for _, addr := range slices.SortedFunc(maps.Keys(wanted), netip.Addr.Compare) {
		all = append(all, ipam.Want{Address: addr, Container: wanted[addr]})
	}
	return all
}

// guessStep runs a step that is about a witness, and tells whether it is one.
//
//	idle NAME | idle none | idle lost    of the requests that follow the witness says: it must be of NAME; of nobody or of one of
//	                                     several; that it does not follow the engine
//	idle long                            that it must be of one whose name no lease can keep
//	asked                                what it was asked since the last time: SPACE/CIDR/ADDRESS of each question
//	want ADDRESS NAME | want ADDRESS     a container asks for an address itself, or none any more
//	users NET                            who has what is reserved: ADDRESS=NAME
//	exist NAME...                        these containers are there, and no others
//	sight ADDRESS NAME                   a look has shown NAME with the address; gone for NAME: two looks have missed its endpoint
//	seen ADDRESS NAME                    the engine shows whose lease that is
//	seen2 ADDRESS NAME                   the same twice in one call
//	lease ADDRESS                        answers KIND NAME, with "?" behind a name that is a guess, and STATE where it is not held
//	guesses                              answers how many were made, and how many were wrong
//	told VERB                            the last event of a verb: ADDRESS NAME (DETAIL), behind how many there are
//	free NET N                           what may be given of the first subnet, at most N
//	had NAME                             which addresses one had: ADDRESS, with "*" where it has it now
func (r *room) guessStep(verb string, words []string) (got string, done bool, err error) {
	r.t.Helper()
	switch verb {
	case "idle":
		r.known.hint = hintOf(words[0])
	case "asked":
		for _, q := range slices.Compact(r.known.asked) { // a function that is run again asks again
			got += fmt.Sprintf("%s/%s/%s ", q.Space, q.CIDR, text(q.Address))
		}
		got, r.known.asked = strings.TrimSpace(got), nil
	case "want":
		if r.known.wanted == nil {
			r.known.wanted = map[netip.Addr]string{}
		}
		delete(r.known.wanted, r.addr(words[0]))
		if len(words) > 1 {
			r.known.wanted[r.addr(words[0])] = words[1]
		}
	case "users":
		for _, info := range r.reservations(ipam.AddressFilter{Network: words[0]}) {
			got += fmt.Sprintf("%s=%s ", info.Address, info.Endpoint)
		}
		got = strings.TrimSpace(got)
	case "exist":
		r.known.exist = words
	case "sight":
		if r.known.sights == nil {
			r.known.sights = map[netip.Addr]ipam.Sighting{}
		}
		sight := ipam.Sighting{Sight: ipam.Seen, Container: words[1]}
		if words[1] == "gone" {
			sight = ipam.Sighting{Sight: ipam.Gone}
		}
		r.known.sights[r.addr(words[0])] = sight
	case "seen", "seen2":
		name := ipam.LeaseName{LeaseRef: r.refOf(r.addr(words[0])), Name: words[1]}
		names := []ipam.LeaseName{name}
		if verb == "seen2" {
			names = append(names, name)
		}
		err = r.s.NameLeases(ctx, names)
	case "lease":
		got = r.leaseText(r.addr(words[0]))
	case "guesses":
		n := r.s.Guesses()
		got = fmt.Sprintf("made %d wrong %d", n.Made, n.Wrong)
	case "told":
		got = r.told(words[0])
	case "free":
		var free []netip.Addr
		n := 0
		_, _ = fmt.Sscan(words[1], &n)
		free, err = r.s.Available(ctx, r.show(words[0]).Subnets[0].ID, n)
		got = joined(free)
	case "had":
		got, err = r.had(words[0])
	default:
		return "", false, nil
	}
	return got, true, err
}

func hintOf(word string) ipam.Hint {
	switch word {
	case "none":
		return ipam.Hint{Live: true}
	case "lost":
		return ipam.Hint{}
	case "long":
		return ipam.Hint{Name: strings.Repeat("x", 256), Live: true}
	}
	return ipam.Hint{Name: word, Live: true}
}

func (r *room) leaseAt(addr netip.Addr) *ipam.LeaseInfo {
	r.t.Helper()
	all := listLeases(r.t, r.s, ipam.LeaseFilter{Remembered: true})
	i := slices.IndexFunc(all, func(l ipam.LeaseInfo) bool { return l.Address == addr })
	if i < 0 {
		return nil
	}
	return &all[i]
}

func (r *room) refOf(addr netip.Addr) ipam.LeaseRef {
	r.t.Helper()
	l := r.leaseAt(addr)
	if l == nil {
		r.t.Fatalf("%s has no lease", addr)
	}
	return ipam.LeaseRef{Space: l.Space, Address: addr, ID: l.ID}
}

func (r *room) leaseText(addr netip.Addr) string {
	l := r.leaseAt(addr)
	if l == nil {
		return "none"
	}
	words := []string{l.Kind.String(), l.Name}
	if l.Name == "" {
		words[1] = "-"
	}
	if l.Guessed {
		words[1] += "?"
	}
	if l.State != "held" {
		words = append(words, l.State)
	}
	return strings.Join(words, " ")
}

func (r *room) told(verb string) string {
	r.t.Helper()
	all, err := r.s.Events(ctx, ipam.EventFilter{})
	if err != nil {
		r.t.Fatal(err)
	}
	n, last := 0, ""
	for _, e := range all {
		if e.Verb.String() == verb {
			n++
			last = fmt.Sprintf(": %s %s (%s)", e.Address, e.Name, e.Detail)
		}
	}
	return fmt.Sprintf("%d%s", n, last)
}

func (r *room) had(name string) (string, error) {
	all, err := r.s.Who(ctx, ipam.WhoFilter{Name: name})
	var out []string
	for _, t := range all {
		now := ""
		if t.Until.IsZero() {
			now = "*"
		}
		out = append(out, t.Address.String()+now)
	}
	return strings.Join(out, " "), err
}
