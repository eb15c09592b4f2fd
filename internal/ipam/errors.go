package ipam

import (
	"errors"
	"fmt"

	"berth/store"
)

// The errors of this package. Each is wrapped in a sentence that names the object, its holder and what to do. Store
// errors pass through unchanged.
var (
	// ErrInvalid: the request itself makes no sense, whatever the state.
	ErrInvalid = errors.New("invalid request")
	// ErrNotFound: the named space, subnet, pool or attachment does not exist.
	ErrNotFound = errors.New("not found")
	// ErrInUse: it has another holder.
	ErrInUse = errors.New("already in use")
	// ErrExhausted: there is nothing left to give.
	ErrExhausted = errors.New("nothing free")
	// ErrOverlap: the prefix or range overlaps another.
	ErrOverlap = errors.New("overlap")
	// ErrChanged: it has changed since the requester read it.
	ErrChanged = errors.New("changed since it was read")
	// ErrKeyReused: the key of an edit was used for another one.
	ErrKeyReused = errors.New("key used for another request")
	// ErrAlone: the request is about hosts, but the store belongs to one host.
	ErrAlone = errors.New("no other hosts")
	// ErrHost: the cluster does not allow this host to do that, or to take part at all.
	ErrHost = errors.New("host refused")
	// ErrForbidden: the requester may not do that.
	ErrForbidden = errors.New("forbidden")
	// ErrLAN: the DHCP server of a LAN gave no address.
	ErrLAN = errors.New("no DHCP address")
	// ErrDamaged: a record cannot be read, or contradicts another.
	ErrDamaged = errors.New("damaged record")
)

// Refusal is an error with a sentence for people. errors.Is finds its kind, and CodeOf its code for programs. The
// sentence shows neither.
type Refusal struct {
	kind   error
	code   Code
	text   string
	advice []Advice
}

func (e *Refusal) Error() string { return e.text }

func (e *Refusal) Unwrap() error { return e.kind }

// Helps returns the advice.
func (e *Refusal) Helps() []Advice { return e.advice }

// Advise adds a remedy to the refusal.
func (e *Refusal) Advise(do Do, with ...any) *Refusal {
	e.advice = append(e.advice, Advise(do, with...))
	return e
}

// OrAdvise adds an alternative to what the refusal itself suggests.
func (e *Refusal) OrAdvise(do Do, with ...any) *Refusal {
	e.advice = append(e.advice, OrAdvise(do, with...))
	return e
}

// Refuse refuses with a kind of error and a sentence.
func Refuse(kind error, format string, args ...any) *Refusal {
	return RefuseAs("", kind, format, args...)
}

// RefuseAs refuses with a code, a kind of error and a sentence.
func RefuseAs(code Code, kind error, format string, args ...any) *Refusal {
	return &Refusal{kind: kind, code: code, text: fmt.Sprintf(format, args...)}
}

// Code is the stable name of a refusal about a reservation, an address or a deploy, for programs. The API has it as the
// reason. The names of reservation codes are BOSH's.
type Code string

// The codes.
const (
	// it belongs to another owner, or another endpoint holds it
	AlreadyInUse Code = "NetworkReservationAlreadyInUse"
	// the owner has another reservation on the network
	AlreadyExists     Code = "NetworkReservationAlreadyExists"
	NotEnoughCapacity Code = "NetworkReservationNotEnoughCapacity" // nothing is free
	OutsideSubnet     Code = "NetworkReservationIpOutsideSubnet"   // it is no host address of any subnet of the network
	IPReserved        Code = "NetworkReservationIpReserved"        // the address is excluded
	// the network's type, or the static band, does not allow this kind
	WrongType Code = "NetworkReservationWrongType"
	IPMissing Code = "NetworkReservationIpMissing" // an address is needed, or none exists
	// a static band is outside the subnets, or excluded
	StaticOutOfRange Code = "NetworkStaticIpOutOfRange"

	// The codes of elastic addresses, accounts and their ranges.
	AddressAssociated    Code = "ElasticAddressAssociated"   // it is mapped to a guest
	AddressAllocated     Code = "ElasticAddressAllocated"    // an account has it
	AddressNotAllocated  Code = "ElasticAddressNotAllocated" // no account has it
	OtherAccount         Code = "ElasticOtherAccount"        // the container belongs to another account
	QuotaExceeded        Code = "ElasticQuotaExceeded"       // the account has reached its quota
	NoElasticFree        Code = "ElasticNotEnoughCapacity"   // no range has a free one
	ElasticRangeOverlaps Code = "ElasticRangeOverlap"        // it overlaps another one
	ElasticRangeInUse    Code = "ElasticRangeInUse"          // accounts have addresses of it
	GuestAssociated      Code = "ElasticGuestAssociated"     // another elastic address is mapped to the guest
	GuestUnclear         Code = "ElasticGuestUnclear"        // the owner has several guest addresses, or none
	NetworkNotElastic    Code = "ElasticNetworkOff"          // elastic addresses are off on the network
	NetworkUnsuited      Code = "ElasticNetworkUnsuited"     // the network's kind cannot be mapped
	PublishesPorts       Code = "ElasticContainerPublishes"  // the container publishes ports
	IsSystemAddress      Code = "ElasticSystemAddress"       // it comes and goes with a container, not by request
	LacksSystemAddress   Code = "ElasticNoSystemAddress"     // the network is auto, and the guest has none to replace
	ElasticTurnedOff     Code = "ElasticOff"                 // the daemon has elastic addresses turned off
	AccountInUse         Code = "AccountInUse"               // it has addresses, or already exists

	DeployLocked Code = "DeployLocked" // another deploy holds the project
)

// CodeOf returns the code of a refusal, or the empty Code if it has none.
func CodeOf(err error) Code {
	for ; err != nil; err = errors.Unwrap(err) {
		if refused, is := errors.AsType[*Refusal](err); is && refused.code != "" {
			return refused.code
		}
	}
	return ""
}

// ErrAway: the shared store is unreachable, or was never reached since the daemon started. Nothing was changed.
var ErrAway = store.ErrAway
