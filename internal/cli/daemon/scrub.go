package daemon

import (
	"context"
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

// scrubber takes out of texts what says whose they are: addresses, ids, paths, what stands in quotes, and every name
// that the daemon knows or that its events have.
type scrubber struct {
	names map[string]bool
}

func newScrubber() *scrubber { return &scrubber{names: map[string]bool{}} }

// scrubEvents is how far back names are looked for of what is gone.
const scrubEvents = 10_000

// learn takes the names out of what the daemon has answered, and asks it for the others. What it does not answer is not
// known.
func (s *scrubber) learn(ctx context.Context, c *client.Client, st *api.Status, events []ipam.Event) {
	add := func(names ...string) {
		for _, name := range names {
			if len(name) > 1 {
				s.names[name] = true
			}
		}
	}
	add(st.Host)
	networks, _ := c.Networks(ctx, "")
	for i := range networks {
		add(networks[i].Name, networks[i].Space)
	}
	hosts := cli.NamesOf((*client.Client).Hosts, func(h *ipam.HostInfo) string { return h.Name })
	for _, refs := range []cli.Refs{hosts, cli.AccountRefs, cli.ReservationOwners} {
		names, _ := refs(ctx, c, "")
		add(names...)
	}
	leases, _ := c.Leases(ctx, ipam.LeaseFilter{})
	for i := range leases {
		add(leases[i].Name, leases[i].Container, leases[i].Host)
	}
	for i := range events {
		e := &events[i]
		add(e.Network, e.Name, e.Host, e.Actor, e.Space)
	}
	// of every Berth
	for _, name := range []string{ipam.LocalSpace, ipam.GlobalSpace, ipam.DefaultAccount, "docker", "check"} {
		delete(s.names, name)
	}
}

// telling finds what tells more than a word does: quotes, then whatever has a digit, a colon, a slash or a dot inside
// and is no plain number, time or decimal.
var (
	inQuotes = regexp.MustCompile(`"(?:[^"\\]|\\.)*"`)
	word     = regexp.MustCompile(`[^\s,;()\[\]"=]+`)
	plain    = regexp.MustCompile(`^[0-9]+(\.[0-9]+)?(ns|us|µs|ms|s|m|h|%|[kMG]i?B?)?[.:]?$|^[A-Za-z'-]+[.:?!]?$`)
)

// text is a text without what is to be hidden.
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

// logPart is a field of a line of the log.
var logPart = regexp.MustCompile(`([A-Za-z_]+)=("(?:[^"\\]|\\.)*"|\S*)`)

// logLine is a line of the log with its level and message; of the other fields it keeps the names. A line of another
// form, such as a program's that crashed, keeps its words.
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
