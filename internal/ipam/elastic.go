package ipam

import (
	"crypto/sha256"
	"net/netip"
	"time"
)

// DefaultAccount has the containers that no other account claims. It always exists, even without a record.
const DefaultAccount = "default"

// Account has elastic addresses, and the containers to which they are mapped.
type Account struct {
	Name    string    `json:"name"`
	Domain  string    `json:"domain,omitempty"`
	Quota   *int      `json:"quota,omitempty"`  // maximum number of addresses; nil: no limit
	Owners  []string  `json:"owners,omitempty"` // owner patterns that belong to the account
	Created time.Time `json:"created,omitzero"` // zero: it has no record
}

// OnCut is what an elastic range does on a host that is cut off from the shared store.
type OnCut string

// The choices.
const (
	CutWithdraw OnCut = "withdraw" // stop answering, so that another host can take over
	CutKeep     OnCut = "keep"     // keep answering; no host takes over
)

// ElasticRange is a range of addresses that are allocated to accounts.
type ElasticRange struct {
	ID       ID        `json:"id"`
	Range    Range     `json:"range"`
	Host     string    `json:"host,omitempty"`     // the only host that may use it; empty: the cluster
	Announce string    `json:"announce,omitempty"` // the device that announces its addresses; empty: none
	TTL      Duration  `json:"ttl"`
	OnCut    OnCut     `json:"on_cut"`
	Created  time.Time `json:"created"`

	// It is being copied to or from another store. Nobody may use it, and no other range may overlap it.
	Moving bool `json:"moving,omitempty"`
}

// DefaultElasticTTL is how long a range still answers after its host was cut off.
const DefaultElasticTTL = Duration(5 * time.Second)

// ElasticState is the state of an elastic address.
type ElasticState string

// The states. Each can be entered again.
const (
	ElasticFree      ElasticState = "free" // it has no record
	ElasticAllocated ElasticState = "allocated"
	// the account released it, but the edge has not yet confirmed that the mapping is gone
	ElasticReleasing ElasticState = "releasing"
)

// Elastic is the record of an elastic address that is not free.
type Elastic struct {
	ID          uint64       `json:"id"` // of the event of its last change
	Address     netip.Addr   `json:"address"`
	State       ElasticState `json:"state"`
	Account     string       `json:"account"`
	Allocated   time.Time    `json:"allocated"`
	Association *Association `json:"association,omitempty"` // the wanted mapping; nil: none

	// Berth allocated it because a container runs; the account cannot keep it
	System bool `json:"system,omitempty"`

	ReleaseOn ReleaseOn `json:"release_on,omitempty"`
}

// ReleaseOn is the container event at which Berth releases an elastic address automatically. It refers to the container
// that the address is associated with.
type ReleaseOn string

// The events.
const (
	ReleaseNever     ReleaseOn = "" // written "never"
	ReleaseOnDestroy ReleaseOn = "destroy"
	ReleaseOnStop    ReleaseOn = "stop"
)

func (r ReleaseOn) String() string {
	if r == ReleaseNever {
		return "never"
	}
	return string(r)
}

// ParseReleaseOn reads never, destroy or stop.
func ParseReleaseOn(s string) (ReleaseOn, error) {
	switch s {
	case "never":
		return ReleaseNever, nil
	case "destroy", "stop":
		return ReleaseOn(s), nil
	}
	return ReleaseNever, Refuse(ErrInvalid, "an elastic address is released on destroy, on stop or never, not on %q", s)
}

// Association is the request to map an elastic address to a guest address. Applied records what is in force.
type Association struct {
	ID         uint64     `json:"id"`       // of the event that made it
	Instance   string     `json:"instance"` // the owner
	Network    ID         `json:"network"`
	Guest      netip.Addr `json:"guest"`            // as found when the association was made
	Chosen     bool       `json:"chosen,omitempty"` // the user named it; no other address of the owner will do
	EgressOnly bool       `json:"egress_only,omitempty"`
	Declared   string     `json:"declared,omitempty"` // the Compose project that declares it; empty: a person made it

	// the host that saw the guest run, for an address released when the guest ends; empty: none
	Ran string `json:"ran,omitempty"`
}

// Same reports whether two associations map the same guest in the same way for the same owner. The owner counts because
// an address may have changed hands.
func (a *Association) Same(other *Association) bool {
	return a.Instance == other.Instance && a.at(other) && a.EgressOnly == other.EgressOnly && a.Chosen == other.Chosen
}

// at reports whether two associations have the same guest address.
func (a *Association) at(other *Association) bool {
	return a.Network == other.Network && a.Guest == other.Guest
}

// Applied is what a host's edge may have in its kernel for an elastic address. It also holds the edge's last report:
// mapped, or why not.
type Applied struct {
	Host        string     `json:"host"`
	Address     netip.Addr `json:"address"`
	Association uint64     `json:"association"` // its id
	Guest       netip.Addr `json:"guest"`
	Since       time.Time  `json:"since"`
	Error       string     `json:"error,omitempty"` // why this association is not in force
	// the kernel may have this association of the address, or an earlier one
	InForce bool   `json:"in_force,omitempty"`
	Grant   uint64 `json:"grant,omitempty"`  // the grant that allows it, if hosts share the store
	Unsaid  bool   `json:"unsaid,omitempty"` // the edge has not yet reported on this association

	// The mapping has no time limit, because the edge got it while its host shared the store with no other host.
	Untimed bool `json:"untimed,omitempty"`
}

// EdgeSession records the session of a host's edge when hosts share a store. It is written after the session begins and
// before the edge receives anything in it. Whoever has compared it knows that the previous edge receives nothing more.
type EdgeSession struct {
	Host    string    `json:"host"`
	ID      uint64    `json:"id"`      // every greater grant was made in this session
	Session string    `json:"session"` // the session's id in the store
	Begun   time.Time `json:"begun"`
}

// ElasticID is the permanent ID of an elastic address. It is derived from the address, whoever has that.
func ElasticID(addr netip.Addr) ID {
	return WorkedOut(sha256.Sum256(append([]byte("elastic address "), addr.AsSlice()...)))
}

// ElasticMode is whether elastic addresses are mapped to guests of a network.
type ElasticMode string

// The modes.
const (
	ElasticOff ElasticMode = "" // written "off"
	elasticOn  ElasticMode = "on"
	// each running container has one of its host's, unless another is mapped to it
	ElasticAuto ElasticMode = "auto"
)

// Maps reports whether elastic addresses are mapped to guests of the network.
func (m ElasticMode) Maps() bool { return m != ElasticOff }

func (m ElasticMode) String() string {
	if m == ElasticOff {
		return "off"
	}
	return string(m)
}

// ParseElasticMode reads off, on or auto.
func ParseElasticMode(s string) (ElasticMode, error) {
	switch s {
	case "off":
		return ElasticOff, nil
	case "on":
		return elasticOn, nil
	case "auto":
		return ElasticAuto, nil
	}
	return ElasticOff, Refuse(ErrInvalid, "elastic addresses of a network are off, on or auto, not %q", s)
}

// MatchesPattern reports whether a name matches an owner pattern such as shop/*.
func MatchesPattern(pattern, name string) bool {
	_, ok := OwnerRule{Pattern: pattern}.match(name)
	return ok
}

// CheckPattern refuses an owner pattern that can match no name.
func CheckPattern(pattern string) error { return OwnerRule{Pattern: pattern}.check() }
