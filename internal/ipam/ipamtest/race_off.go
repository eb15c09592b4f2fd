//go:build !race

package ipamtest

// RaceEnabled tells that the tests run under the race detector (race_on.go).
const RaceEnabled = false
