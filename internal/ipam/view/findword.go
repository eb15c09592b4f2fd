package view

import (
	"maps"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"berth/internal/ipam"
)

// maxWord is the maximum length of a word, in bytes.
const maxWord = 256

// shortestID is how many digits of an id a search needs.
const shortestID = 8

// The number of digits of a container's id: as `docker ps` shows it, and in full.
const (
	shortContainer = 12
	wholeContainer = 64
)

// word is the searched word, in each of its possible meanings.
type word struct {
	exact  bool
	folded string
	forms  []string // the forms of the container or owner that it can name

	addr   netip.Addr
	prefix netip.Prefix
	mac    string     // complete
	digits string     // the start of an address or a prefix
	octets string     // a part of a MAC
	id     string     // the start of an id
	number uint64     // the id of a lease
	span   ipam.Range // of several addresses

	container  string           // the start of a container's id
	containers []ipam.Container // those with that id, as the witness knows them
}

func readWord(f *ipam.FindFilter) (*word, error) {
	text := strings.TrimSpace(f.Word)
	switch {
	case text == "":
		return nil, ipam.Refuse(ipam.ErrInvalid, "the search is empty; give an address, or part of a name, MAC, tag "+
			"or note")
	case len(text) > maxWord:
		return nil, ipam.Refuse(ipam.ErrInvalid, "the search text has %d characters; at most %d are allowed", len(text),
			maxWord)
	}
	w := &word{exact: f.Exact, folded: ipam.Folded(text), forms: ipam.Forms(text)}
	if addr, err := netip.ParseAddr(text); err == nil {
		w.addr = addr.Unmap().WithZone("")
	}
	if p, err := netip.ParsePrefix(text); err == nil {
		w.prefix = p.Masked()
	}
	if mac, err := ipam.ParseMAC(text); err == nil {
		w.mac = mac.String()
	}
	if w.span.UnmarshalText([]byte(text)) != nil || w.addr.IsValid() {
		w.span = ipam.Range{}
	}
	w.number, _ = strconv.ParseUint(text, 10, 64) // 0 is no id
	lower := strings.ToLower(text)
	onlyOf := func(chars string) bool { return strings.Trim(lower, chars) == "" }
	if !w.exact {
		if !w.addr.IsValid() && (strings.Contains(lower, ".") && onlyOf("0123456789./") ||
			strings.Contains(lower, ":") && onlyOf("0123456789abcdef:/")) {
			w.digits = lower
		}
		if w.mac == "" && strings.Contains(lower, ":") && onlyOf("0123456789abcdef:") {
			w.octets = lower
		}
	}
	if len(lower) >= shortestID && onlyOf("0123456789abcdef-") {
		w.id = lower
	}
	if len(lower) >= shortContainer && len(lower) <= wholeContainer && onlyOf("0123456789abcdef") {
		w.container = lower
	}
	return w, nil
}

// asMAC reports whether the word can be a MAC or a part of one.
func (w *word) asMAC() bool { return w.mac != "" || w.octets != "" }

// matches collects the texts of one thing that match the word.
type matches struct {
	w   *word
	all []ipam.Match
}

func (m *matches) add(field, text string) {
	m.all = append(m.all, ipam.Match{Field: field, Text: text})
}

// name searches an owner, or the name of a container or of a part of the plan.
func (m *matches) name(field, text string) {
	switch {
	case text == "":
	case m.w.exact && ipam.IsForm(m.w.forms, text), !m.w.exact && m.within(text):
		m.add(field, text)
	}
}

// text searches a text that a person wrote and that is no name, such as a note.
func (m *matches) text(field, text string) {
	if text != "" && !m.w.exact && m.within(text) {
		m.add(field, text)
	}
}

func (m *matches) within(text string) bool { return strings.Contains(ipam.Folded(text), m.w.folded) }

func (m *matches) tags(tags map[string]string) {
	for _, key := range slices.Sorted(maps.Keys(tags)) {
		m.text("tag", key+"="+tags[key])
	}
}

func (m *matches) address(field string, addr netip.Addr) {
	if addr.IsValid() && (addr == m.w.addr || m.w.digits != "" && strings.HasPrefix(addr.String(), m.w.digits) ||
		!m.w.exact && m.w.prefix.IsValid() && m.w.prefix.Contains(addr)) {
		m.add(field, addr.String())
	}
}

func (m *matches) mac(mac ipam.MAC) {
	if mac == (ipam.MAC{}) {
		return
	}
	if text := mac.String(); text == m.w.mac || m.w.octets != "" && strings.Contains(text, m.w.octets) {
		m.add("mac", text)
	}
}

func (m *matches) id(id ipam.ID) {
	if text := id.String(); m.w.id != "" && (text == m.w.id || len(m.w.id) == shortestID && id.Short() == m.w.id ||
		!m.w.exact && strings.HasPrefix(text, m.w.id)) {
		m.add("id", text)
	}
}

// container searches for the container that has an address, by its names in the request and at the witness.
func (m *matches) container(names ...string) {
	for _, c := range m.w.containers {
		if slices.Contains(names, c.Name) {
			m.add("container_id", c.ID)
		}
	}
}

func (m *matches) number(field string, id uint64) {
	if id != 0 && id == m.w.number {
		m.add(field, strconv.FormatUint(id, 10))
	}
}

// cidr searches a subnet. If the word is an address, the subnet that contains it matches, except in an exact search.
func (m *matches) cidr(p netip.Prefix) {
	switch {
	case p == m.w.prefix, m.w.digits != "" && strings.HasPrefix(p.String(), m.w.digits):
		m.add("cidr", p.String())
	case !m.w.exact && m.w.prefix.IsValid() && p.Overlaps(m.w.prefix):
		m.add("overlaps", p.String())
	case !m.w.exact && m.w.addr.IsValid() && p.Contains(m.w.addr):
		m.add("contains", p.String())
	}
}

// addresses searches a range.
func (m *matches) addresses(r ipam.Range) {
	switch {
	case !m.w.span.IsZero() && r == m.w.span:
		m.add("range", r.String())
	case !m.w.exact && m.w.addr.IsValid() && r.Contains(m.w.addr):
		m.add("contains", r.String())
	}
}
