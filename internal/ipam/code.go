package ipam

import (
	"errors"
	"fmt"
)

// Code is the stable name of a refusal that is about a reservation or an address, with which its sentence begins. Programs
// compare it; the names are BOSH's.
type Code string

// The codes.
const (
	AlreadyInUse      Code = "NetworkReservationAlreadyInUse"      // it is somebody else's, or in somebody else's hands (BO-5)
	AlreadyExists     Code = "NetworkReservationAlreadyExists"     // the owner has another one on the network (BO-6)
	NotEnoughCapacity Code = "NetworkReservationNotEnoughCapacity" // nothing is free (BO-7)
	OutsideSubnet     Code = "NetworkReservationIpOutsideSubnet"   // no subnet of the network has it as a host address
	IPReserved        Code = "NetworkReservationIpReserved"        // it is excluded
	WrongType         Code = "NetworkReservationWrongType"         // the network's type, or the static band, allows no such kind (BO-8)
	IPMissing         Code = "NetworkReservationIpMissing"         // one is needed, or none is there
	StaticOutOfRange  Code = "NetworkStaticIpOutOfRange"           // a static band is outside of the subnets, or excluded
)

// coded is a refusal with its code.
type coded struct {
	*refusal
	code Code
}

// refuse makes a refusal of a code and a kind.
func refuse(code Code, kind error, format string, args ...any) error {
	return &coded{&refusal{kind, fmt.Sprintf(format, args...)}, code}
}

func (e *coded) Error() string { return string(e.code) + ": " + e.text }

// CodeOf is the code of a refusal; empty where it has none.
func CodeOf(err error) Code {
	var c *coded
	if errors.As(err, &c) {
		return c.code
	}
	return ""
}
