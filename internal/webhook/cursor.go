package webhook

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"berth/internal/ipam"
	"berth/internal/wholefile"
)

// When the place of a receiver is written to its file: not for each event, so that the disk is left to those who want
// addresses. What was sent after it was written last is sent again after a crash.
const (
	saveEvery = time.Second // while events are sent
	saveIdle  = time.Hour   // while there are none, so that it is known that there were none
)

// placeVersion leads the file.
const placeVersion = 1

// place is up to where a receiver has the events.
type place struct {
	Version int            `json:"version"`
	StoreID string         `json:"store_id"` // of the host's own store
	Mark    ipam.EventMark `json:"mark"`
	Whole   time.Time      `json:"whole"`          // when there were no events behind the mark
	Last    time.Time      `json:"last,omitzero"`  // when the last event happened that was sent
	Lost    *gap           `json:"lost,omitempty"` // what the receiver was to be told first
}

// since is the time after which the receiver may lack something.
func (p *place) since() time.Time {
	if p.Last.After(p.Whole) {
		return p.Last.UTC()
	}
	return p.Whole.UTC()
}

// placePath is the file of a receiver. Its name tells nothing of the URL, which may hold a secret.
func placePath(dir, url string) string {
	sum := sha256.Sum256([]byte(url))
	return filepath.Join(dir, "webhook-"+hex.EncodeToString(sum[:8])+".json")
}

// open finds out where the receiver is to go on. A file that cannot be used costs events, which the receiver is told,
// and no more: addresses are given all the same.
func (r *receiver) open(ctx context.Context) error {
	last, err := r.cfg.Service.LastEvent(ctx)
	if err != nil {
		return err
	}
	now := r.cfg.Clock.Now()
	if last.Shared.AtReach {
		// The shared store is not reached yet. A place in it has to be one that is the same after a restart: ids of
		// events are their time, and what this host does from now on has greater ones.
		last.Shared = ipam.StoreMark{After: uint64(max(now.UnixMicro(), 0))}
	}
	begin := place{Version: placeVersion, StoreID: r.cfg.StoreID, Mark: last, Whole: now}
	text, err := os.ReadFile(r.path)
	if errors.Is(err, fs.ErrNotExist) {
		r.at, r.fresh = begin, true
		r.save()
		return nil
	}
	var at place
	if err == nil {
		err = json.Unmarshal(text, &at)
	}
	switch {
	case err != nil || at.Version != placeVersion:
		r.log.WithField("file", r.path).WithError(err).Error("the place of a receiver cannot be read; it goes on from now")
		r.at, r.lost = begin, &gap{Reason: reasonPlace}
	case at.StoreID != r.cfg.StoreID || at.Mark.Host != last.Host:
		r.at, r.lost = begin, &gap{Reason: reasonStore, Since: at.since()}
	case at.Mark.Own.After > last.Own.After: // the state was put back: what is behind that is sent
		at.Mark.Own = last.Own
		r.at, r.lost = at, &gap{Reason: reasonStore, Since: at.since()}
	default:
		r.at, r.lost = at, at.Lost
	}
	if r.lost != nil {
		r.at.Lost, r.fresh = r.lost, true
		r.save()
	}
	return nil
}

// due tells whether the place is to be written.
func (r *receiver) due() bool { return r.fresh && r.cfg.Clock.Now().Sub(r.saved) >= saveEvery }

// save writes the place to its file: whole, or as it was. A failure costs that events are sent again after a restart.
func (r *receiver) save() {
	r.saved = r.cfg.Clock.Now()
	text, err := json.Marshal(&r.at)
	if err == nil {
		err = wholefile.Write(r.path, append(text, '\n'))
	}
	if err != nil {
		r.log.WithError(err).Warn("it cannot be written down which events the receiver has; after a restart some are " +
			"sent again")
		return
	}
	r.fresh = false
}
