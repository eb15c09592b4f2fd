package look

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"berth/internal/admin/api"
	"berth/internal/cli"
	"berth/internal/ipam"
)

// picture is what top shows of one moment.
type picture struct {
	at       time.Time
	status   api.Status
	networks []ipam.NetworkInfo
	leases   []ipam.LeaseInfo
	events   api.EventList // takes and releases of the last hour
}

// periods are those of which top counts takes and releases, the longest last.
var periods = []struct {
	name string
	long time.Duration
}{{"1 MIN", time.Minute}, {"10 MIN", 10 * time.Minute}, {"1 HOUR", time.Hour}}

// lines is the picture as lines of text. Each table has as many rows as are given.
func (pic *picture) lines(bar func(ipam.Use) string, rows int) []string {
	var b strings.Builder
	st := &pic.status
	fmt.Fprintf(&b, "Berth on %s at %s, up %s: %s, %d addresses held, %d reserved\n", cli.Printable(st.Host),
		pic.at.Local().Format("15:04:05 MST"), (time.Duration(st.Uptime) * time.Second).String(),
		cli.Counted(st.Totals.Networks, "network"), st.Totals.Leases, st.Totals.Reserved)
	if !st.Writable {
		fmt.Fprintf(&b, "No writes are taken: %s\n", cli.Printable(st.Reason))
	}
	table(&b, "NETWORK\tUSE\tFREE\tHELD", fullest(pic.networks, rows), func(n *ipam.NetworkInfo) []any {
		return []any{n.Name, bar(n.Use), n.Use.Free.Text(), n.Use.Leased}
	})
	table(&b, "WHO\tADDRESSES\tNETWORKS", most(pic.leases, rows), func(t *taker) []any {
		return []any{t.name, t.addresses, strings.Join(t.networks, ",")}
	})
	titles := []string{"EVENTS"}
	for _, p := range periods {
		titles = append(titles, p.name)
	}
	table(&b, strings.Join(titles, "\t"), []ipam.Verb{ipam.LeaseTaken, ipam.LeaseReleased}, func(v *ipam.Verb) []any {
		return append([]any{v.String()}, pic.counts(*v)...)
	})
	return strings.Split(strings.TrimSuffix(b.String(), "\n"), "\n")
}

// table writes a table of rows behind an empty line.
func table[T any](w io.Writer, titles string, rows []T, cells func(*T) []any) {
	tabs := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	fmt.Fprintf(tabs, "\n%s\n", titles)
	for i := range rows {
		var texts []string
		for _, cell := range cells(&rows[i]) {
			texts = append(texts, cli.Printable(fmt.Sprint(cell)))
		}
		fmt.Fprintln(tabs, strings.Join(texts, "\t"))
	}
	tabs.Flush() // into a strings.Builder, which takes everything
}

// fullest are the networks of which the largest part is used, of those that have pools.
func fullest(all []ipam.NetworkInfo, n int) []ipam.NetworkInfo {
	used := func(n *ipam.NetworkInfo) int {
		percent, ok := n.Use.Percent()
		if !ok {
			return -1
		}
		return percent
	}
	all = slices.DeleteFunc(slices.Clone(all), func(n ipam.NetworkInfo) bool { return used(&n) < 0 })
	slices.SortStableFunc(all, func(a, b ipam.NetworkInfo) int {
		return cmp.Or(used(&b)-used(&a), cmp.Compare(b.Use.Leased, a.Use.Leased))
	})
	return all[:min(len(all), n)]
}

// taker is who has addresses: a Compose project, the first part of an owner, or a container.
type taker struct {
	name      string
	addresses int
	networks  []string
}

// most are those who have the most addresses.
func most(leases []ipam.LeaseInfo, n int) []taker {
	byName := map[string]*taker{}
	for i := range leases {
		l := &leases[i]
		name := takerOf(l)
		if name == "" {
			continue
		}
		if byName[name] == nil {
			byName[name] = &taker{name: name}
		}
		t := byName[name]
		t.addresses++
		if !slices.Contains(t.networks, l.Network) {
			t.networks = append(t.networks, l.Network)
		}
	}
	all := make([]taker, 0, len(byName))
	for _, t := range byName {
		slices.Sort(t.networks)
		all = append(all, *t)
	}
	slices.SortFunc(all, func(a, b taker) int {
		return cmp.Or(b.addresses-a.addresses, strings.Compare(a.name, b.name))
	})
	return all[:min(len(all), n)]
}

// takerOf is whom a lease counts for; empty: a gateway, or one of whom nothing is known.
func takerOf(l *ipam.LeaseInfo) string {
	if l.Kind == ipam.Gateway || l.Kind == ipam.Headroom {
		return ""
	}
	if l.SeenBy != nil && l.SeenBy.Project != "" {
		return l.SeenBy.Project
	}
	if project, _, ok := strings.Cut(l.Owner, "/"); ok {
		return project
	}
	if l.SeenBy != nil && l.SeenBy.Container != "" {
		return l.SeenBy.Container
	}
	return cmp.Or(l.Owner, l.Name, l.MAC.String())
}

// counts is how many events of a verb there were in each of the periods; with + where there were more than are listed.
func (pic *picture) counts(verb ipam.Verb) (all []any) {
	for _, p := range periods {
		n, begin := 0, pic.at.Add(-p.long)
		for i := range pic.events.Events {
			if e := &pic.events.Events[i]; e.Verb == verb && e.Time.After(begin) {
				n++
			}
		}
		more := ""
		if pic.events.More && len(pic.events.Events) > 0 && pic.events.Events[0].Time.After(begin) {
			more = "+"
		}
		all = append(all, fmt.Sprintf("%d%s", n, more))
	}
	return all
}

// cutTo leaves what fits a screen.
func cutTo(lines []string, width, height int) []string {
	lines = lines[:min(len(lines), height)]
	for i, line := range lines {
		if runes := []rune(line); len(runes) > width {
			lines[i] = string(runes[:width])
		}
	}
	return lines
}
