//go:build engine

package engine

import "testing"

// sample is how often a test does something: as often as its flag says, or else a few times under -short, and all times
// without.
func sample(flag, few, all int) int {
	switch {
	case flag > 0:
		return flag
	case testing.Short():
		return few
	}
	return all
}
