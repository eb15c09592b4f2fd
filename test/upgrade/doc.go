// Package upgrade fills a state with an older Berth, kills it, and opens the state with the present one: nothing
// may be lost. `make upgrades FROM="v1.0.0 v1.1.0"` builds the older ones from this repository.
package upgrade
