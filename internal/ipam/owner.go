package ipam

import (
	"iter"
	"slices"
	"strings"
	"unicode"
)

// OwnerRule maps the names of endpoints to an owner, a pool, or both. Of a network's rules the first that matches
// counts.
type OwnerRule struct {
	Pattern string `json:"pattern"`         // of a name or an owner; each * stands for any characters
	Owner   string `json:"owner,omitempty"` // where each * stands for what the pattern's * of that place matched
	Pool    string `json:"pool,omitempty"`
}

// maxRules is how many rules a network keeps: a request looks at all of them.
const maxRules = 64

// maxStars is how many places of a pattern may vary.
const maxStars = 4

// check refuses a rule that could never do what it says.
func (r OwnerRule) check() error {
	stars := strings.Count(r.Pattern, "*")
	switch {
	case r.Pattern == "" || len(r.Pattern) > MaxText:
		return Refuse(ErrInvalid, "the pattern %q matches no name; write one such as web-*", r.Pattern)
	case CheckOwner(strings.ReplaceAll(r.Pattern, "*", "x")) != nil:
		return Refuse(ErrInvalid,
			"the pattern %q matches no name: names and owners have letters, digits, '_', '.', '-' and '/', and * "+
				"stands for any of them", r.Pattern)
	case stars > maxStars:
		return Refuse(ErrInvalid, "the pattern %q has %d stars; at most %d are allowed", r.Pattern, stars, maxStars)
	case strings.Contains(r.Pattern, "**"):
		return Refuse(ErrInvalid,
			"the pattern %q has two stars side by side; one stands for as many characters as there are", r.Pattern)
	}
	if r.Pool != "" {
		if err := CheckName("pool", r.Pool); err != nil {
			return err
		}
	}
	if r.Owner == "" {
		return nil
	}
	if n := strings.Count(r.Owner, "*"); n > stars {
		return Refuse(ErrInvalid, "the owner %q has %d stars, and the pattern %q has %d to fill them with", r.Owner, n,
			r.Pattern, stars)
	}
	return CheckOwner(strings.ReplaceAll(r.Owner, "*", "x"))
}

// match tells whether the pattern is that of a name, and what its stars stand for. Each but the last stands for as
// little as it can.
func (r OwnerRule) match(name string) (stars []string, ok bool) {
	first, rest, varies := strings.Cut(r.Pattern, "*")
	if !varies {
		return nil, name == r.Pattern
	}
	name, ok = strings.CutPrefix(name, first)
	for ok && varies {
		var part string
		part, rest, varies = strings.Cut(rest, "*")
		at := strings.Index(name, part)
		if !varies {
			at = len(name) - len(part)
			ok = strings.HasSuffix(name, part)
		}
		if ok = ok && at >= 0; ok {
			stars, name = append(stars, name[:at]), name[at+len(part):]
		}
	}
	return stars, ok
}

// owner is whom the rule makes of a name that it matched; empty where it names none.
func (r OwnerRule) owner(stars []string) string {
	owner := fill(r.Owner, stars)
	if owner == "" || !isPath(owner) {
		return "" // what a star stood for is no part of an owner
	}
	return owner
}

// fill puts what stars stand for in their places.
func fill(pattern string, stars []string) string {
	for _, star := range stars {
		pattern = strings.Replace(pattern, "*", star, 1)
	}
	return pattern
}

// Rule is the first of the network's rules that matches a name or an owner, and whom it makes of it.
func (n *Network) Rule(name string) (found OwnerRule, owner string) {
	if n == nil || name == "" {
		return OwnerRule{}, ""
	}
	for i := range n.Rules {
		r := &n.Rules[i]
		if first, _, _ := strings.Cut(r.Pattern, "*"); !strings.HasPrefix(name, first) {
			continue
		}
		if stars, ok := r.match(name); ok {
			return *r, r.owner(stars)
		}
	}
	return OwnerRule{}, ""
}

// Owners are whom the name of an endpoint can mean, the likeliest first: what a rule of the network makes of it,
// itself, and project/service/number for the names that Compose gives (shop-web-1, shop_web_1, and
// 0123456789ab_shop-web-1 while a replica is recreated).
func (n *Network) Owners(name string) iter.Seq[string] { return n.Meaning(name).Owners }

// Meaning is what a network makes of the name of an endpoint.
type Meaning struct {
	N           *Network
	name, Final string
	rule        OwnerRule // the one that matches; zero: none
	owner       string    // whom that makes of it
}

// Meaning is what a name of a container can mean on the network.
func (n *Network) Meaning(name string) Meaning {
	m := Meaning{N: n, name: name, Final: finalName(name)}
	m.rule, m.owner = n.Rule(m.Final)
	return m
}

// Owners yields them as Owners says.
func (m Meaning) Owners(yield func(string) bool) {
	if m.owner != "" && !yield(m.owner) || m.name == "" {
		return
	}
	if !yield(m.Final) || m.Final != m.name && !yield(m.name) {
		return
	}
	ComposeOwners(m.Final)(yield)
}

// Pool is that which the rules give one of the name; empty: none.
func (m Meaning) Pool() string {
	if m.N == nil || len(m.N.Rules) == 0 {
		return ""
	}
	if m.rule.Pool != "" {
		return m.rule.Pool
	}
	for owner := range m.Owners {
		if r, _ := m.N.Rule(owner); r.Pool != "" {
			return r.Pool
		}
	}
	return ""
}

// finalName is the name of a container that Compose recreates: until the old one is gone, one of the two has the first
// digits of an id before its name.
func finalName(name string) string {
	const digits = 12
	if len(name) <= digits+1 || name[digits] != '_' || strings.Trim(name[:digits], "0123456789abcdef") != "" {
		return name
	}
	return name[digits+1:]
}

// ComposeOwners are the owners project/service/number of which Compose makes a name. A dash may be one of the project's
// or of the service's name, so that there may be several.
func ComposeOwners(name string) iter.Seq[string] {
	return func(yield func(string) bool) {
		at := strings.LastIndexAny(name, "-_")
		if at < 0 || !isNumber(name[at+1:]) {
			return
		}
		both, number, between := name[:at], name[at+1:], name[at]
		for i := 1; i < len(both)-1; i++ {
			if both[i] == between && !yield(both[:i]+"/"+both[i+1:]+"/"+number) {
				return
			}
		}
	}
}

// composeName is the name that Compose gives the container of an owner project/service/number; other owners stay as
// they are.
func composeName(owner string) string {
	if parts := strings.Split(owner, "/"); len(parts) == 3 && isNumber(parts[2]) {
		return strings.Join(parts, "-")
	}
	return owner
}

// NamesOf are the names by which an owner can have come: itself, the one that Compose gives, and those of which the
// network's rules make the owner.
func (n *Network) NamesOf(owner string) []string {
	names := []string{owner}
	if name := composeName(owner); name != owner {
		names = append(names, name)
	}
	for _, r := range n.Rules {
		if stars, ok := (OwnerRule{Pattern: r.Owner}).match(owner); ok && r.Owner != "" &&
			strings.Count(r.Owner, "*") == strings.Count(r.Pattern, "*") {
			names = append(names, fill(r.Pattern, stars))
		}
	}
	return names
}

func isNumber(s string) bool {
	return s != "" && s[0] != '0' && strings.Trim(s, "0123456789") == ""
}

// RememberedName is the form of a name by which memories are found: Compose's older names differ from its newer ones in
// the characters between their parts, and are the same replica's.
func RememberedName(name string) string {
	name = finalName(name)
	if at := strings.LastIndexByte(name, '_'); at > 0 && isNumber(name[at+1:]) {
		return strings.ReplaceAll(name, "_", "-")
	}
	return name
}

// Forms are the texts by which one container or owner may be called: what is given, and where it is the name of a
// replica or its owner, the owner shop/web/1 and both names that Compose gives, shop-web-1 and shop_web_1. A dash may
// be one of the project's or of the service's name, so that there may be several owners.
func Forms(text string) []string {
	final := finalName(text)
	forms := []string{CanonicalOwner(text)}
	add := func(form string) {
		if !slices.Contains(forms, form) {
			forms = append(forms, form)
		}
	}
	add(final)
	owners := slices.Collect(ComposeOwners(final))
	if composeName(text) != text {
		owners = []string{text}
	}
	for _, owner := range owners {
		add(owner)
		add(composeName(owner))
		add(strings.ReplaceAll(owner, "/", "_"))
	}
	return forms
}

// IsForm tells whether a name is one of some forms, also while Compose recreates its container.
func IsForm(forms []string, name string) bool {
	return slices.Contains(forms, name) || slices.Contains(forms, finalName(name))
}

// Folded is a text in the form in which a part of it is looked for: without case, and with one character for those that
// stand between the parts of a replica's names and its owner.
func Folded(text string) string {
	return strings.Map(func(r rune) rune {
		if r == '_' || r == '/' {
			return '-'
		}
		return unicode.ToLower(r)
	}, text)
}

// CanBe tells whether one who sends a name, a MAC, or neither, may be an owner: it is for the address that was asked
// for to say whose it is where nothing is sent.
func (n *Network) CanBe(req AddressRequest, owner string) bool {
	return req.Name == "" || req.MAC != (MAC{}) && req.MAC.String() == owner || n.Means(req.Name, owner)
}

// Means tells whether the name of an endpoint can mean an owner.
func (n *Network) Means(name, owner string) bool {
	for other := range n.Owners(name) {
		if other == owner {
			return true
		}
	}
	return false
}

// SetRule puts a rule in the place of that of its pattern, or behind the others; one that says nothing removes it.
func (n *Network) SetRule(r OwnerRule) error {
	if err := r.check(); err != nil {
		return err
	}
	at := slices.IndexFunc(n.Rules, func(other OwnerRule) bool { return other.Pattern == r.Pattern })
	switch says := r.Owner != "" || r.Pool != ""; {
	case !says && at < 0:
		return Refuse(ErrNotFound, "network %s has no rule for %s", n.Name, r.Pattern)
	case !says:
		n.Rules = slices.Delete(n.Rules, at, at+1)
	case at >= 0:
		n.Rules[at] = r
	case len(n.Rules) == maxRules:
		return Refuse(ErrInvalid,
			"network %s has %d rules for owners already, and more are not kept; put some together with *", n.Name,
			maxRules)
	default:
		n.Rules = append(n.Rules, r)
	}
	return nil
}

// NamedBy is whose an address of the network is by its record, and the name of the container that has it, where that
// is another one; false where it has no name. A guess is none, and what is the network's own (its gateway, auxiliary
// addresses, a host's headroom) has none. What is reserved for one, and in the hands of another, is known by the
// latter.
func (n *Network) NamedBy(l *Lease) (owner, name string, ok bool) {
	r, held := l.Reserved(), l.Held()
	if held {
		switch l.Kind {
		case External:
			return l.Name, "", l.Name != ""
		case Automatic, Static:
		default:
			return "", "", false
		}
		if l.Name != "" && !l.Guessed {
			name = finalName(l.Name)
		}
	}
	switch {
	case r == nil && name == "", r != nil && r.Replaced && !held:
		return "", "", false
	case r != nil && (name == "" || n.Means(l.Name, r.Owner)):
		owner = r.Owner
	default:
		for owner = range n.Owners(l.Name) {
			break // the likeliest
		}
	}
	if name == owner {
		name = ""
	}
	return owner, name, true
}

// ServiceOf are project, service and number of an owner project/service/number; false for another one.
func ServiceOf(owner string) (project, service, number string, ok bool) {
	parts := strings.Split(owner, "/")
	if len(parts) != 3 || !isNumber(parts[2]) {
		return "", "", "", false
	}
	return parts[0], parts[1], parts[2], true
}

// ComposeName is the name that Compose gives the container of an owner project/service/number; other owners stay as
// they are.
func ComposeName(owner string) string { return composeName(owner) }
