// Package deploy reads Compose files and gives their services stable addresses. Its override files work with
// docker-compose 1.29 and Compose v2 and repeat nothing from the Compose files. The same files, plan and reservations
// give the same bytes.
//
// load.go reads a project. With the planned networks it becomes a Plan: its networks (network.go), the deploy terms of
// its services (x-berth: termsread.go, terms.go), and each owner's wishes (claim.go, static.go). A caller with a daemon
// makes the Plan's edits and passes the results back. The Plan then yields the override (override.go) or the steps of a
// deploy (instance.go). All errors of the files are reported together, each with its place (place.go). This package
// calls neither Docker nor a daemon.
package deploy
