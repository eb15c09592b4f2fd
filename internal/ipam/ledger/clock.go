package ledger

import (
	"time"

	"berth/internal/ipam"
	"berth/store"
)

// clockSlack is how far clocks may differ, or be set back, before anything is done about it.
const clockSlack = time.Second

// nextID is the id of the event that this change writes next: behind all others, and so ahead of the clock where that
// was set back. How far ahead stays the same while events come one after the other, so that they can share a record.
func (c *Change) nextID() uint64 {
	ix, now := c.index, uint64(max(c.now.UnixMicro(), 0))
	ahead := uint64(max(int64(ix.lastEvent+1-now), 0))
	switch slack := uint64(clockSlack / time.Microsecond); {
	case ahead <= slack:
		ix.ahead = 0
	case ahead > ix.ahead+slack, ix.ahead > ahead+oneRecord:
		ix.ahead = ahead
	}
	ix.lastEvent = c.own(max(ix.lastEvent+1, now+ix.ahead))
	return ix.lastEvent
}

// TimeOf is the time of an event of this change, by its id.
func (c *Change) TimeOf(id uint64) time.Time { return ipam.EventTime(id - c.index.ahead) }

// Began is when the lease or record of an event id began. If ids run ahead of the clock, the event holds the time, as
// long as it is kept.
func (c *Change) Began(id uint64) time.Time {
	if c.index.events.Ahead > 0 {
		if e, err := FindEvent(c.tx, id); err == nil && e != nil {
			return e.Time
		}
	}
	return ipam.EventTime(id)
}

// farJump is how far a clock jumps ahead that is not believed before it has stayed there as long.
const farJump = 24 * time.Hour

// sane follows a clock, for what cannot be undone: a clock that jumps far ahead, and back, has not moved it.
type sane struct {
	at    time.Time // what is believed
	doubt time.Time // since when the clock says what is not; zero: there is no doubt
	last  time.Time // what it said last then
}

// see takes note of what the clock says.
func (s *sane) see(now time.Time) {
	switch {
	case s.at.IsZero() || !now.After(s.at.Add(farJump)):
		s.at, s.doubt = now, time.Time{}
	case s.doubt.IsZero() || now.Before(s.doubt) || now.After(s.last.Add(farJump)):
		s.doubt, s.last = now, now
	case now.Sub(s.doubt) >= farJump:
		s.at, s.doubt = now, time.Time{}
	default:
		s.last = now
	}
}

// SaneTime is the time of the change, or that of the newest event from which the clock has not jumped far ahead.
func (c *Change) SaneTime() time.Time {
	c.index.sane.see(c.now)
	return c.index.sane.at
}

// RecordTime is when the last event of a record was written.
func RecordTime(rec store.Record) time.Time {
	return ipam.EventTime(EventID(rec.Key) - ipam.EventsAhead(rec.Value))
}
