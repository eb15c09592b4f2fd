// Package deploy reads Compose files and gives their services addresses that stay. It promises that an override file
// which it writes is one that docker-compose 1.29 and Compose v2 both take, that it says nothing about what the Compose
// files say themselves, and that the same files over the same plan and reservations are the same bytes.
//
// A project comes in as files (load.go). With the networks that are planned it becomes a Plan: which of its networks
// are on which planned ones (network.go), on what terms its services are deployed (x-berth: termsread.go, terms.go),
// and which owner wants what on each network (claim.go, static.go). The Plan's edits are made by whoever has a daemon;
// what they came to goes back into the Plan, and out of it comes the override (override.go), or what a deploy is to do
// (instance.go). All that is wrong with the files is told at once, each with its place (place.go). Nothing here speaks
// to Docker or to a daemon.
package deploy
