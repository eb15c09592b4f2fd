// Package pin makes containers keep their addresses, at a person's request. It reserves the addresses and makes the
// endpoints ask for them at each start. Judging a container has no side effects. The package only disconnects and
// reconnects containers. A container is always reconnected with all its settings, even if the caller stops. If that
// fails, the error holds the command that does it.
//
// Find (pin.go) examines each place of a container: its address, the address it asks for, and the edits that are
// missing or forbidden (judge.go). Reservations and memories decide whose an address is (owner.go). The caller makes
// the edits. Then a Hand (hand.go) reads the endpoint (endpoint.go) and moves it (move.go).
package pin

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"berth/internal/ipam"

	"github.com/moby/moby/api/types/container"
)

// Pin is a container's place on a Docker network of Berth's, and what there is to do so that it keeps its
// addresses there for good: they are reserved for its owner, and the endpoint asks for them at each start.
type Pin struct {
	Container string `json:"container"`
	ID        string `json:"id"`
	Project   string `json:"project,omitempty"`
	State     string `json:"state"`
	Network   string `json:"network"`    // Docker's
	NetworkID string `json:"network_id"` // Docker's
	// the one of Berth's that it is on; of several subnets that of the first
	Planned     string       `json:"berth_network"`
	PlannedID   string       `json:"berth_network_id"`
	Owner       string       `json:"owner"`
	Addresses   []netip.Addr `json:"addresses"`         // that it is to keep: it has them, or would be given them
	Asked       []netip.Addr `json:"asked"`             // by the endpoint, at each start
	Pinned      bool         `json:"pinned"`            // nothing is to be done
	Missing     string       `json:"missing,omitempty"` // what is to be done, for a person
	Refusal     string       `json:"refusal,omitempty"` // why it cannot be pinned as it is, and what to do
	Reservation []Kept       `json:"reservations"`      // of Addresses, those that are the owner's

	Reserve []*ipam.AddReservation `json:"-"` // what is missing of them
	Connect bool                   `json:"-"` // the endpoint does not ask for them yet
}

// Kept is an address that is reserved for the owner of a container.
type Kept struct {
	Network   string     `json:"network"` // Berth's
	NetworkID ipam.ID    `json:"network_id"`
	Owner     string     `json:"owner"`
	Address   netip.Addr `json:"address"`
}

// Runs tells whether the container has its network at this moment, and loses it for a moment when the endpoint is
// changed.
func (p *Pin) Runs() bool {
	return p.State == string(container.StateRunning) || p.State == string(container.StatePaused)
}

// Unsettled says why the container can neither be cut off nor written to at this moment; empty: it can.
func (p *Pin) Unsettled() string {
	switch container.ContainerState(p.State) {
	case container.StateRunning, container.StatePaused, container.StateCreated, container.StateExited:
		return ""
	}
	return fmt.Sprintf("%s is %s at this moment; start or stop it, and try again", p.Container, p.State)
}

// Records are what Berth has written, as the admin API tells it, and what an engine can.
type Records struct {
	Subnets      []ipam.SubnetInfo
	Networks     []ipam.NetworkInfo
	Reservations []ipam.ReservationInfo
	Leases       []ipam.LeaseInfo // held and remembered

	TakesAny bool // the engine takes an address of a container's own also where Berth chose the subnet
}

// Find looks at each place of a container on a network of a view, but on those of a swarm, whose manager gives
// addresses by itself. It asks nobody and changes nothing. They come by container and network.
func Find(view *ipam.EngineView, rec *Records) []Pin {
	f := newPinning(view, rec)
	var all []Pin
	for i := range view.Containers {
		c := &view.Containers[i]
		for j := range c.Endpoints {
			n := f.networks[c.Endpoints[j].Network]
			if n == nil || n.Swarm || c.ID == "" {
				continue
			}
			all = append(all, f.judge(c, &c.Endpoints[j], n))
		}
	}
	slices.SortFunc(all, func(a, b Pin) int {
		return strings.Compare(a.Container+"\x00"+a.Network, b.Container+"\x00"+b.Network)
	})
	return all
}
