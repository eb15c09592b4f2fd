// Package leave moves a Docker network from Berth back to the engine's own IPAM driver. Subnets and container addresses
// stay the same. Before any change, a note on disk holds all that is needed to restore the network. The next run
// continues an interrupted one from that note. If the engine refuses the new network, the old one is recreated with its
// containers.
//
// read.go reads the network into a Note, which the caller keeps in a file. Carry (carry.go) adds what the new network
// can keep of the plan. Leave (do.go) compares the engine with the
// Note and does the remaining steps. It disconnects containers, replaces the network, reconnects the containers and
// starts those that ran. connector.go limits its calls to the engine.
package leave

import (
	"net/netip"
	"time"

	"github.com/moby/moby/api/types/network"
	"github.com/moby/moby/client"
)

// Note has all that is needed to recreate a Docker network with its containers.
type Note struct {
	Network   string                      `json:"network"` // its name
	ID        string                      `json:"id"`      // its old one
	Taken     time.Time                   `json:"taken"`
	Planned   []string                    `json:"planned,omitempty"` // ids of Berth's networks that it was on
	Old       client.NetworkCreateOptions `json:"old"`               // as it was
	New       client.NetworkCreateOptions `json:"new"`               // as it is to be
	Lost      []string                    `json:"lost,omitempty"`    // what New does not keep of the plan, a sentence each
	Endpoints []Endpoint                  `json:"endpoints"`
	Key       string                      `json:"key,omitempty"` // in Compose's files; empty: it is not Compose's
	Project   string                      `json:"project,omitempty"`
}

// Endpoint is a container on the network.
type Endpoint struct {
	Container string                    `json:"container"` // its name
	ID        string                    `json:"id"`
	Running   bool                      `json:"running"`
	Addresses []netip.Addr              `json:"addresses"` // that it should have; none: any
	Settings  *network.EndpointSettings `json:"settings"`
	Command   string                    `json:"command"`             // connects it by hand
	LosesMAC  bool                      `json:"loses_mac,omitempty"` // of its settings
	Service   string                    `json:"service,omitempty"`
	Number    int                       `json:"number,omitempty"` // of Compose's replicas
}
