//go:build engine

package engine

import "testing"

// sample returns how often a test does something: as often as its flag says, else few times under -short and all times
// otherwise.
func sample(flag, few, all int) int {
	switch {
	case flag > 0:
		return flag
	case testing.Short():
		return few
	}
	return all
}
