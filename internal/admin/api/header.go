package api

import (
	"net/http"
	"strconv"
	"time"
)

// KeyHeader makes a change happen once, however often it is sent.
const KeyHeader = "Idempotency-Key"

// DeployHeader says of edits for which deploy they are made: the id of its lock.
const DeployHeader = "Berth-Deploy"

// StoreIDHeader says which store a backup is of.
const StoreIDHeader = "Berth-Store-Id"

// ETag is the entity tag of a revision: what If-Match takes.
func ETag(revision uint64) string { return `"` + strconv.FormatUint(revision, 10) + `"` }

// The headers of an answer while the shared store is out of reach: since when it is, and how many seconds old is what
// was read of it. The latter is left out where nothing was ever read.
const (
	AwayHeader = "Berth-Store-Away"
	AgeHeader  = "Berth-Store-Age"
)

// Away is what the header of an answer says of a shared store out of reach.
type Away struct {
	Since time.Time
	Age   time.Duration // of what was read; negative: nothing was ever read
}

// AwayIn reads the headers.
func AwayIn(h http.Header) (Away, bool) {
	since, err := time.Parse(time.RFC3339, h.Get(AwayHeader))
	if err != nil {
		return Away{}, false
	}
	a := Away{Since: since, Age: -1}
	if seconds, err := strconv.ParseInt(h.Get(AgeHeader), 10, 64); err == nil {
		a.Age = time.Duration(seconds) * time.Second
	}
	return a, true
}
