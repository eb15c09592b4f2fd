package ipam

import (
	"iter"
	"slices"
	"strings"
	"unicode"
)

// OwnerRule maps the names of endpoints to an owner, a pool, or both. The first matching rule of a network counts.
type OwnerRule struct {
	Pattern string `json:"pattern"`         // of a name or an owner; * matches any characters
	Owner   string `json:"owner,omitempty"` // each * is replaced with what the pattern's * at that position matched
	Pool    string `json:"pool,omitempty"`
}

// maxRules is how many rules a network keeps. It is bounded because each request tries them all.
const maxRules = 64

// maxStars is how many * a pattern may have.
const maxStars = 4

// check refuses a rule that can never match, or never yield an owner or pool.
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
		return Refuse(ErrInvalid, "the pattern %q has two adjacent stars; one star already matches any number of "+
			"characters", r.Pattern)
	}
	if r.Pool != "" {
		if err := CheckNewName("pool", r.Pool); err != nil {
			return err
		}
	}
	if r.Owner == "" {
		return nil
	}
	if n := strings.Count(r.Owner, "*"); n > stars {
		return Refuse(ErrInvalid, "the owner %q has %d stars, but the pattern %q has only %d", r.Owner, n, r.Pattern,
			stars)
	}
	return CheckOwner(strings.ReplaceAll(r.Owner, "*", "x"))
}

// match reports whether the pattern matches a name, and what its stars matched. Each star except the last matches as
// little as possible.
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

// owner returns the owner that the rule derives from a matched name. It is empty if the rule names none.
func (r OwnerRule) owner(stars []string) string {
	owner := fill(r.Owner, stars)
	if owner == "" || !isPath(owner) {
		return "" // what a star matched is not valid in an owner
	}
	return owner
}

// fill replaces the stars of a pattern, in order.
func fill(pattern string, stars []string) string {
	for _, star := range stars {
		pattern = strings.Replace(pattern, "*", star, 1)
	}
	return pattern
}

// Rule returns the first rule that matches a name or an owner, and the owner that it derives.
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

// Owners yields the owners that an endpoint's name can mean, the likeliest first. First comes the owner from a rule,
// then the name itself. Then come the owners project/service/number for names that Compose makes. Those are shop-web-1
// and shop_web_1, and 0123456789ab_shop-web-1 while a replica is recreated.
func (n *Network) Owners(name string) iter.Seq[string] { return n.Meaning(name).Owners }

// Meaning is a network's interpretation of an endpoint's name.
type Meaning struct {
	N           *Network
	name, Final string
	rule        OwnerRule // the matching rule; zero: none
	owner       string    // the owner that it derives
}

// Meaning returns the network's interpretation of a container's name.
func (n *Network) Meaning(name string) Meaning {
	m := Meaning{N: n, name: name, Final: finalName(name)}
	m.rule, m.owner = n.Rule(m.Final)
	return m
}

// Owners yields the owners in the order of Network.Owners.
func (m Meaning) Owners(yield func(string) bool) {
	if m.owner != "" && !yield(m.owner) || m.name == "" {
		return
	}
	if !yield(m.Final) || m.Final != m.name && !yield(m.name) {
		return
	}
	ComposeOwners(m.Final)(yield)
}

// IsReplica reports whether Compose can have made the name.
func (m Meaning) IsReplica() bool {
	for range ComposeOwners(m.Final) {
		return true
	}
	return false
}

// Pool returns the pool that the rules give the name, or the empty string.
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

// finalName returns the final name of a container that Compose recreates. Until the old container is gone, one of the
// two has the first digits of an id before its name.
func finalName(name string) string {
	const digits = 12
	if len(name) <= digits+1 || name[digits] != '_' || strings.Trim(name[:digits], "0123456789abcdef") != "" {
		return name
	}
	return name[digits+1:]
}

// ComposeOwners yields the owners project/service/number from which Compose makes a name. There may be several, because
// a dash can belong to the project's or the service's name.
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

// ComposeName returns the name that Compose gives the container of an owner project/service/number. It returns other
// owners unchanged.
func ComposeName(owner string) string {
	if parts := strings.Split(owner, "/"); len(parts) == 3 && isNumber(parts[2]) {
		return strings.Join(parts, "-")
	}
	return owner
}

// NamesOf returns the names with which an owner's request can have come. These are the owner itself, Compose's name,
// and names from which the network's rules derive the owner.
func (n *Network) NamesOf(owner string) []string {
	names := []string{owner}
	if name := ComposeName(owner); name != owner {
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

// RememberedName returns the form of a name by which memories are found. Compose's older names have other separators
// than its newer ones, but mean the same replica.
func RememberedName(name string) string {
	name = finalName(name)
	if at := strings.LastIndexByte(name, '_'); at > 0 && isNumber(name[at+1:]) {
		return strings.ReplaceAll(name, "_", "-")
	}
	return name
}

// Forms returns the texts that name the same container or owner. For a replica these are the owner shop/web/1 and
// Compose's names shop-web-1 and shop_web_1. A dash can belong to the project's or the service's name, so there may be
// several owners.
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
	if ComposeName(text) != text {
		owners = []string{text}
	}
	for _, owner := range owners {
		add(owner)
		add(ComposeName(owner))
		add(strings.ReplaceAll(owner, "/", "_"))
	}
	return forms
}

// IsForm reports whether a name is one of the forms, even while Compose recreates its container.
func IsForm(forms []string, name string) bool {
	return slices.Contains(forms, name) || slices.Contains(forms, finalName(name))
}

// Folded returns a text in the form for searching parts of it. It has no upper case, and one character for all
// separators of a replica's names and its owner.
func Folded(text string) string {
	return strings.Map(func(r rune) rune {
		if r == '_' || r == '/' {
			return '-'
		}
		return unicode.ToLower(r)
	}, text)
}

// CanBe reports whether the requester may be an owner. A request without a name, or whose MAC is the owner, always may.
// Without a name, the requested address decides whose it is.
func (n *Network) CanBe(req AddressRequest, owner string) bool {
	return req.Name == "" || req.MAC != (MAC{}) && req.MAC.String() == owner || n.Means(req.Name, owner)
}

// Means reports whether an endpoint's name can mean an owner.
func (n *Network) Means(name, owner string) bool {
	for other := range n.Owners(name) {
		if other == owner {
			return true
		}
	}
	return false
}

// setRule replaces the rule with the same pattern, or appends the rule. A rule without owner and pool removes the
// existing one.
func (n *Network) setRule(r OwnerRule) error {
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
		return Refuse(ErrInvalid, "network %s already has %d owner rules, the maximum; combine some with *", n.Name,
			maxRules)
	default:
		n.Rules = append(n.Rules, r)
	}
	return nil
}

// NamedBy returns the owner of an address of the network, and the holding container's name if it differs. It returns
// false if the address has no name. Guessed names do not count, and the network's own addresses (gateway, auxiliary,
// headroom) have none. If an address is reserved for one owner and held by another, the holder counts.
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

// ServiceOf splits an owner project/service/number. It returns false for any other owner.
func ServiceOf(owner string) (project, service, number string, ok bool) {
	parts := strings.Split(owner, "/")
	if len(parts) != 3 || !isNumber(parts[2]) {
		return "", "", "", false
	}
	return parts[0], parts[1], parts[2], true
}
