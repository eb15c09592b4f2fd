package main

import (
	"context"
	"errors"
	"net/http"
	"time"

	"berth/internal/admin/api"
	"berth/store"
	"berth/store/bolt"
	"berth/store/mem"

	"github.com/sirupsen/logrus"
)

// storage is the store of a daemon, with the functions that only some stores have.
type storage struct {
	store.Store
	id, path string // path: of its file; empty: none
	forgets  bool   // its content is lost when the daemon ends
	backup   func(ctx context.Context, path string) error
	writable func(ctx context.Context) error // nil: it always accepts writes
	fsck     func(ctx context.Context) (api.FileReport, error)
	save     func(ctx context.Context) (api.SavedState, error) // nil: it has no file
}

// openStorage opens the store named by --store.
func openStorage(ctx context.Context, cfg serveConfig, log *logrus.Entry,
	committed func(time.Duration, error)) (*storage, error) {
	if cfg.store == "mem" {
		st := mem.New()
		return &storage{Store: st, id: st.ID(), forgets: true,
			backup: func(context.Context, string) error {
				return errors.New("the store mem has nothing to back up, because Berth rebuilds it from the running " +
					"containers; `berth plan export` writes the plan")
			},
			fsck: func(context.Context) (api.FileReport, error) {
				return api.FileReport{StoreID: st.ID(), Problems: []string{}}, nil
			},
		}, nil
	}
	st, err := bolt.Open(ctx, bolt.Config{Path: cfg.statePath(), Log: log, Committed: committed})
	if err != nil {
		return nil, err
	}
	return &storage{Store: st, id: st.ID(), path: st.Path(), backup: st.Backup, writable: st.Writable,
		fsck: func(ctx context.Context) (api.FileReport, error) { return fileReport(st.Check(ctx)) },
		save: func(ctx context.Context) (api.SavedState, error) { return savedState(st.Save(ctx)) }}, nil
}

// savedState returns the result of bolt's Save for the admin API.
func savedState(s bolt.Saved, err error) (api.SavedState, error) {
	saved := api.SavedState{Path: s.Report.Path, StoreID: s.Report.ID, Records: s.Report.Records, Kept: s.Kept}
	if s.Restart != nil {
		saved.Restart = s.Restart.Error()
	}
	if errors.Is(err, bolt.ErrInPlace) {
		err = &api.Problem{Status: http.StatusConflict, Code: api.CodeInvalid, Detail: err.Error()}
	}
	return saved, err
}

// fileReport returns the result of bolt's check for the admin API. A damaged file is a report, not an error.
func fileReport(r bolt.Report, err error) (api.FileReport, error) {
	report := api.FileReport{Path: r.Path, StoreID: r.ID, Format: r.Format, Commit: r.Commit, Size: r.Size,
		Records: r.Records, Problems: r.Problems, Astray: errors.Is(err, store.ErrAstray)}
	if len(r.Problems) > 0 {
		return report, nil
	}
	return report, err
}
