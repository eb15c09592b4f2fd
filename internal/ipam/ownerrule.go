package ipam

import (
	"strings"
)

// ParseOwnerRule reads the form that a rule has as a text: PATTERN=pool:NAME, PATTERN=owner:PATH, or
// PATTERN=pool:NAME,owner:PATH.
func ParseOwnerRule(text string) (OwnerRule, error) {
	pattern, meaning, ok := strings.Cut(text, "=")
	r := OwnerRule{Pattern: pattern}
	if !ok {
		return r, Refuse(ErrInvalid,
			"%q is no rule for owners; write PATTERN=pool:NAME, PATTERN=owner:PATH or both, such as "+
				"web-*=pool:web,owner:shop/web/*", text)
	}
	for part := range strings.SplitSeq(meaning, ",") {
		key, value, _ := strings.Cut(part, ":")
		to := map[string]*string{"pool": &r.Pool, "owner": &r.Owner}[key]
		switch {
		case to == nil || value == "":
			return r, Refuse(ErrInvalid, "%q is neither pool:NAME nor owner:PATH, in the rule for %s", part, pattern)
		case *to != "":
			return r, Refuse(ErrInvalid, "the rule for %s says %s: twice", pattern, key)
		}
		*to = value
	}
	return r, r.check()
}

// String is the form that ParseOwnerRule reads.
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
