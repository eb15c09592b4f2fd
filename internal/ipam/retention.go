package ipam

import (
	"time"
)

// Retention bounds the audit trail. Zero fields take the defaults: 90 days, a million events.
type Retention struct {
	Age   time.Duration
	Count int
}

// WithDefaults fills what is zero.
func (r Retention) WithDefaults() Retention {
	if r.Age == 0 {
		r.Age = 90 * 24 * time.Hour
	}
	if r.Count == 0 {
		r.Count = 1_000_000
	}
	return r
}
