package admin

import (
	"context"
	"net/http"
	"strconv"
	"time"

	"berth/internal/ipam"
)

// ClusterStatus says how a daemon stands with the store that its host shares with others. It is a part of GET /v1/status.
type ClusterStatus struct {
	Endpoints []string  `json:"endpoints"`
	Prefix    string    `json:"prefix"`            // of all keys there
	ID        string    `json:"id,omitempty"`      // of the cluster; empty: none was ever reached
	Away      string    `json:"away,omitempty"`    // why the store is out of reach; empty: it is within
	Refused   string    `json:"refused,omitempty"` // why this host is refused there; empty: it is not
	Since     time.Time `json:"since,omitzero"`    // when either began
	Fresh     time.Time `json:"fresh,omitzero"`    // what is read of it is all that there was then; zero: it was never read
	Age       float64   `json:"age,omitempty"`     // seconds since then
	Waiting   int       `json:"waiting"`           // releases, and uses of headroom, that the store has not heard of
	Oldest    time.Time `json:"oldest,omitzero"`   // since when the first of them waits

	Headroom []ipam.HeadroomState `json:"headroom"` // by space and subnet

	HostID    ipam.ID        `json:"host_id"`
	HostState ipam.HostState `json:"host_state,omitempty"` // empty: it takes part as usual, as far as is known
	Others    []string       `json:"others"`               // hosts whose daemons are there, but for this one

	// What the daemon has done to the store since it opened it.
	Commits   uint64 `json:"commits"`   // transactions
	Updates   uint64 `json:"updates"`   // changes that were in them
	Conflicts uint64 `json:"conflicts"` // changes that were made again, because others had changed what they were decided by
	Unknown   uint64 `json:"unknown"`   // transactions whose outcome had to be found out
}

// The headers of an answer while the shared store is out of reach: since when it is, and how many seconds old is what was read of
// it. The latter is left out where nothing was ever read.
const (
	awayHeader = "Berth-Store-Away"
	ageHeader  = "Berth-Store-Age"
)

// tellsAge sets these headers.
func (s *Server) tellsAge(h http.Header) {
	if s.cfg.Cluster == nil {
		return
	}
	c := s.cfg.Cluster()
	if c.Away == "" && (c.Refused == "" || !c.Fresh.IsZero()) { // who is refused may read on
		return
	}
	h.Set(awayHeader, c.Since.UTC().Format(time.RFC3339))
	if !c.Fresh.IsZero() {
		h.Set(ageHeader, strconv.FormatInt(int64(c.Age), 10))
	}
}

// Away is what the header of an answer says of a shared store out of reach.
type Away struct {
	Since time.Time
	Age   time.Duration // of what was read; negative: nothing was ever read
}

// awayIn reads the headers.
func awayIn(h http.Header) (Away, bool) {
	since, err := time.Parse(time.RFC3339, h.Get(awayHeader))
	if err != nil {
		return Away{}, false
	}
	a := Away{Since: since, Age: -1}
	if seconds, err := strconv.ParseInt(h.Get(ageHeader), 10, 64); err == nil {
		a.Age = time.Duration(seconds) * time.Second
	}
	return a, true
}

// clusterStatus adds to what the daemon knows by itself what the store says of the hosts, as far as it was read.
func (s *Server) clusterStatus(ctx context.Context) *ClusterStatus {
	if s.cfg.Cluster == nil {
		return nil
	}
	c := s.cfg.Cluster()
	c.Others = []string{}
	hosts, err := s.cfg.Service.Hosts(ctx)
	if err != nil {
		return &c // out of reach, which it says
	}
	for _, h := range hosts {
		switch {
		case h.Self:
			c.HostState = h.State
		case h.Present:
			c.Others = append(c.Others, h.Name)
		}
	}
	return &c
}
