// Package single creates one container of a Compose project, which the project's compose command then recognizes as its
// own. It creates exactly the requested replica. Compose itself sets the labels and the hash, and turns the file's
// fields into the engine's request. Nothing else on the engine changes. The container starts only after the caller has
// checked it.
//
// Maker (maker.go) runs the compose command (command.go) against a Filter (filter.go), a socket in front of the engine.
// The Filter passes reads on. It hides all replicas from the wanted number up, so that Compose creates the wanted one
// (listing.go). It sets the owner's addresses (create.go), holds the start until the check, and refuses everything
// else.
package single
