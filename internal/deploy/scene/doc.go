// Package scene reads a Compose project's containers from the engine and changes one at a time. It reports exactly the
// engine's view, and changes only the container that is named.
//
// container.go reads the containers and lists those that cannot be read. act.go acts on one container, and watch.go
// waits until it works. internal/deploy/single creates the containers that run. This package creates only containers
// that never start: to copy volumes (archive.go) or to keep them (keeper.go).
package scene
