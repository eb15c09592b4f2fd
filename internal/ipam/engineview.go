package ipam

import (
	"fmt"
	"net/netip"
	"strconv"
	"strings"
	"time"
)

// EngineView is what one Docker Engine says that runs, at one moment: its networks whose addresses come from this
// Berth, and all of its containers. The room internal/docker reads it.
type EngineView struct {
	Host       string            `json:"host"`               // whose engine it is, as leases call it
	Engine     string            `json:"engine"`             // its own id
	Version    string            `json:"version,omitempty"`  // such as 20.10.24
	Firewall   string            `json:"firewall,omitempty"` // its backend, iptables or nftables, where it tells
	Taken      time.Time         `json:"taken"`
	Networks   []EngineNetwork   `json:"networks"`
	Containers []EngineContainer `json:"containers"`

	// Foreign are the networks whose addresses come from drivers that are neither this Berth, as far as its names are
	// known, nor the engine's own. One that has a subnet of this Berth's is its own by another name.
	Foreign []EngineNetwork `json:"foreign,omitempty"`

	// Bridges are the networks of the driver bridge whose addresses do not come from this Berth: the engine's default
	// one, called bridge, and others with an IPAM driver of the engine's own or a foreign one.
	Bridges []EngineNetwork `json:"bridges,omitempty"`
}

// EngineNetwork is a Docker network.
type EngineNetwork struct {
	ID     string `json:"id"`
	Name   string `json:"name"`
	Driver string `json:"driver"`          // of its addresses (--ipam-driver)
	Kind   string `json:"kind,omitempty"`  // the driver that connects it, such as bridge or macvlan
	Swarm  bool   `json:"swarm,omitempty"` // its scope is the swarm
	Link   string `json:"link,omitempty"`  // its bridge in the host, where the engine tells
	// its bridge lets in what comes from outside, also to ports that nobody publishes (gateway_mode_ipv4 and _ipv6)
	Open4   bool              `json:"open_ipv4,omitempty"`
	Open6   bool              `json:"open_ipv6,omitempty"`
	Options map[string]string `json:"options,omitempty"` // --ipam-opt
	Subnets []EngineSubnet    `json:"subnets"`
}

// DockerPlace is where a Docker network is among Berth's: a subnet of one of its networks.
type DockerPlace struct {
	Network string // its name
	Space   string
	Subnet  netip.Prefix
}

// EngineSubnet is one subnet of a Docker network.
type EngineSubnet struct {
	CIDR    netip.Prefix          `json:"cidr"`
	Range   netip.Prefix          `json:"range,omitzero"` // --ip-range
	Gateway netip.Addr            `json:"gateway,omitzero"`
	Aux     map[string]netip.Addr `json:"aux,omitempty"` // --aux-address
}

// EngineContainer is a container, running or not. What is an endpoint and no container, such as a swarm's load
// balancer, has no ID.
type EngineContainer struct {
	ID        string   `json:"id,omitempty"`
	Name      string   `json:"name"`
	Project   string   `json:"project,omitempty"` // of Compose
	Service   string   `json:"service,omitempty"`
	Number    int      `json:"number,omitempty"`    // of the service's replicas, from 1
	State     string   `json:"state,omitempty"`     // created, running, paused, exited, ...
	Published []string `json:"published,omitempty"` // ports of the host that lead to it, such as 8080/tcp
	// what it publishes was read from its configuration, too: it is known also while it does not run
	PortsKnown bool             `json:"ports_known,omitempty"`
	Endpoints  []EngineEndpoint `json:"endpoints,omitempty"`
}

// EngineEndpoint is a container's place on a network. Only a running one has an ID, a MAC and addresses.
type EngineEndpoint struct {
	Network   string       `json:"network"` // its id
	ID        string       `json:"id,omitempty"`
	MAC       MAC          `json:"mac,omitzero"`
	Addresses []netip.Addr `json:"addresses,omitempty"` // at most one per family
	Wanted    []netip.Addr `json:"wanted,omitempty"`    // given by the user, running or not
}

// Owner is the container as an owner: project/service/number where Compose made it, else its name.
func (c *EngineContainer) Owner() string {
	if c.Project == "" || c.Service == "" || c.Number <= 0 {
		return c.Name
	}
	return fmt.Sprintf("%s/%s/%d", c.Project, c.Service, c.Number)
}

// How an engine is to be had, as reports and states say it.
const (
	EngineReachable   = "reachable"
	EngineUnreachable = "unreachable"
	NoEngine          = "none" // there is none to be asked, and nobody has sent a view
)

// SeenBy tells which container holds an address, as the engine says.
type SeenBy struct {
	Container string `json:"container"` // its name, as it is now
	ID        string `json:"id,omitempty"`
	Project   string `json:"project,omitempty"`
	Service   string `json:"service,omitempty"`
	State     string `json:"state,omitempty"`
	MAC       MAC    `json:"mac,omitzero"` // of its place on that network
	Network   string `json:"network"`      // the Docker network's name
}

// FindingKind says what is wrong between the records and what runs.
type FindingKind string

// The kinds of findings.
const (
	// it knows none of the Docker networks that the engine has on this driver
	EmptyState       FindingKind = "empty_state"
	UnusedLease      FindingKind = "unused_lease"      // no endpoint has it
	UncoveredAddress FindingKind = "uncovered_address" // an endpoint has it, and no lease
	DoubledAddress   FindingKind = "doubled_address"   // two have it
	// an endpoint has it, and the lease names one who is gone
	OutdatedLease    FindingKind = "outdated_lease"
	UnusedSubnet     FindingKind = "unused_subnet"     // made for Docker networks, of which none is there
	UnknownPool      FindingKind = "unknown_pool"      // a Docker network whose subnet no attachment holds
	LostLease        FindingKind = "lost_lease"        // a DHCP server took it back from who has it, or its time is over
	ConflictingLease FindingKind = "conflicting_lease" // a DHCP server gave it to two
	UnconfirmedLease FindingKind = "unconfirmed_lease" // a DHCP server does not answer, and its time lasts
	StaleMemory      FindingKind = "stale_memory"      // of one who will not come back
	WrongGateway     FindingKind = "wrong_gateway"     // the Docker network has another one than the subnet
	UnusedAttachment FindingKind = "unused_attachment" // the Docker network that it was made for is not there
	ForeignHolder    FindingKind = "foreign_holder"    // a container runs with what is reserved for another
	// an owner runs with another address than what is reserved for it
	OwnerElsewhere FindingKind = "owner_elsewhere"
	// its owner runs with the address that replaced it (BO-13)
	SupersededReservation FindingKind = "superseded_reservation"
	// a route of the host came over it after its Docker network was made
	ShadowedSubnet  FindingKind = "shadowed_subnet"
	BridgeOnLAN     FindingKind = "bridge_on_lan"    // a Docker network of the driver bridge overlaps a LAN of its host
	UnprobedNetwork FindingKind = "unprobed_network" // it is to be probed, and nobody can on this host
	ForeignAnswer   FindingKind = "foreign_answer"   // another machine of the LAN says that it has it
	EndingToken     FindingKind = "ending_token"     // of the admin API, within two weeks
)

// Finding is one thing that is wrong.
type Finding struct {
	Kind       FindingKind `json:"kind"`
	Space      string      `json:"space,omitempty"`
	Address    netip.Addr  `json:"address,omitzero"`
	Network    string      `json:"network,omitempty"` // Berth's, or else Docker's
	Host       string      `json:"host,omitempty"`
	Owner      string      `json:"owner,omitempty"`
	Seen       time.Time   `json:"seen"` // first so
	Repairable bool        `json:"repairable"`
	Repaired   bool        `json:"repaired,omitempty"`
	Detail     string      `json:"detail"` // a sentence: what, who, and what to do

	Lease  uint64       `json:"lease,omitempty"` // by which a repair knows it again
	Pool   ID           `json:"pool,omitzero"`
	Subnet netip.Prefix `json:"subnet,omitzero"`
	MAC    MAC          `json:"mac,omitzero"`
}

// CheckReport is what a comparison of the records with what runs came to (`berth check`).
type CheckReport struct {
	Host     string              `json:"host"`
	Taken    time.Time           `json:"taken"`              // when the engine was asked
	Engine   string              `json:"engine"`             // EngineReachable, EngineUnreachable or NoEngine
	Trouble  string              `json:"trouble,omitempty"`  // why it could not be asked, or why not all was compared
	Findings []Finding           `json:"findings"`           // by kind, space and address
	Counts   map[FindingKind]int `json:"counts"`             // of all kinds, 0 where there are none
	Repaired int                 `json:"repaired,omitempty"` // how many were repaired
}

// CheckRequest asks for a comparison.
type CheckRequest struct {
	Repair bool         `json:"repair,omitempty"`
	Only   *CheckReport `json:"only,omitempty"` // repair only what stands in this one and is so still
	View   *EngineView  `json:"view,omitempty"` // from one who reads the engine for a daemon that may not
}

// LeaseRelease asks for the end of a lease whose endpoint is gone.
type LeaseRelease struct {
	Space   string      `json:"space,omitempty"` // empty: whichever has it
	Address netip.Addr  `json:"address"`
	Force   bool        `json:"force,omitempty"` // also where an endpoint has it, or nobody can tell
	View    *EngineView `json:"view,omitempty"`  // from one who reads the engine for a daemon that may not
	DryRun  bool        `json:"dry_run,omitempty"`
}

// WitnessState is how it stands with the witness, for `berth status`.
type WitnessState struct {
	Engine  string `json:"engine"`            // as in CheckReport
	Version string `json:"version,omitempty"` // the engine's, such as 20.10.24; empty: it was not read yet
	// its events are followed, so that a container without a name can be guessed
	Live   bool                `json:"live"`
	Detail string              `json:"detail,omitempty"`
	Seen   time.Time           `json:"seen,omitzero"` // when it was last reached
	Runs   int                 `json:"runs"`          // checks since the start
	Last   time.Time           `json:"last,omitzero"` // check
	Counts map[FindingKind]int `json:"counts,omitempty"`

	Guesses   GuessCounts    `json:"guesses"`
	Questions QuestionCounts `json:"questions"`
	PutBack   PutBackCounts  `json:"put_back"`
}

// firstNaming is the first engine that sends the name of a container with its request.
const firstNaming = 29

// SendsNames tells whether the engine sends the name of a container with its request, as far as that is known.
func (w *WitnessState) SendsNames() (does, known bool) {
	major, _, _ := strings.Cut(w.Version, ".")
	n, err := strconv.Atoi(major)
	return n >= firstNaming, err == nil
}

// EngineNews is one thing that an engine has just said of its containers: what a witness needs at once, and not in
// the next view. One of its parts is set.
type EngineNews struct {
	At   time.Time     `json:"at"`             // when it was heard
	Late time.Duration `json:"late,omitempty"` // for how long it was on its way

	Begins   bool               `json:"begins,omitempty"` // all that happens is told from here on
	Ends     bool               `json:"ends,omitempty"`   // the engine has ended
	Event    *EngineEvent       `json:"event,omitempty"`
	Listed   []EngineContainer  `json:"listed,omitempty"` // containers with all their places, as they are now
	Networks *EngineNetworkList `json:"networks,omitempty"`
	Answer   *EngineAnswer      `json:"answer,omitempty"`
}

// EngineEvent is what happened to a container.
type EngineEvent struct {
	Action    string          `json:"action"` // create, start, die, stop, destroy, rename, connect or disconnect
	Container EngineContainer `json:"container"`
	// by its id: to which it was connected, or from which it was disconnected
	Network string `json:"network,omitempty"`
}

// EngineNetworkList is all networks of an engine, as in a view.
type EngineNetworkList struct {
	Networks []EngineNetwork `json:"networks"`
	Bridges  []EngineNetwork `json:"bridges,omitempty"`
}
