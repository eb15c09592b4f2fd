package page

import (
	"context"
	"net/http"
	"time"
)

// writableTime bounds the wait for the store's answer whether it accepts writes.
const writableTime = 5 * time.Second

// state shows the state of the stores and of the witness, and the number of findings.
func (p *Page) state(r *http.Request, s *shown) error {
	t := s.table(&table{Name: "state", One: true, Columns: columns("store", "Store", "cluster", "Cluster", "witness",
		"Engine", "seen", "Last seen", "findings", "Findings", "leases", "Held", "reserved", "Idle")})
	totals, err := p.cfg.Service.Totals(r.Context())
	if err != nil {
		return err
	}
	store, well := p.storeState(r.Context())
	if !well {
		s.alert("The store refuses writes: " + store)
	}
	cluster := ""
	if c := p.clusterState(); c != nil {
		if cluster = c.text; !c.well {
			s.alert("The shared store: " + cluster)
		}
	}
	if err := p.cfg.Service.Partial(); err != nil {
		s.alert("This page shows only this host's own store: " + err.Error())
	}
	engine, seen := "", cell{}
	if p.cfg.Witness != nil {
		w := p.cfg.Witness()
		engine, seen = w.Engine, p.of(w.Seen)
		if w.Detail != "" {
			engine += ": " + w.Detail
		}
	}
	found, err := p.foundCell(r)
	if err != nil {
		return err
	}
	p.add(t, store, cluster, engine, seen, found, totals.Leases, totals.Reserved)
	return nil
}

// storeState returns whether the daemon's own store accepts writes, and if not, why.
func (p *Page) storeState(ctx context.Context) (text string, well bool) {
	const takesWrites = "takes writes"
	if p.cfg.Writable == nil {
		return takesWrites, true
	}
	ctx, cancel := context.WithTimeout(ctx, writableTime)
	defer cancel()
	if err := p.cfg.Writable(ctx); err != nil {
		return err.Error(), false
	}
	return takesWrites, true
}

// clustered is the state of a shared store.
type clustered struct {
	text string
	well bool
}

func (p *Page) clusterState() *clustered {
	if p.cfg.Cluster == nil {
		return nil
	}
	c := p.cfg.Cluster()
	switch {
	case c.Mending != nil:
		return &clustered{text: "its repair waits for other hosts"}
	case c.Refused != "":
		return &clustered{text: c.Refused}
	case c.NoSpace:
		return &clustered{text: "it has no space left"}
	case c.Away != "":
		return &clustered{text: c.Away}
	}
	return &clustered{"within reach", true}
}

// foundCell returns the number of findings.
func (p *Page) foundCell(r *http.Request) (c cell, err error) {
	if p.cfg.Findings == nil {
		return c, nil
	}
	report, err := p.cfg.Findings(r.Context())
	if err != nil {
		return c, err
	}
	if c = p.of(len(report.Findings)).to(link(rootOf(r), []string{"findings"})); len(report.Findings) > 0 {
		c.Sign, c.Note = "!", "something is wrong"
	}
	return c, nil
}
