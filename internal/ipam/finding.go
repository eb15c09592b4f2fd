package ipam

import (
	"fmt"
	"strings"
)

// FindingKind is a kind of mismatch between the records and what runs.
type FindingKind string

// The kinds of findings. FindingKinds has their meanings.
const (
	EmptyState            FindingKind = "empty_state"
	OtherEngine           FindingKind = "other_engine"
	UnusedLease           FindingKind = "unused_lease"
	UncoveredAddress      FindingKind = "uncovered_address"
	DoubledAddress        FindingKind = "doubled_address"
	OutdatedLease         FindingKind = "outdated_lease"
	LostLease             FindingKind = "lost_lease"
	ConflictingLease      FindingKind = "conflicting_lease"
	UnconfirmedLease      FindingKind = "unconfirmed_lease"
	UnusedSubnet          FindingKind = "unused_subnet"
	UnusedAttachment      FindingKind = "unused_attachment"
	UnknownPool           FindingKind = "unknown_pool"
	WrongGateway          FindingKind = "wrong_gateway"
	ConflictingNetworks   FindingKind = "conflicting_networks"
	ForeignHolder         FindingKind = "foreign_holder"
	OwnerElsewhere        FindingKind = "owner_elsewhere"
	StaleMemory           FindingKind = "stale_memory"
	SupersededReservation FindingKind = "superseded_reservation"
	ShadowedSubnet        FindingKind = "shadowed_subnet"
	BridgeOnLAN           FindingKind = "bridge_on_lan"
	UnprobedNetwork       FindingKind = "unprobed_network"
	ForeignAnswer         FindingKind = "foreign_answer"
	EndingToken           FindingKind = "ending_token"
	EdgeAway              FindingKind = "edge_away"
	UnmappedElastic       FindingKind = "unmapped_elastic"
	GuestGone             FindingKind = "guest_gone"
	MissingDevice         FindingKind = "missing_device"
	FirewallInWay         FindingKind = "firewall_in_way"
	PublishedElastic      FindingKind = "published_elastic"
	NoSystemAddress       FindingKind = "no_system_address"
)

// FindingKinds are all kinds of findings, in the order of a report. The help of the commands and the description of the
// API are made from it.
var FindingKinds = []struct {
	Kind    FindingKind
	Means   string
	Elastic bool // about elastic addresses; no repair corrects it
}{
	{EmptyState, "the engine has Docker networks of this Berth, but Berth has lost its records of them", false},
	{OtherEngine, "the records name another engine's containers, so no report of this engine ends a lease", false},
	{UnusedLease, "an address is held, but no endpoint uses it", false},
	{UncoveredAddress, "an endpoint uses an address that nobody holds", false},
	{DoubledAddress, "two endpoints have one address", false},
	{OutdatedLease, "an endpoint uses an address that is held for another, removed endpoint", false},
	{LostLease, "a DHCP server withdrew a container's address, or the lease expired", false},
	{ConflictingLease, "a DHCP server gave one address to two clients", false},
	{UnconfirmedLease, "a DHCP server does not answer; the container keeps its last address", false},
	{UnusedSubnet, "the Docker networks of the subnet no longer exist", false},
	{UnusedAttachment, "a Docker network of the subnet no longer exists", false},
	{UnknownPool, "Berth does not know the subnet of a Docker network", false},
	{WrongGateway, "a Docker network and its subnet have different gateways", false},
	{ConflictingNetworks, "a container is on two Docker networks of one subnet, so it cannot start again", false},
	{ForeignHolder, "a container runs with an address that is reserved for another", false},
	{OwnerElsewhere, "an owner runs with an address other than its reserved one", false},
	{StaleMemory, "Berth remembers an address for a holder that will not come back", false},
	{SupersededReservation, "the owner of a reserved address already runs with the address that replaced it", false},
	{ShadowedSubnet, "a newer route, such as a VPN's, covers the subnet of a Docker network", false},
	{BridgeOnLAN, "a Docker network of the driver bridge overlaps a LAN of this host", false},
	{UnprobedNetwork, "a network needs probes, but berth edge does not run on this host", false},
	{ForeignAnswer, "another machine on the LAN answers for a container's address", false},
	{EndingToken, "a token of the admin API expires within two weeks", false},
	{EdgeAway, "a host has addresses to map, but no edge is connected", true},
	{UnmappedElastic, "the edge has not mapped an address for over five seconds; the finding gives any error", true},
	{GuestGone, "an address is associated with a container that no longer exists", true},
	{MissingDevice, "a range is announced on a network device that the host does not have", true},
	{FirewallInWay, "the engine's firewall drops incoming packets; the finding names the network option to set", true},
	{PublishedElastic, "a container publishes ports and has an elastic address, or none because of the ports", true},
	{NoSystemAddress, "a container needs a system address, but none is free", true},
}

// ElasticKinds returns the kinds of findings about elastic addresses, in report order.
func ElasticKinds() (kinds []FindingKind) {
	for _, row := range FindingKinds {
		if row.Elastic {
			kinds = append(kinds, row.Kind)
		}
	}
	return kinds
}

// DescribeFindings lists the kinds of findings that are about elastic addresses, or those that are not, with their
// meanings, as lines of a help text.
func DescribeFindings(elastic bool) string {
	var b strings.Builder
	for _, row := range FindingKinds {
		if row.Elastic == elastic {
			fmt.Fprintf(&b, "  %-22s  %s\n", row.Kind, row.Means)
		}
	}
	return b.String()
}
