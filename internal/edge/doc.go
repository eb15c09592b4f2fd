// Package edge says what a host's edge to the network is to have for elastic addresses, as plain data, and what a
// provider of it can do. It promises that a State which passes Check can be applied in any order and any number of
// times with the same outcome, and it knows nothing of networks, owners or stores: only addresses.
//
// A State (state.go) is made elsewhere, checked (check.go), and handed whole to a Provider (provider.go), which brings
// the host there: internal/edge/nft by the kernel of this host, internal/edge/command by a program. Until when a host
// may answer for addresses that another one could take over is a Moment (moment.go), which every process of the host
// reads alike.
package edge
