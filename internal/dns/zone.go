package dns

import (
	"fmt"
	"strings"
	"unicode"
)

// mostZone is the maximum length of a zone's name. It leaves room for the names of owners.
const mostZone = 100

// Names of the zone itself.
const (
	nameServer = "ns"      // its name server
	elastic    = "elastic" // the parent of the names of elastic addresses
)

// ParseZone reads the name of a zone, such as lan.example, with or without the final dot. It returns the name without
// it.
func ParseZone(text string) (string, error) {
	zone := strings.ToLower(strings.TrimSuffix(text, "."))
	if zone == "" || len(zone) > mostZone {
		return "", fmt.Errorf("%q is not a zone: give a name of at most %d characters, such as "+
			"lan.example", text, mostZone)
	}
	for label := range strings.SplitSeq(zone, ".") {
		if !spelled(label) || strings.Contains(label, "/") {
			return "", fmt.Errorf("%q is not a zone: %q is not a DNS label: up to %d letters, digits and hyphens, "+
				"without a hyphen at either end", text, label, mostLabel)
		}
	}
	switch {
	case !strings.ContainsFunc(zone, unicode.IsLetter):
		return "", fmt.Errorf("%q looks like an address: give the name of a zone, such as lan.example", text)
	case zone == "arpa" || strings.HasSuffix(zone, ".in-addr.arpa") || strings.HasSuffix(zone, ".ip6.arpa"):
		return "", fmt.Errorf("%q is a reverse zone, which Berth answers automatically: give the zone "+
			"for the names, such as lan.example", text)
	}
	return zone, nil
}
