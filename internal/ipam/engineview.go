package ipam

import (
	"fmt"
	"net/netip"
	"strconv"
	"strings"
	"time"
)

// EngineView is what one Docker Engine reports at one moment: all containers, and the networks whose addresses come
// from this Berth. internal/docker reads it.
type EngineView struct {
	Host       string            `json:"host"`               // the engine's host, as leases name it
	Engine     string            `json:"engine"`             // the engine's own id
	Root       string            `json:"root,omitempty"`     // id of its network `none`, which lasts as long as its data
	Version    string            `json:"version,omitempty"`  // such as 20.10.24
	Firewall   string            `json:"firewall,omitempty"` // iptables or nftables, if the engine reports it
	Taken      time.Time         `json:"taken"`
	Networks   []EngineNetwork   `json:"networks"`
	Containers []EngineContainer `json:"containers"`

	// Foreign lists networks whose IPAM driver is neither the engine's own nor one of this Berth's known names. If
	// one has a subnet of this Berth, it is Berth's network under another driver name.
	Foreign []EngineNetwork `json:"foreign,omitempty"`

	// Bridges lists networks of the driver bridge whose addresses do not come from this Berth. These are the
	// default bridge, and networks with another IPAM driver.
	Bridges []EngineNetwork `json:"bridges,omitempty"`
}

// EngineNetwork is a Docker network.
type EngineNetwork struct {
	ID     string `json:"id"`
	Name   string `json:"name"`
	Driver string `json:"driver"`          // the IPAM driver (--ipam-driver)
	Kind   string `json:"kind,omitempty"`  // the network driver, such as bridge or macvlan
	Swarm  bool   `json:"swarm,omitempty"` // its scope is the swarm
	// when the engine began to create it, just before it asked for the pools; zero: unknown
	Created time.Time `json:"created,omitzero"`
	Link    string    `json:"link,omitempty"` // its bridge on the host, if the engine reports it
	Parent  string    `json:"-"`              // its option parent, such as a macvlan's interface on the host
	// its bridge accepts traffic from outside, even to unpublished ports (gateway_mode_ipv4 and _ipv6)
	Open4   bool              `json:"open_ipv4,omitempty"`
	Open6   bool              `json:"open_ipv6,omitempty"`
	Options map[string]string `json:"options,omitempty"` // --ipam-opt
	Subnets []EngineSubnet    `json:"subnets"`
}

// Bridge returns the name of a bridge network's interface on the host. The engine reports it only if a user chose it.
func (n *EngineNetwork) Bridge() string {
	if n.Link == "" && len(n.ID) >= 12 {
		return "br-" + n.ID[:12]
	}
	return n.Link
}

// DockerPlace is the subnet of a Berth network that a Docker network uses.
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

// EngineContainer is a container, running or not. An endpoint without a container, such as a swarm's load balancer, has
// no ID.
type EngineContainer struct {
	ID        string   `json:"id,omitempty"`
	Name      string   `json:"name"`
	Project   string   `json:"project,omitempty"` // Compose's project
	Service   string   `json:"service,omitempty"`
	Number    int      `json:"number,omitempty"`    // the replica's number in the service, from 1
	State     string   `json:"state,omitempty"`     // created, running, paused, exited, ...
	Published []string `json:"published,omitempty"` // ports of the host that lead to it, such as 8080/tcp
	// Published was also read from the configuration, so it is known even if the container does not run
	PortsKnown bool             `json:"ports_known,omitempty"`
	Endpoints  []EngineEndpoint `json:"endpoints,omitempty"`
}

// EngineEndpoint is a container's endpoint on a network. Only a running container has an ID, a MAC and addresses here.
type EngineEndpoint struct {
	Network   string       `json:"network"` // its id
	ID        string       `json:"id,omitempty"`
	MAC       MAC          `json:"mac,omitzero"`
	Addresses []netip.Addr `json:"addresses,omitempty"` // at most one per family
	Wanted    []netip.Addr `json:"wanted,omitempty"`    // requested by the user, running or not
}

// Owner returns the container as an owner: project/service/number if Compose made it, otherwise its name.
func (c *EngineContainer) Owner() string {
	if c.Project == "" || c.Service == "" || c.Number <= 0 {
		return c.Name
	}
	return fmt.Sprintf("%s/%s/%d", c.Project, c.Service, c.Number)
}

// The states of the connection to an engine, in reports and states.
const (
	EngineReachable   = "reachable"
	EngineUnreachable = "unreachable"
	NoEngine          = "none" // no engine can be asked, and nobody has sent a view
)

// SeenBy is the container that holds an address, as reported by the engine.
type SeenBy struct {
	Container string `json:"container"` // its current name
	ID        string `json:"id,omitempty"`
	Project   string `json:"project,omitempty"`
	Service   string `json:"service,omitempty"`
	State     string `json:"state,omitempty"`
	MAC       MAC    `json:"mac,omitzero"` // of its endpoint on that network
	Network   string `json:"network"`      // the Docker network's name
}

// Finding is one mismatch.
type Finding struct {
	Kind       FindingKind `json:"kind"`
	Space      string      `json:"space,omitempty"`
	Address    netip.Addr  `json:"address,omitzero"`
	Network    string      `json:"network,omitempty"` // Berth's name for it, otherwise Docker's
	Host       string      `json:"host,omitempty"`
	Owner      string      `json:"owner,omitempty"`
	Seen       time.Time   `json:"seen"` // when it was first found
	Repairable bool        `json:"repairable"`
	Repaired   bool        `json:"repaired,omitempty"`
	Detail     string      `json:"detail"` // one sentence: what, who, and what to do

	Lease  uint64       `json:"lease,omitempty"` // the fields from here on identify the object for a repair
	Pool   ID           `json:"pool,omitzero"`
	Subnet netip.Prefix `json:"subnet,omitzero"`
	MAC    MAC          `json:"mac,omitzero"`
}

// CheckReport is the result of comparing the records with what runs (`berth check`).
type CheckReport struct {
	Host   string    `json:"host"`
	Taken  time.Time `json:"taken"`  // when the engine was read
	Engine string    `json:"engine"` // EngineReachable, EngineUnreachable or NoEngine
	// why the engine could not be read, or the comparison is incomplete
	Trouble  string              `json:"trouble,omitempty"`
	Findings []Finding           `json:"findings"`           // by kind, space and address
	Counts   map[FindingKind]int `json:"counts"`             // of all kinds, 0 where there are none
	Repaired int                 `json:"repaired,omitempty"` // how many were repaired
	// releases, and uses of headroom, that a store could not write yet
	Waiting int `json:"waiting,omitempty"`
	// hosts of the cluster with leases whose daemons are not connected; only they can compare these leases
	Absent []AbsentHost `json:"absent,omitempty"`
}

// AbsentHost is a host whose daemon is not connected.
type AbsentHost struct {
	Host   string `json:"host"`
	Leases int    `json:"leases"` // held there; they stay held
}

// CheckRequest requests a comparison.
type CheckRequest struct {
	Repair bool         `json:"repair,omitempty"`
	Only   *CheckReport `json:"only,omitempty"` // repair only findings in this report that are still true
	View   *EngineView  `json:"view,omitempty"` // from a `berth witness`, if the daemon has no access to the engine
}

// LeaseRelease requests the end of a lease whose endpoint is gone.
type LeaseRelease struct {
	Space   string      `json:"space,omitempty"` // empty: search all spaces
	Address netip.Addr  `json:"address"`
	Force   bool        `json:"force,omitempty"` // even if an endpoint has it, or that is unknown
	View    *EngineView `json:"view,omitempty"`  // from a `berth witness`, if the daemon has no access to the engine
	DryRun  bool        `json:"dry_run,omitempty"`
}

// WitnessState is the state of the witness, for `berth status`.
type WitnessState struct {
	Engine  string `json:"engine"`            // as in CheckReport
	Version string `json:"version,omitempty"` // the engine's, such as 20.10.24; empty: not read yet
	// the engine's own id; empty: not read yet
	EngineID string `json:"engine_id,omitempty"`
	// the engine has sent a container's name with a request since the daemon's start
	Named bool `json:"named,omitempty"`
	// the witness follows the engine's events, so it can guess a container without a name
	Live   bool      `json:"live"`
	Detail string    `json:"detail,omitempty"`
	Seen   time.Time `json:"seen,omitzero"` // when the engine was last reached
	Runs   int       `json:"runs"`          // checks since the start
	Last   time.Time `json:"last,omitzero"` // the last check
	// of the last check; `berth status` adds what else is wrong on the host
	Counts map[FindingKind]int `json:"counts,omitempty"`

	Guesses   GuessCounts    `json:"guesses"`
	Questions QuestionCounts `json:"questions"`
	PutBack   PutBackCounts  `json:"put_back"`
}

// firstNaming is the first engine version that sends a container's name with its request.
const firstNaming = 29

// SendsNames reports whether the engine sends a container's name with its request. A request with a name proves it;
// before that, the version decides. known is false before either is known.
func (w *WitnessState) SendsNames() (does, known bool) {
	if w.Named {
		return true, true
	}
	major, _, _ := strings.Cut(w.Version, ".")
	n, err := strconv.Atoi(major)
	return n >= firstNaming, err == nil
}

// EngineNews is one item from an engine that a witness needs at once, before the next view. Exactly one of its parts is
// set.
type EngineNews struct {
	At   time.Time     `json:"at"`             // when it arrived
	Late time.Duration `json:"late,omitempty"` // its delay on the way

	Begins   bool               `json:"begins,omitempty"` // from here on, all events are reported
	Ends     bool               `json:"ends,omitempty"`   // the engine has stopped
	Event    *EngineEvent       `json:"event,omitempty"`
	Listed   []EngineContainer  `json:"listed,omitempty"` // containers with all their current endpoints
	Networks *EngineNetworkList `json:"networks,omitempty"`
	Answer   *EngineAnswer      `json:"answer,omitempty"`
}

// EngineEvent is something that happened to a container.
type EngineEvent struct {
	Action    string          `json:"action"` // create, start, die, stop, destroy, rename, connect or disconnect
	Container EngineContainer `json:"container"`
	// the id of the network that it joined or left
	Network string `json:"network,omitempty"`
}

// EngineNetworkList is all networks of an engine, as in EngineView.
type EngineNetworkList struct {
	Networks []EngineNetwork `json:"networks"`
	Bridges  []EngineNetwork `json:"bridges,omitempty"`
}
