package api

import (
	"net/http"
	"strconv"
	"time"
)

// KeyHeader makes a change happen only once, even if it is sent repeatedly.
const KeyHeader = "Idempotency-Key"

// DeployHeader is the id of the deploy lock for which edits are made.
const DeployHeader = "Berth-Deploy"

// StoreIDHeader is the id of the store in a backup.
const StoreIDHeader = "Berth-Store-Id"

// ETag returns the entity tag of a revision, for If-Match.
func ETag(revision uint64) string { return `"` + strconv.FormatUint(revision, 10) + `"` }

// The headers of an answer while the shared store is unreachable: since when, and the age in seconds of what was read.
// The age is missing if nothing was ever read.
const (
	AwayHeader = "Berth-Store-Away"
	AgeHeader  = "Berth-Store-Age"
)

// Away is the content of these headers.
type Away struct {
	Since time.Time
	Age   time.Duration // of what was read; negative: nothing was ever read
}

// AwayIn reads the headers. ok is false if they are missing.
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
