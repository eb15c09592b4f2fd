package page

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"

	"berth/internal/ipam"
)

// eventsBefore is the maximum number of skipped events, because all skipped ones are read.
const eventsBefore = 100_000

// events shows what happened, the latest first.
func (p *Page) events(r *http.Request) (*shown, error) {
	q, err := query(r, "network", "verb", "from")
	if err != nil {
		return nil, err
	}
	from, err := fromOf(q.Get("from"))
	if err == nil && from > eventsBefore {
		err = ipam.Refuse(ipam.ErrInvalid, "the page shows only the last %d events; `berth events "+
			"--since` shows older ones", eventsBefore)
	}
	if err != nil {
		return nil, err
	}
	var verb ipam.Verb
	if text := q.Get("verb"); text != "" {
		if err := verb.UnmarshalText([]byte(text)); err != nil {
			return nil, err
		}
	}
	network := q.Get("network")
	all, err := p.lastEvents(r, from+perPage+1, func(e *ipam.Event) bool {
		return (network == "" || e.Network == network) && (verb == 0 || e.Verb == verb)
	})
	if err != nil {
		return nil, err
	}
	none := ""
	if len(all) == 0 {
		none = p.noEvents(r, network, q.Get("verb"))
	}
	s := &shown{Title: "Events", File: "events", Here: "events", Network: network}
	s.Blocks = append(s.Blocks, block{Ask: &asking{Action: link(rootOf(r), []string{"events"}), Label: "Only of network",
		Name: "network", Value: network, Button: "Show", Hidden: []hidden{{"verb", q.Get("verb")}}}})
	var links []offered
	for _, filter := range []string{"network", "verb"} {
		if value := q.Get(filter); value != "" {
			links = append(links, offered{"Clear " + filter + " " + value, with(r, filter, "", "from", "")})
		}
	}
	if len(links) > 0 {
		s.Blocks = append(s.Blocks, block{Offers: links})
	}
	t := s.table(&table{Name: "events", Title: "Events, the latest first", None: none,
		Columns: columns("time", "Time", "verb", "What", "address", "Address", "name", "Name", "network", "Network",
			"changed", "Change", "actor", "By", "host", "-Host", "mac", "-MAC", "subnet", "-Subnet", "space", "-Space", "id", "-Id")})
	if len(all) > from+perPage {
		t.Next = with(r, "from", strconv.Itoa(from+perPage))
	}
	root := rootOf(r)
	for _, e := range all[min(from, len(all)):min(from+perPage, len(all))] {
		p.add(t, e.Time, p.of(e.Verb.String()).to(with(r, "verb", e.Verb.String(), "from", "")),
			p.of(e.Address).to(addressLink(root, e.Space, e.Address)), e.Name,
			p.of(e.Network).to(with(r, "network", e.Network, "from", "")), e.Changed(), e.Actor, e.Host,
			e.MAC, e.Subnet, e.Space, e.ID)
	}
	return s, nil
}

// noEvents returns the text for an empty list. A removed network may still have events.
func (p *Page) noEvents(r *http.Request, network, verb string) string {
	switch {
	case network == "" && verb == "":
		return "No events are known."
	case network == "":
		return "No event " + verb + " is known."
	}
	if _, err := p.cfg.Service.Network(r.Context(), network); errors.Is(err, ipam.ErrNotFound) {
		return fmt.Sprintf("There is no network %q, and no events of that name are known.", network)
	}
	return fmt.Sprintf("No such event of network %q is known.", network)
}

// lastEvents returns the last n wanted events, the latest first. It looks back further until it has found them, four
// times as far each time.
func (p *Page) lastEvents(r *http.Request, n int, wanted func(*ipam.Event) bool) ([]ipam.Event, error) {
	for last := n; ; last *= 4 {
		all, err := p.cfg.Service.Events(r.Context(), ipam.EventFilter{Last: last})
		if err != nil {
			return nil, err
		}
		whole := len(all) < last
		all = slices.DeleteFunc(all, func(e ipam.Event) bool { return !wanted(&e) })
		if whole || len(all) >= n {
			slices.Reverse(all)
			return all[:min(n, len(all))], nil
		}
	}
}
