package ipam

import (
	"errors"
	"fmt"

	"berth/store"
)

// The errors of the room, each wrapped in a sentence that says which object, who holds it and what to do. Errors of the
// store come through as they are.
var (
	// ErrInvalid: the request itself makes no sense, whatever the state.
	ErrInvalid = errors.New("invalid request")
	// ErrNotFound: the named space, subnet, pool or attachment is not there.
	ErrNotFound = errors.New("not found")
	// ErrInUse: somebody else holds it.
	ErrInUse = errors.New("already in use")
	// ErrExhausted: there is nothing left to give.
	ErrExhausted = errors.New("nothing free")
	// ErrOverlap: the prefix or range overlaps another.
	ErrOverlap = errors.New("overlap")
	// ErrChanged: it is no longer as the requester saw it.
	ErrChanged = errors.New("changed meanwhile")
	// ErrKeyReused: the key of an edit was used for another one.
	ErrKeyReused = errors.New("key used for another request")
	// ErrAlone: hosts are asked for, and the store is one host's own.
	ErrAlone = errors.New("no other hosts")
	// ErrHost: this host may not do that in the cluster, or take no part in it at all.
	ErrHost = errors.New("the host is refused")
	// ErrForbidden: who asks may not do that.
	ErrForbidden = errors.New("forbidden")
	// ErrLAN: a LAN's DHCP server was asked, and gave nothing.
	ErrLAN = errors.New("nothing from the LAN")
	// ErrDamaged: a record cannot be read, or contradicts another.
	ErrDamaged = errors.New("damaged record")
)

// Refusal is a sentence for a person, the kind of error for errors.Is, which is not spoken, and a code, with which the
// sentence begins, where programs are to tell it from others of its kind.
type Refusal struct {
	kind error
	code Code
	text string
}

func (e *Refusal) Error() string {
	if e.code == "" {
		return e.text
	}
	return string(e.code) + ": " + e.text
}

func (e *Refusal) Unwrap() error { return e.kind }

// Refuse refuses with a kind of error and a sentence.
func Refuse(kind error, format string, args ...any) *Refusal {
	return &Refusal{kind: kind, text: fmt.Sprintf(format, args...)}
}

// RefuseAs refuses with a code, a kind of error and a sentence.
func RefuseAs(code Code, kind error, format string, args ...any) *Refusal {
	return &Refusal{kind, code, fmt.Sprintf(format, args...)}
}

// Code is the stable name of a refusal that is about a reservation or an address, with which its sentence begins.
// Programs compare it; the names are BOSH's.
type Code string

// The codes.
const (
	// it is somebody else's, or in somebody else's hands (BO-5)
	AlreadyInUse      Code = "NetworkReservationAlreadyInUse"
	AlreadyExists     Code = "NetworkReservationAlreadyExists"     // the owner has another one on the network (BO-6)
	NotEnoughCapacity Code = "NetworkReservationNotEnoughCapacity" // nothing is free (BO-7)
	OutsideSubnet     Code = "NetworkReservationIpOutsideSubnet"   // no subnet of the network has it as a host address
	IPReserved        Code = "NetworkReservationIpReserved"        // it is excluded
	// the network's type, or the static band, allows no such kind (BO-8)
	WrongType Code = "NetworkReservationWrongType"
	IPMissing Code = "NetworkReservationIpMissing" // one is needed, or none is there
	// a static band is outside of the subnets, or excluded
	StaticOutOfRange Code = "NetworkStaticIpOutOfRange"

	// Of elastic addresses, accounts and their ranges.
	AddressAssociated    Code = "ElasticAddressAssociated"   // it is mapped to a guest
	AddressAllocated     Code = "ElasticAddressAllocated"    // it is an account's
	AddressNotAllocated  Code = "ElasticAddressNotAllocated" // it is no account's
	OtherAccount         Code = "ElasticOtherAccount"        // the container is another account's
	QuotaExceeded        Code = "ElasticQuotaExceeded"       // the account has as many as it may have
	NoElasticFree        Code = "ElasticNotEnoughCapacity"   // no range has a free one
	ElasticRangeOverlaps Code = "ElasticRangeOverlap"        // it overlaps another one
	ElasticRangeInUse    Code = "ElasticRangeInUse"          // addresses of it are accounts'
	GuestAssociated      Code = "ElasticGuestAssociated"     // another elastic address is mapped to the guest
	GuestUnclear         Code = "ElasticGuestUnclear"        // the owner has several, or none
	NetworkNotElastic    Code = "ElasticNetworkOff"          // the network has them off
	NetworkUnsuited      Code = "ElasticNetworkUnsuited"     // its kind has no place for a mapping
	PublishesPorts       Code = "ElasticContainerPublishes"  // the container publishes ports
	IsSystemAddress      Code = "ElasticSystemAddress"       // it comes and goes with a container, not by hand
	LacksSystemAddress   Code = "ElasticNoSystemAddress"     // the network is auto, and the guest has none to replace
	ElasticTurnedOff     Code = "ElasticOff"                 // the daemon has all of it off
	AccountInUse         Code = "AccountInUse"               // it has addresses, or is there

	DeployLocked Code = "DeployLocked" // somebody else deploys the project (BD-1)
)

// CodeOf is the code of a refusal; empty where it has none.
func CodeOf(err error) Code {
	for ; err != nil; err = errors.Unwrap(err) {
		if refused, is := errors.AsType[*Refusal](err); is && refused.code != "" {
			return refused.code
		}
	}
	return ""
}

// ErrAway: the shared store is out of reach, or was never reached since the daemon began. Nothing was changed.
var ErrAway = store.ErrAway
