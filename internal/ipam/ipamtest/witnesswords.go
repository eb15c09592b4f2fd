package ipamtest

import (
	"context"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"time"

	"berth/internal/ipam"
)

// Onlooker is a witness that says what a test wants.
type Onlooker struct {
	Hint   ipam.Hint
	asked  []ipam.Question
	wanted map[netip.Addr]string
	sights map[netip.Addr]ipam.Sighting // of the leases of addresses
	exist  []string                     // names of containers
	called map[string]string            // current names of containers, by id
}

// As returns the onlooker in the form that a service needs.
func (o *Onlooker) As() ipam.Known {
	return ipam.Known{
		Ask: func(_ context.Context, q ipam.Question) ipam.Hint {
			o.asked = append(o.asked, q)
			return o.Hint
		},
		Wanted:   func(string, netip.Prefix) []ipam.Want { return WantsOf(o.wanted) },
		Endpoint: func(l ipam.LeaseRef, _ time.Time) ipam.Sighting { return o.sights[l.Address] },
		Exists: func(name, id string) bool {
			_, there := o.called[id]
			return there || slices.Contains(o.exist, name)
		},
		Container: func(name string) (string, bool) {
			for id, called := range o.called {
				if called == name {
					return id, true
				}
			}
			return "", true
		},
	}
}

// WantsOf returns what containers ask for, by address, as a witness reports it. "NAME new" never ran.
func WantsOf(wanted map[netip.Addr]string) (all []ipam.Want) {
	for _, addr := range slices.SortedFunc(maps.Keys(wanted), netip.Addr.Compare) {
		name, isNew := strings.CutSuffix(wanted[addr], " new")
		all = append(all, ipam.Want{Address: addr, Container: name, New: isNew})
	}
	return all
}

// guessStep runs a step about a witness, and reports whether it is one.
func (r *Stage) guessStep(verb string, words []string) (got string, done bool, err error) {
	r.T.Helper()
	switch verb {
	case "idle":
		r.known.Hint = HintOf(words[0])
	case "asked":
		for _, q := range r.known.asked {
			got += fmt.Sprintf("%s/%s/%s ", q.Space, q.CIDR, text(q.Address))
		}
		got, r.known.asked = strings.TrimSpace(got), nil
	case "want":
		if r.known.wanted == nil {
			r.known.wanted = map[netip.Addr]string{}
		}
		delete(r.known.wanted, r.Addr(words[0]))
		if len(words) > 1 {
			r.known.wanted[r.Addr(words[0])] = strings.Join(words[1:], " ")
		}
	case "call":
		if r.known.called == nil {
			r.known.called = map[string]string{}
		}
		delete(r.known.called, words[0])
		if len(words) > 1 {
			r.known.called[words[0]] = words[1]
		}
	case "users":
		for _, info := range r.Reservations(ipam.AddressFilter{Network: words[0]}) {
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
		r.known.sights[r.Addr(words[0])] = sight
	case "seen", "seen2":
		name := ipam.LeaseName{LeaseRef: r.RefOf(r.Addr(words[0])), Name: words[1]}
		if len(words) > 2 {
			name.Container = words[2]
		}
		names := []ipam.LeaseName{name}
		if verb == "seen2" {
			names = append(names, name)
		}
		err = r.S.NameLeases(ctx, names)
	case "lease":
		got = r.leaseText(r.Addr(words[0]))
	case "guesses":
		n := r.S.Guesses()
		got = fmt.Sprintf("made %d wrong %d", n.Made, n.Wrong)
	case "told":
		got = r.told(words[0])
	case "free":
		var free []netip.Addr
		n := 0
		_, _ = fmt.Sscan(words[1], &n)
		free, err = r.S.Available(ctx, r.Show(words[0]).Subnets[0].ID, n)
		got = Joined(free)
	case "had":
		got, err = r.had(words[0])
	default:
		return "", false, nil
	}
	return got, true, err
}

// HintOf reads the hint of an idle step for later requests: a name, and after a slash the containers that start
// together with it; or one of the words none, lost, long and boots.
func HintOf(word string) ipam.Hint {
	switch word {
	case "none":
		return ipam.Hint{Live: true}
	case "lost":
		return ipam.Hint{}
	case "boots":
		return ipam.Hint{Boots: true}
	case "long":
		return ipam.Hint{Name: strings.Repeat("x", 256), Live: true}
	}
	name, others, together := strings.Cut(word, "/")
	hint := ipam.Hint{Name: name, Live: true}
	if together {
		hint.Others = strings.Split(others, ",")
	}
	return hint
}

func (r *Stage) leaseAt(addr netip.Addr) *ipam.LeaseInfo {
	r.T.Helper()
	all := ListLeases(r.T, r.S, ipam.LeaseFilter{Remembered: true})
	i := slices.IndexFunc(all, func(l ipam.LeaseInfo) bool { return l.Address == addr })
	if i < 0 {
		return nil
	}
	return &all[i]
}

// RefOf returns the reference to the lease of an address.
func (r *Stage) RefOf(addr netip.Addr) ipam.LeaseRef {
	r.T.Helper()
	l := r.leaseAt(addr)
	if l == nil {
		r.T.Fatalf("%s has no lease", addr)
	}
	return ipam.LeaseRef{Space: l.Space, Address: addr, ID: l.ID}
}

func (r *Stage) leaseText(addr netip.Addr) string {
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

func (r *Stage) told(verb string) string {
	r.T.Helper()
	all, err := r.S.Events(ctx, ipam.EventFilter{})
	fine(r.T, err)
	n, last := 0, ""
	for _, e := range all {
		if e.Verb.String() == verb {
			n++
			last = fmt.Sprintf(": %s %s (%s)", e.Address, e.Name, e.Detail)
		}
	}
	return fmt.Sprintf("%d%s", n, last)
}

func (r *Stage) had(name string) (string, error) {
	all, err := r.S.Who(ctx, ipam.WhoFilter{Name: name})
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
