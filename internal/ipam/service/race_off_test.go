//go:build !race

package service

// RaceEnabled tells that the tests run under the race detector (race_on_test.go).
const RaceEnabled = false
