// Package edge defines the State, plain data that lists the elastic addresses a host's network edge must map. It also
// defines the Provider interface. A State that passes Check has the same effect in any order and after any number of
// repetitions. The package knows only addresses: no networks, owners or stores.
//
// A State (state.go) is checked (check.go) and passed whole to a Provider (provider.go), which applies it.
// internal/edge/nft applies it in the kernel, internal/edge/command through a program. If another host could take over,
// the host may answer only until a BootTime (boottime.go). A BootTime means the same time to every process of the host.
package edge
