// Package scene is what an engine has of a Compose project, and what a deploy does there with one container at a time.
// It promises that what it says of a container is what the engine says of it, and that nothing but the container that
// is named changes.
//
// Containers (container.go) are read whole, and those that cannot be told. What is done with one is in act.go, and how
// it is watched until it works, in watch.go. Containers that are to run are not made here: that is Compose's
// (internal/deploy/single). Those that are never started are: to copy volumes (archive.go) or to keep them (keeper.go).
package scene
