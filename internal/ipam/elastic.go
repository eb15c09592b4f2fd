package ipam

import (
	"crypto/sha256"
	"net/netip"
	"time"
)

// DefaultAccount has the containers that no other account claims. It is always there, with a record or without.
const DefaultAccount = "default"

// Account has elastic addresses, and the containers that they are mapped to.
type Account struct {
	Name    string    `json:"name"`
	Domain  string    `json:"domain,omitempty"`
	Quota   *int      `json:"quota,omitempty"`  // of addresses; nil: any number
	Owners  []string  `json:"owners,omitempty"` // patterns of the owners that are the account's
	Created time.Time `json:"created,omitzero"` // zero: it has no record
}

// OnCut says what an elastic range does on a host that is cut off from the shared store.
type OnCut string

// What it does.
const (
	CutWithdraw OnCut = "withdraw" // it answers no more, so that another host may
	CutKeep     OnCut = "keep"     // it stays as it is: nobody takes over
)

// ElasticRange is a range of addresses that accounts are given.
type ElasticRange struct {
	ID       ID        `json:"id"`
	Range    Range     `json:"range"`
	Host     string    `json:"host,omitempty"`     // whose alone it is; empty: the cluster's
	Announce string    `json:"announce,omitempty"` // the device at which its addresses are announced; empty: none
	TTL      Duration  `json:"ttl"`
	OnCut    OnCut     `json:"on_cut"`
	Created  time.Time `json:"created"`

	// it is copied from another store, or to it: it is nobody's to use, and no other may lie over it
	Moving bool `json:"moving,omitempty"`
}

// DefaultElasticTTL is how long a range answers after its host was cut off.
const DefaultElasticTTL = Duration(5 * time.Second)

// ElasticState says how it stands with an elastic address.
type ElasticState string

// The states. Each can be entered again.
const (
	ElasticFree      ElasticState = "free" // it has no record
	ElasticAllocated ElasticState = "allocated"
	// released by its account, while the edge of a host has not said that it is no more mapped there
	ElasticReleasing ElasticState = "releasing"
)

// Elastic is the record of an elastic address that is not free.
type Elastic struct {
	ID          uint64       `json:"id"` // of the event of its last change
	Address     netip.Addr   `json:"address"`
	State       ElasticState `json:"state"`
	Account     string       `json:"account"`
	Allocated   time.Time    `json:"allocated"`
	Association *Association `json:"association,omitempty"` // what is wanted; nil: it is mapped to nobody

	// it was given to a container because that runs, and is not its account's to keep (CS-7)
	System bool `json:"system,omitempty"`

	ReleaseOn ReleaseOn `json:"release_on,omitempty"`
}

// ReleaseOn says when an elastic address is released without anybody's asking: by what becomes of the container that it
// is associated with.
type ReleaseOn string

// The moments.
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

// Association is the wish that an elastic address be mapped to a guest. What of it is in force is Applied.
type Association struct {
	ID         uint64     `json:"id"`       // of the event that made it
	Instance   string     `json:"instance"` // the owner
	Network    ID         `json:"network"`
	Guest      netip.Addr `json:"guest"`            // as it was found
	Chosen     bool       `json:"chosen,omitempty"` // it was named, so that no other address of the owner will do
	EgressOnly bool       `json:"egress_only,omitempty"`
	Declared   string     `json:"declared,omitempty"` // the Compose project that says so; empty: a person does

	// the host that saw the guest run, of an address that is released when it ends; empty: none has
	Ran string `json:"ran,omitempty"`
}

// Same tells whether two associations map the same guest in the same way, for the same owner: an address that has
// changed hands is another's guest.
func (a *Association) Same(other *Association) bool {
	return a.Instance == other.Instance && a.At(other) && a.EgressOnly == other.EgressOnly && a.Chosen == other.Chosen
}

// At tells whether two associations are of one guest address.
func (a *Association) At(other *Association) bool {
	return a.Network == other.Network && a.Guest == other.Guest
}

// Applied is what the edge of a host may have in its kernel of an elastic address, and what it has said of it: that it
// is mapped there, or why it is not.
type Applied struct {
	Host        string     `json:"host"`
	Address     netip.Addr `json:"address"`
	Association uint64     `json:"association"` // its id
	Guest       netip.Addr `json:"guest"`
	Since       time.Time  `json:"since"`
	Error       string     `json:"error,omitempty"`    // why this association is not in force
	InForce     bool       `json:"in_force,omitempty"` // it may have one of the address in its kernel: this, or one before
	Grant       uint64     `json:"grant,omitempty"`    // by which it may, where hosts share the store
	Unsaid      bool       `json:"unsaid,omitempty"`   // it may have it, and has said nothing of this association yet

	// it may have it for as long as it likes: it was told so while its host shared the store with nobody
	Untimed bool `json:"untimed,omitempty"`
}

// EdgeSession is the record of the session of a host's edge, where hosts share the store. It is written when the
// session has begun and before the edge is told anything by it, so that who has compared it knows that the edge of
// before is told nothing more.
type EdgeSession struct {
	Host    string    `json:"host"`
	ID      uint64    `json:"id"`      // every grant that is greater was made in this session
	Session string    `json:"session"` // its id in the store
	Begun   time.Time `json:"begun"`
}

// ElasticID names an elastic address for ever, whoever has it: it is worked out of the address.
func ElasticID(addr netip.Addr) ID {
	return WorkedOut(sha256.Sum256(append([]byte("elastic address "), addr.AsSlice()...)))
}

// ElasticMode says whether elastic addresses are mapped to guests of a network.
type ElasticMode string

// The modes.
const (
	ElasticOff ElasticMode = "" // written "off"
	elasticOn  ElasticMode = "on"
	// each container that runs has one of its host's, unless another is mapped to it (CS-7)
	ElasticAuto ElasticMode = "auto"
)

// Maps tells whether anything is mapped to guests of the network.
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

// MatchesPattern tells whether a name is one of an owner pattern, such as shop/*.
func MatchesPattern(pattern, name string) bool {
	_, ok := OwnerRule{Pattern: pattern}.match(name)
	return ok
}

// CheckPattern refuses an owner pattern that no name is of.
func CheckPattern(pattern string) error { return OwnerRule{Pattern: pattern}.check() }
