package ipam

import (
	"fmt"
	"strings"
)

// ParseBool reads a switch, wherever a person writes one: on, true, yes or 1, or off, false, no or 0, in any case.
func ParseBool(text string) (bool, error) {
	switch strings.ToLower(text) {
	case "on", "true", "yes", "1":
		return true, nil
	case "off", "false", "no", "0":
		return false, nil
	}
	return false, fmt.Errorf("%q is neither on nor off (true or false, yes or no, 1 or 0)", text)
}
