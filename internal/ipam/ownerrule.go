package ipam

import (
	"strings"
)

// ParseOwnerRule reads the text of a rule: PATTERN=pool:NAME, PATTERN=owner:PATH, or PATTERN=pool:NAME,owner:PATH. Its
// errors wrap ErrInvalid.
func ParseOwnerRule(text string) (OwnerRule, error) {
	pattern, meaning, ok := strings.Cut(text, "=")
	r := OwnerRule{Pattern: pattern}
	if !ok {
		return r, Refuse(ErrInvalid, "%q is not an owner rule; write PATTERN=pool:NAME, PATTERN=owner:PATH or both, "+
			"such as web-*=pool:web,owner:shop/web/*", text)
	}
	for part := range strings.SplitSeq(meaning, ",") {
		key, value, _ := strings.Cut(part, ":")
		to := map[string]*string{"pool": &r.Pool, "owner": &r.Owner}[key]
		switch {
		case to == nil || value == "":
			return r, Refuse(ErrInvalid, "%q in the rule for %s is neither pool:NAME nor owner:PATH", part, pattern)
		case *to != "":
			return r, Refuse(ErrInvalid, "the rule for %s gives more than one %s:...; give only one", pattern, key)
		}
		*to = value
	}
	return r, r.check()
}

// String returns the text that ParseOwnerRule reads.
func (r OwnerRule) String() string {
	var parts []string
	if r.Pool != "" {
		parts = append(parts, "pool:"+r.Pool)
	}
	if r.Owner != "" {
		parts = append(parts, "owner:"+r.Owner)
	}
	return r.Pattern + "=" + strings.Join(parts, ",")
}

// isSegment reports whether a text is a valid name. It has no regular expression, because it runs while the engine
// waits.
func isSegment(s string) bool {
	if s == "" || len(s) > 63 {
		return false
	}
	for i := range len(s) {
		switch c := s[i]; {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9':
		case i == 0 || c != '_' && c != '.' && c != '-':
			return false
		}
	}
	return true
}

// CanonicalOwner writes a MAC address in the one form that is compared. It returns other owners unchanged.
func CanonicalOwner(owner string) string {
	if mac, err := ParseMAC(owner); err == nil {
		return mac.String()
	}
	return owner
}

// CheckOwner refuses an invalid owner. An owner is a path of names such as shop/web/1, a container's name, or a MAC
// address.
func CheckOwner(owner string) error {
	if isPath(owner) {
		return nil
	}
	if _, err := ParseMAC(owner); err == nil {
		return nil
	}
	if len(owner) > MaxText {
		return Refuse(ErrInvalid, "the owner has %d characters; at most %d are allowed", len(owner), MaxText)
	}
	return Refuse(ErrInvalid, "%q is not a valid owner: write a name such as web, a path such as shop/web/1, or a MAC "+
		"address; a name has 1 to 63 letters, digits, '_', '.' and '-', and begins with a letter or digit", owner)
}

// isPath reports whether an owner is a path of one or more names.
func isPath(owner string) bool {
	if len(owner) > MaxText {
		return false
	}
	for segment := range strings.SplitSeq(owner, "/") {
		if !isSegment(segment) {
			return false
		}
	}
	return true
}
