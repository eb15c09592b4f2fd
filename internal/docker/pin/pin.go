// Package pin makes containers keep their addresses, at a person's request. It reserves the addresses and makes the
// endpoints ask for them at each start. Judging a container has no side effects. The package only disconnects and
// reconnects containers. A container is always reconnected with all its settings, even if the caller stops. If that
// fails, the error holds the command that does it.
//
// Find (pin.go) examines each endpoint of a container: its address, the address it asks for, and the edits that are
// missing or forbidden (judge.go). Reservations and memories decide whose an address is (owner.go). The caller makes
// the edits. Then a Connector (connector.go) reads the endpoint (endpoint.go) and moves it (move.go).
package pin

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"berth/internal/ipam"

	"github.com/moby/moby/api/types/container"
)

// Pin is a container's endpoint on a Docker network of Berth's, and what is left to do so that it keeps its addresses
// for good. For that they must be reserved for its owner, and the endpoint must ask for them at each start.
type Pin struct {
	Container string `json:"container"`
	ID        string `json:"id"`
	Project   string `json:"project,omitempty"`
	State     string `json:"state"`
	Network   string `json:"network"`    // Docker's
	NetworkID string `json:"network_id"` // Docker's
	// the network of Berth's that it is on; if it has several subnets, that of the first
	Planned     string       `json:"berth_network"`
	PlannedID   string       `json:"berth_network_id"`
	Owner       string       `json:"owner"`
	MAC         string       `json:"mac,omitempty"`     // its owner's, if Berth's network has a prefix for MACs
	Addresses   []netip.Addr `json:"addresses"`         // the addresses to keep: those that it has, or would get
	Asked       []netip.Addr `json:"asked"`             // what the endpoint asks for at each start
	Pinned      bool         `json:"pinned"`            // nothing is left to do
	Missing     string       `json:"missing,omitempty"` // what is left to do, for a person
	Refusal     string       `json:"refusal,omitempty"` // why it cannot be pinned, and what helps
	Reservation []Kept       `json:"reservations"`      // those of Addresses that are reserved for the owner

	Reserve []*ipam.AddReservation `json:"-"` // the reservations that are missing
	Connect bool                   `json:"-"` // the endpoint does not ask for Addresses yet
}

// Kept is an address that is reserved for a container's owner.
type Kept struct {
	Network   string     `json:"network"` // Berth's
	NetworkID ipam.ID    `json:"network_id"`
	Owner     string     `json:"owner"`
	Address   netip.Addr `json:"address"`
}

// Runs reports whether the container is on its network now. If so, it loses the network for a moment when the endpoint
// changes.
func (p *Pin) Runs() bool {
	return p.State == string(container.StateRunning) || p.State == string(container.StatePaused)
}

// Unsettled returns why the container cannot be disconnected or changed in its state, or "" if it can.
func (p *Pin) Unsettled() string {
	switch container.ContainerState(p.State) {
	case container.StateRunning, container.StatePaused, container.StateCreated, container.StateExited:
		return ""
	}
	return fmt.Sprintf("%s is %s right now; start or stop it, and try again", p.Container, p.State)
}

// Records are Berth's records, as the admin API shows them, and an ability of the engine.
type Records struct {
	Subnets      []ipam.SubnetInfo
	Networks     []ipam.NetworkInfo
	Reservations []ipam.ReservationInfo
	Leases       []ipam.LeaseInfo // held and remembered

	TakesAny bool // a container may ask for an address even if Berth chose the subnet
}

// Find judges each endpoint of a container in a view, except on swarm networks, whose manager gives the addresses. It
// has no side effects. The result is sorted by container and network.
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
