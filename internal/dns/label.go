package dns

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"
)

// mostLabel is the maximum length of a label that is made from a name. DNS allows 63 (RFC 1035, 2.3.4); the rest is for
// a mark (entry.marked).
const mostLabel = 54

// markDigits is the number of hexadecimal digits in a mark.
const markDigits = 8

// labelOf returns a segment of a name as a DNS label. It is in lower case, other characters become hyphens, and hyphens
// at its ends are removed. A label that is too long is cut, with a mark of the whole at its end.
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

// labelsOf returns the labels of an owner in reverse order: shop/web/1 is 1, web, shop.
func labelsOf(owner string) []string {
	labels := strings.Split(owner, "/")
	for i := range labels {
		labels[i] = labelOf(labels[i])
	}
	slices.Reverse(labels)
	return labels
}

// pathOf returns an owner's name in its network: its labels, joined by dots.
func pathOf(owner string) string {
	if !strings.Contains(owner, "/") {
		return labelOf(owner)
	}
	return strings.Join(labelsOf(owner), ".")
}

// spelled reports whether an owner equals its labels, so that DNS required no change.
func spelled(owner string) bool {
	for segment := range strings.SplitSeq(owner, "/") {
		if !isPlainLabel(segment) || len(segment) > mostLabel {
			return false
		}
	}
	return true
}

// markOf returns a mark that distinguishes texts with the same label.
func markOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:markDigits/2])
}
