package plan

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"berth/internal/alloc"
	"berth/internal/ipam"

	"go4.org/netipx"
)

// The parsers of single values. Their errors are sentences that quote the text and say what to write.

func parseRange(text string) (ipam.Range, error) {
	r, err := alloc.ParseRange(text)
	return ipam.Range{IPRange: r}, err
}

// wholeOf returns the range of a pool that is a whole subnet.
func wholeOf(p netip.Prefix) ipam.Range { return ipam.Range{IPRange: netipx.RangeOfPrefix(p)} }

// parseNumber reads the number of an interface, a slot, or addresses.
func parseNumber(text string) (int, error) {
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 || text != strconv.Itoa(n) {
		return 0, fmt.Errorf("%q is not a whole number, 0 or more", text)
	}
	return n, nil
}

func parseDuration(text string) (d ipam.Duration, err error) {
	return d, d.UnmarshalText([]byte(text))
}

// parseType keeps the word `manual`, so that it differs from an absent type.
func parseType(text string) (string, error) {
	t, err := ipam.ParseNetworkType(text)
	return t.String(), err
}

// parseElastic reads off, on or auto, also in the form that YAML readers give the first two.
func parseElastic(text string) (string, error) {
	switch text {
	case "true":
		text = "on"
	case "false":
		text = "off"
	}
	mode, err := ipam.ParseElasticMode(text)
	return mode.String(), err
}

// parsePutBack reads reserved, all, off or default, also in the form that YAML readers give off.
func parsePutBack(text string) (string, error) {
	if text == "false" {
		text = "off"
	}
	mode, err := ipam.ParsePutBackMode(text)
	return mode.String(), err
}

// parseTime reads RFC 3339.
func parseTime(text string) (time.Time, error) {
	t, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return time.Time{}, fmt.Errorf("%q is not a time such as 2026-05-01T18:00:00Z", text)
	}
	return t.UTC(), nil
}

func formatTime(t time.Time) string { return t.UTC().Format(time.RFC3339Nano) }

// parseRules reads "web-*=pool:web;db=owner:shop/db/1", in the order in which they are tried.
func parseRules(text string) ([]ipam.OwnerRule, error) {
	var rules []ipam.OwnerRule
	for part := range strings.SplitSeq(text, ";") {
		r, err := ipam.ParseOwnerRule(strings.TrimSpace(part))
		if err != nil {
			return nil, err
		}
		rules = append(rules, r)
	}
	return rules, nil
}

func formatRules(rules []ipam.OwnerRule) string {
	var parts []string
	for _, r := range rules {
		parts = append(parts, r.String())
	}
	return strings.Join(parts, ";")
}

// parseNames reads "office;branch".
func parseNames(text string) (names []string, err error) {
	for part := range strings.SplitSeq(text, ";") {
		name := strings.TrimSpace(part)
		if err := ipam.CheckName("network", name); err != nil {
			return nil, err
		}
		names = append(names, name)
	}
	return names, nil
}

// parseBands reads "192.0.2.8-192.0.2.15;192.0.2.64/29".
func parseBands(text string) ([]ipam.PlannedBand, error) {
	var bands []ipam.PlannedBand
	for part := range strings.SplitSeq(text, ";") {
		r, err := parseRange(strings.TrimSpace(part))
		if err != nil {
			return nil, err
		}
		bands = append(bands, ipam.PlannedBand{Range: r})
	}
	return bands, nil
}

func formatBands(bands []ipam.PlannedBand) string {
	var parts []string
	for _, b := range bands {
		parts = append(parts, b.Range.String())
	}
	return strings.Join(parts, ";")
}

// parseTags reads "site=a;team=blue". A backslash removes the meaning of the next character.
func parseTags(text string) (map[string]string, error) {
	tags := map[string]string{}
	for _, pair := range splitEscaped(text, ';') {
		parts := splitEscaped(pair, '=')
		if len(parts) != 2 || parts[0] == "" {
			return nil, fmt.Errorf("%q is not of the form KEY=VALUE; write tags like site=a;team=blue", pair)
		}
		key := unescape(parts[0])
		if _, twice := tags[key]; twice {
			return nil, fmt.Errorf("the tag %q is given twice", key)
		}
		tags[key] = unescape(parts[1])
	}
	return tags, nil
}

func formatTags(tags map[string]string) string {
	var pairs []string
	for _, key := range slices.Sorted(maps.Keys(tags)) {
		pairs = append(pairs, escape(key)+"="+escape(tags[key]))
	}
	return strings.Join(pairs, ";")
}

// parseLinks reads "alpha bridged br0;beta routed 100": host, mode and link, with blanks between.
func parseLinks(text string) ([]ipam.Link, error) {
	var links []ipam.Link
	for _, part := range strings.Split(text, ";") {
		words := strings.Fields(part)
		if len(words) != 3 {
			return nil, fmt.Errorf("%q is not of the form HOST MODE LINK; write links like alpha bridged br0;beta "+
				"routed 100", part)
		}
		links = append(links, ipam.Link{Host: words[0], Mode: words[1], Link: words[2]})
	}
	return links, nil
}

func formatLinks(links []ipam.Link) string {
	var parts []string
	for _, l := range links {
		parts = append(parts, l.Host+" "+l.Mode+" "+l.Link)
	}
	return strings.Join(parts, ";")
}

var escaper = strings.NewReplacer(`\`, `\\`, `;`, `\;`, `=`, `\=`)

func escape(text string) string { return escaper.Replace(text) }

func unescape(text string) string {
	var b strings.Builder
	escaped := false
	for i := range len(text) {
		if escaped = text[i] == '\\' && !escaped; !escaped {
			b.WriteByte(text[i])
		}
	}
	return b.String()
}

// splitEscaped splits text at each sep without a backslash before it, and keeps the backslashes.
func splitEscaped(text string, sep byte) []string {
	var parts []string
	from, escaped := 0, false
	for i := range len(text) {
		switch {
		case escaped:
			escaped = false
		case text[i] == '\\':
			escaped = true
		case text[i] == sep:
			parts = append(parts, text[from:i])
			from = i + 1
		}
	}
	return append(parts, text[from:])
}

// readAll reads a document of limited size.
func readAll(r io.Reader) ([]byte, error) {
	text, err := io.ReadAll(io.LimitReader(r, MaxSize+1))
	if err != nil {
		return nil, err
	}
	if len(text) > MaxSize {
		return nil, fmt.Errorf("%w: the document has more than %d MiB; import it in parts", ipam.ErrInvalid,
			MaxSize>>20)
	}
	return text, nil
}

// notText returns the first line that is not UTF-8 text, and why; 0 if all are.
func notText(text []byte) (line int, why string) {
	if bytes.HasPrefix(text, []byte{0xff, 0xfe}) || bytes.HasPrefix(text, []byte{0xfe, 0xff}) {
		return 1, "the file is UTF-16; save it as UTF-8"
	}
	if utf8.Valid(text) {
		return 0, ""
	}
	for part := range bytes.Lines(text) {
		line++
		if !utf8.Valid(part) {
			break
		}
	}
	return line, "the line is not UTF-8; save the file as UTF-8"
}
