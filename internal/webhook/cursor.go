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

	"berth/internal/atomicfile"
	"berth/internal/ipam"
)

// How often the position of a receiver is written. It is not written for each event, because address requests need the
// disk. After a crash, events since the last write are sent again.
const (
	saveEvery = time.Second // while events are sent
	saveIdle  = time.Hour   // while there are none, to record that
)

// placeVersion is the version at the beginning of the file.
const placeVersion = 1

// place is the position of a receiver in the events.
type place struct {
	Version int            `json:"version"`
	StoreID string         `json:"store_id"` // of the host's own store
	Mark    ipam.EventMark `json:"mark"`
	Whole   time.Time      `json:"whole"`          // the last time without events after the mark
	Last    time.Time      `json:"last,omitzero"`  // the time of the last event that was sent
	Lost    *gap           `json:"lost,omitempty"` // what to send to the receiver first
}

// since returns the time after which the receiver may lack something.
func (p *place) since() time.Time {
	if p.Last.After(p.Whole) {
		return p.Last.UTC()
	}
	return p.Whole.UTC()
}

// placePath returns the path of a receiver's file. Its name does not reveal the URL, which may contain a secret.
func placePath(dir, url string) string {
	sum := sha256.Sum256([]byte(url))
	return filepath.Join(dir, "webhook-"+hex.EncodeToString(sum[:8])+".json")
}

// open finds the position of the receiver. An unusable file loses events, which a message to the receiver reports. It
// never stops the daemon.
func (r *receiver) open(ctx context.Context) error {
	last, err := r.cfg.Service.LastEvent(ctx)
	if err != nil {
		return err
	}
	now := r.cfg.Clock.Now()
	if last.Shared.AtReach {
		// The shared store was not reached yet. The position in it must stay valid after a restart. An event's id is
		// its time, and this host's later events have greater ids.
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
		r.log.WithField("file", r.path).WithError(err).Error("cannot read which events the receiver has; " +
			"Berth sends it only new events")
		r.at, r.lost = begin, &gap{Reason: reasonPlace}
	case at.StoreID != r.cfg.StoreID || at.Mark.Host != last.Host:
		r.at, r.lost = begin, &gap{Reason: reasonStore, Since: at.since()}
	case at.Mark.Own.After > last.Own.After: // the state was restored to an earlier one; later events are sent
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

// due reports whether the position must be written.
func (r *receiver) due() bool { return r.fresh && r.cfg.Clock.Now().Sub(r.saved) >= saveEvery }

// save writes the position to its file, completely or not at all. After a failed write, some events are sent again
// after a restart.
func (r *receiver) save() {
	r.saved = r.cfg.Clock.Now()
	text, err := json.Marshal(&r.at)
	if err == nil {
		err = atomicfile.Write(r.path, append(text, '\n'))
	}
	if err != nil {
		r.log.WithError(err).Warn("cannot save which events the receiver has; " +
			"after a restart, Berth sends some of them again")
		return
	}
	r.fresh = false
}
