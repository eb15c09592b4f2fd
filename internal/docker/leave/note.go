// Package leave takes a Docker network from Berth back to the engine's own IPAM driver, with the subnets that it has
// and its containers at the addresses that they have. It promises that nothing is touched before all that is needed to
// put it back is noted down; that a run which was cut off at any point is finished by the next one with that note; and
// that where the engine refuses the new network, the old one is made again with its containers on it.
//
// What there is is read into a Note (read.go), which whoever runs the command keeps in a file. Leave (do.go) looks at
// how far the engine is by now and does the rest, step by step: containers off, network away, network anew, containers
// on, those that ran started. The engine lets it do no more than that (hand.go).
package leave

import (
	"net/netip"
	"time"

	"github.com/moby/moby/api/types/network"
	"github.com/moby/moby/client"
)

// Note is all that is needed to make a Docker network anew with its containers on it.
type Note struct {
	Network string                      `json:"network"` // its name
	ID      string                      `json:"id"`      // that it had
	Taken   time.Time                   `json:"taken"`
	Planned []string                    `json:"planned,omitempty"` // Berth's networks that it was on, by their ids
	Old     client.NetworkCreateOptions `json:"old"`               // as it was
	New     client.NetworkCreateOptions `json:"new"`               // as it is to be
	Seats   []Seat                      `json:"seats"`
	Key     string                      `json:"key,omitempty"` // what Compose's files call it; empty: not Compose's
	Project string                      `json:"project,omitempty"`
}

// Seat is a container's place on it.
type Seat struct {
	Container string                    `json:"container"` // its name
	ID        string                    `json:"id"`
	Running   bool                      `json:"running"`
	Addresses []netip.Addr              `json:"addresses"` // that it is to have; none: any
	Settings  *network.EndpointSettings `json:"settings"`
	Command   string                    `json:"command"` // that puts it on the network by hand
	Service   string                    `json:"service,omitempty"`
	Number    int                       `json:"number,omitempty"` // of Compose's replicas
}
