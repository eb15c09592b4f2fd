//go:build engine

package engine

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/netip"
	"strings"
	"time"

	"berth/test/lab"
)

// Lease is the part of a lease that the tests read, in the daemon's answer and in `berth lease ls --format json`.
type Lease struct {
	ID      uint64    `json:"id"` // unique, also among leases of the same address
	Address string    `json:"address"`
	Kind    string    `json:"kind"`
	MAC     string    `json:"mac"`
	Name    string    `json:"name"`
	Space   string    `json:"space"`
	Host    string    `json:"host"`
	Pool    string    `json:"pool"`  // the pool id with which an engine releases it
	Owner   string    `json:"owner"` // of its reservation
	Since   time.Time `json:"since"`
	SeenBy  struct {  // as the witness reports
		Container, Project, Service, State, Network string
	} `json:"seen_by"`
}

// leases asks a daemon for its leases inside a prefix. It runs no command, because many tests call it after each step.
func leases(b Berth, within string) ([]Lease, error) {
	prefix, err := netip.ParsePrefix(within)
	if err != nil {
		return nil, err
	}
	resp, err := lab.Over(b.AdminSocket()).Get("http://berth/v1/leases")
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	var all struct{ Leases []Lease }
	if err := json.NewDecoder(resp.Body).Decode(&all); err != nil || resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("the leases: %s (%w)", resp.Status, err)
	}
	var inside []Lease
	for _, l := range all.Leases {
		addr, err := netip.ParseAddr(l.Address)
		if err != nil {
			return nil, fmt.Errorf("a lease has the address %q", l.Address)
		}
		if prefix.Contains(addr) {
			inside = append(inside, l)
		}
	}
	return inside, nil
}

// asked runs a command that prints JSON.
func asked[T any](b Berth, args ...string) (answer T, err error) {
	out, err := berth(b, append(args, "--format", "json")...)
	if err != nil {
		return answer, err
	}
	if err := json.Unmarshal([]byte(out), &answer); err != nil {
		return answer, fmt.Errorf("berth %s: %w: %s", strings.Join(args, " "), err, out)
	}
	return answer, nil
}

// berth runs Berth's command line against one daemon.
func berth(b Berth, args ...string) (string, error) {
	return lab.Run(20*time.Second, nil, binary, append([]string{"--admin-socket", b.AdminSocket()}, args...)...)
}
