package ledger

import (
	"time"

	"berth/internal/ipam"
	"berth/store"
)

// clockSlack is the tolerated difference between clocks, and the tolerated step back of one.
const clockSlack = time.Second

// NextID returns the id of the next event. It is greater than all earlier ids, so it runs ahead of a clock that was set
// back. Within a series of events the lead stays constant, because only such events can share a record.
func (c *Change) NextID() uint64 {
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

// Began is when the lease or record of an event id began. If ids run ahead of the clock, the event itself has the time,
// as long as it is kept.
func (c *Change) Began(id uint64) time.Time {
	if c.index.events.Ahead > 0 {
		if e, err := FindEvent(c.tx, id); err == nil && e != nil {
			return e.Time
		}
	}
	return ipam.EventTime(id)
}

// farJump is the longest jump ahead that is believed at once. A longer one is believed after the clock has stayed there
// for as long.
const farJump = 24 * time.Hour

// sane follows a clock for decisions that cannot be reverted. It ignores a clock that jumps far ahead and back.
type sane struct {
	at    time.Time // the time that is believed
	doubt time.Time // when the clock began to show a time too far ahead; zero: it does not
	last  time.Time // the last of these times
}

// see takes a reading of the clock.
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

// SaneTime is the time of the change. If the clock has jumped far ahead, it is the last time that was believed.
func (c *Change) SaneTime() time.Time {
	c.index.sane.see(c.now)
	return c.index.sane.at
}

// RecordTime is when the last event of a record was written.
func RecordTime(rec store.Record) time.Time {
	return ipam.EventTime(EventID(rec.Key) - ipam.EventsAhead(rec.Value))
}
