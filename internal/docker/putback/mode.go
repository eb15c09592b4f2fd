package putback

import (
	"fmt"
	"slices"
	"strings"
)

// Mode is which containers are put back.
type Mode string

// The modes.
const (
	Reserved Mode = "reserved" // those that have an address reserved
	All      Mode = "all"      // these, and those that had another address before
	Off      Mode = "off"
)

// Modes are the words for them.
func Modes() []string { return []string{string(Reserved), string(All), string(Off)} }

// Set implements pflag.Value.
func (m *Mode) Set(word string) error {
	if !slices.Contains(Modes(), word) {
		return fmt.Errorf("it is one of %s", strings.Join(Modes(), ", "))
	}
	*m = Mode(word)
	return nil
}

// Type implements pflag.Value.
func (m *Mode) Type() string { return "string" }

func (m *Mode) String() string { return string(*m) }
