package putback

import (
	"fmt"
	"slices"
	"strings"

	"berth/internal/ipam"
)

// Mode selects the containers that are put back.
type Mode = ipam.PutBackMode

// The modes: containers with a reservation, all containers, or none.
const (
	Reserved = ipam.PutBackReserved
	All      = ipam.PutBackAll
	off      = ipam.PutBackOff
)

// Flag is the mode of all networks without a mode of their own.
type Flag Mode

// Words are the valid values of Flag.
func Words() []string { return []string{string(Reserved), string(All), string(off)} }

// Set implements pflag.Value.
func (f *Flag) Set(word string) error {
	if !slices.Contains(Words(), word) {
		return fmt.Errorf("it must be one of %s", strings.Join(Words(), ", "))
	}
	*f = Flag(word)
	return nil
}

// Type implements pflag.Value.
func (f *Flag) Type() string { return "string" }

func (f *Flag) String() string { return string(*f) }
