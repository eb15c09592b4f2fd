// Package single makes one container of a Compose project, which the project's own compose command then knows as its
// own. It promises that exactly the replica that was asked for is made, with the labels, the hash and the translation
// of all fields that Compose itself gives it, that nothing else on the engine changes, and that the container runs only
// after whoever asked has looked at it.
//
// Maker (maker.go) runs the compose command (command.go) against a Filter (filter.go): a socket that passes to the
// engine what reads, hides the replicas from the wanted number on, so that Compose fills that place (listing.go), sets
// the addresses that are the owner's (create.go), and holds the start until it is looked at. All else is refused.
package single
