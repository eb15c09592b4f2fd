package ipam

// ElasticCheck is what the records say is wrong with the elastic addresses of a host (`berth elastic check`), and what
// who knows its edge and its devices needs to find the rest.
type ElasticCheck struct {
	Host     string
	Findings []Finding
	Ranges   []EdgeRange // of which the host may have addresses
	Wanted   int         // how many addresses are to be mapped on the host
	Unmapped int         // how many of them its edge has not mapped
}

// The kinds of findings that are of elastic addresses, and of nothing that a repair could put right.
const (
	EdgeAway        FindingKind = "edge_away"        // addresses are to be mapped on a host without an edge
	UnmappedElastic FindingKind = "unmapped_elastic" // it is to be mapped, and is not
	GuestGone       FindingKind = "guest_gone"       // an address is associated with a container that is no more
	MissingDevice   FindingKind = "missing_device"   // a range is announced at a device that is not there
	FirewallInWay   FindingKind = "firewall_in_way"  // the engine's firewall drops what comes in
)

// ElasticKinds are the kinds of findings of elastic addresses, in the order of a report.
func ElasticKinds() []FindingKind {
	return []FindingKind{EdgeAway, UnmappedElastic, GuestGone, MissingDevice, FirewallInWay}
}
