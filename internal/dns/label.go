package dns

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"
)

// mostLabel is how many characters a label has that is made of a name. DNS allows 63 (RFC 1035, 2.3.4); what is left is
// for the mark of one whose name another one has (entry.marked).
const mostLabel = 54

// markDigits is how many hexadecimal digits a mark has.
const markDigits = 8

// labelOf is a segment of a name as a label of DNS: in lower case, each character besides letters, digits and hyphens a
// hyphen, with none at its ends. One that is too long is cut, and has a mark of the whole at its end.
func labelOf(segment string) string {
	label := segment
	if !isPlainLabel(segment) {
		label = strings.Trim(strings.Map(func(r rune) rune {
			switch {
			case r >= 'a' && r <= 'z', r >= '0' && r <= '9':
				return r
			case r >= 'A' && r <= 'Z':
				return r - 'A' + 'a'
			}
			return '-'
		}, segment), "-")
	}
	switch {
	case label == "":
		return "x-" + markOf(segment)
	case len(label) > mostLabel:
		return strings.TrimRight(label[:mostLabel-markDigits-1], "-") + "-" + markOf(segment)
	}
	return label
}

func isPlainLabel(s string) bool {
	for i := range len(s) {
		switch c := s[i]; {
		case c >= 'a' && c <= 'z', c >= '0' && c <= '9':
		case c == '-' && i > 0 && i < len(s)-1:
		default:
			return false
		}
	}
	return s != ""
}

// labelsOf are the labels of an owner, the most special first: shop/web/1 is 1, web, shop.
func labelsOf(owner string) []string {
	labels := strings.Split(owner, "/")
	for i := range labels {
		labels[i] = labelOf(labels[i])
	}
	slices.Reverse(labels)
	return labels
}

// pathOf is an owner below its network: its labels, joined by dots.
func pathOf(owner string) string {
	if !strings.Contains(owner, "/") {
		return labelOf(owner)
	}
	return strings.Join(labelsOf(owner), ".")
}

// spelled tells whether an owner is spelled as its labels are, so that nothing had to be changed for DNS.
func spelled(owner string) bool {
	for segment := range strings.SplitSeq(owner, "/") {
		if !isPlainLabel(segment) || len(segment) > mostLabel {
			return false
		}
	}
	return true
}

// markOf is what tells one text from others of one label.
func markOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:markDigits/2])
}
