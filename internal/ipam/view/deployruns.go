package view

import (
	"context"
	"encoding/json"
	"slices"

	"berth/internal/ipam"
	"berth/internal/ipam/ledger"
)

// DeployRuns lists the latest limit deploys of a project that have events, the latest first. A limit of 0 means all.
func (s Views) DeployRuns(ctx context.Context, project string, limit int) ([]ipam.DeployRun, error) {
	l, err := s.homes.Cluster("the history of deploys")
	if err != nil {
		return nil, err
	}
	r := runs{project: project, ended: map[ipam.ID]ipam.Event{}, all: []ipam.DeployRun{}}
	for f := (ipam.EventFilter{First: ledger.PageSize}); ; {
		page, err := events(ctx, l, f)
		if err != nil {
			return nil, err
		}
		for i := range page {
			if err := r.read(&page[i]); err != nil {
				return nil, err
			}
		}
		if len(page) < f.First {
			break
		}
		f.After = page[len(page)-1].ID
	}
	locks, err := locksOf(ctx, l)
	if err != nil {
		return nil, err
	}
	locked := map[ipam.ID]bool{}
	for _, lock := range locks {
		locked[lock.ID] = true
	}
	slices.Reverse(r.all)
	if limit > 0 {
		r.all = r.all[:min(limit, len(r.all))]
	}
	for i := range r.all {
		if err := r.end(&r.all[i], locked); err != nil {
			return nil, err
		}
	}
	return r.all, nil
}

// runs collects the deploys of a project while its events are read.
type runs struct {
	project string
	all     []ipam.DeployRun
	ended   map[ipam.ID]ipam.Event // the first end event of each deploy
}

func (r *runs) read(e *ipam.Event) error {
	if e.Name != r.project {
		return nil
	}
	switch e.Verb {
	case ipam.DeployBegun:
		var begun ipam.DeployBeginning
		if err := told(e, &begun); err != nil {
			return err
		}
		r.all = append(r.all, ipam.DeployRun{Project: e.Name, ID: begun.ID, Task: begun.Task, By: e.Actor,
			Host: begun.Host, PID: begun.PID, Begun: e.Time})
	case ipam.DeployEnded:
		var ended ipam.DeployEnding
		if err := told(e, &ended); err != nil {
			return err
		}
		if _, before := r.ended[ended.ID]; !before {
			r.ended[ended.ID] = *e
		}
	}
	return nil
}

// told decodes what an event of a deploy says in addition to its fields.
func told(e *ipam.Event, into any) error {
	if e.After == nil {
		return nil
	}
	return json.Unmarshal(e.After, into)
}

// end sets the result of a deploy.
func (r *runs) end(run *ipam.DeployRun, locked map[ipam.ID]bool) error {
	e, ended := r.ended[run.ID]
	switch {
	case ended:
		var how ipam.DeployEnding
		if err := told(&e, &how); err != nil {
			return err
		}
		run.Ended, run.Outcome, run.Did = e.Time, how.Outcome, how.Did
		if run.Outcome == "" {
			run.Outcome = ipam.DeploySilent
		}
	case locked[run.ID]:
		run.Outcome = ipam.DeployRuns
	default:
		run.Outcome = ipam.DeploySilent
	}
	return nil
}
