package daemon

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"berth/internal/admin/api"
	"berth/internal/admin/client"
	"berth/internal/cli"
	"berth/internal/ipam"
)

// scrubber removes from texts what identifies their user: addresses, ids, paths, quoted texts, and all names that the
// daemon or its events have.
type scrubber struct {
	names map[string]bool
}

func newScrubber() *scrubber { return &scrubber{names: map[string]bool{}} }

// scrubEvents is how many events are searched for names that no longer exist.
const scrubEvents = 10_000

// learn collects the names in the daemon's answers, and asks the daemon for more. If the daemon does not answer, these
// stay unknown.
func (s *scrubber) learn(r *cli.Run, st *api.Status, events []ipam.Event) {
	add := func(names ...string) {
		for _, name := range names {
			if len(name) > 1 {
				s.names[name] = true
			}
		}
	}
	add(st.Host)
	networks, _ := r.Networks(r, "")
	for i := range networks {
		add(networks[i].Name, networks[i].Space)
	}
	hosts := cli.NamesOf((*client.Client).Hosts, func(h *ipam.HostInfo) string { return h.Name })
	for _, refs := range []cli.Refs{hosts, cli.AccountRefs, cli.ReservationOwners} {
		names, _ := refs(r, "")
		add(names...)
	}
	leases, _ := r.Leases(r, ipam.LeaseFilter{})
	for i := range leases {
		add(leases[i].Name, leases[i].Container, leases[i].Host)
	}
	for i := range events {
		e := &events[i]
		add(e.Network, e.Name, e.Host, e.Actor, e.Space)
	}
	// these say nothing about a user
	for _, name := range []string{ipam.LocalSpace, ipam.GlobalSpace, ipam.DefaultAccount, "docker", "check"} {
		delete(s.names, name)
	}
}

// These find the parts of a text that may identify a user: quoted texts, and words that are no plain word, number or
// duration.
var (
	inQuotes = regexp.MustCompile(`"(?:[^"\\]|\\.)*"`)
	word     = regexp.MustCompile(`[^\s,;()\[\]"=]+`)
	plain    = regexp.MustCompile(`^[0-9]+(\.[0-9]+)?(ns|us|µs|ms|s|m|h|%|[kMG]i?B?)?[.:]?$|^[A-Za-z'-]+[.:?!]?$`)
)

// text returns a text without names and values.
func (s *scrubber) text(text string) string {
	text = inQuotes.ReplaceAllString(text, "<text>")
	return word.ReplaceAllStringFunc(text, func(w string) string {
		bare := strings.TrimRight(w, ".:?!'")
		bare = strings.TrimLeft(bare, "'`")
		switch {
		case w == "<text>":
			return w
		case s.names[bare], slices.ContainsFunc(strings.Split(bare, "/"), s.knows):
			return "<name>"
		case !plain.MatchString(w):
			return "<value>"
		}
		return w
	})
}

func (s *scrubber) knows(name string) bool { return s.names[name] }

// logPart matches a field of a log line.
var logPart = regexp.MustCompile(`([A-Za-z_]+)=("(?:[^"\\]|\\.)*"|\S*)`)

// logLine returns a log line with its time, level and scrubbed message. It keeps only the names of other fields. A line
// in another form, such as from a crash, is scrubbed as a text.
func (s *scrubber) logLine(line string) string {
	parts := logPart.FindAllStringSubmatch(line, -1)
	if len(parts) == 0 || !strings.HasPrefix(line, parts[0][0]) {
		return s.text(line)
	}
	var b strings.Builder
	for _, part := range parts {
		key, value := part[1], part[2]
		if bare, err := strconv.Unquote(value); err == nil {
			value = bare
		}
		switch key {
		case "time", "level":
			fmt.Fprintf(&b, "%s ", value)
		case "msg":
			fmt.Fprintf(&b, "%s ", s.text(value))
		default:
			fmt.Fprintf(&b, "%s=… ", key)
		}
	}
	return strings.TrimSpace(b.String())
}
