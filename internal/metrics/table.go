package metrics

// Kind is what sort of metric one is.
type Kind string

// The kinds of Prometheus.
const (
	gauge     Kind = "gauge"
	counter   Kind = "counter"
	histogram Kind = "histogram"
)

// metric is a row of the table of names.
type metric struct {
	Name   string
	Kind   Kind
	Help   string
	Labels []string
}

// The names.
const (
	poolAddresses    = "berth_pool_addresses"
	headroom         = "berth_headroom_addresses"
	dhcpLeases       = "berth_dhcp_leases"
	dnsNames         = "berth_dns_names"
	dnsQueries       = "berth_dns_queries_total"
	elasticAddresses = "berth_elastic_addresses"
	elasticUnapplied = "berth_elastic_unapplied"
	findings         = "berth_findings"
	storeUp          = "berth_store_up"
	storeBytes       = "berth_store_bytes"
	witnessSuccess   = "berth_witness_last_success_timestamp_seconds"
	buildInfo        = "berth_build_info"
	putBack          = "berth_put_back_total"
	questions        = "berth_questions_total"
	requests         = "berth_requests_total"
	reservations     = "berth_reservations"
	events           = "berth_events_total"
	hookFailures     = "berth_hook_failures_total"
	requestDuration  = "berth_request_duration_seconds"
	storeCommit      = "berth_store_commit_seconds"
	webhookAside     = "berth_webhook_aside_total"
	webhookFailures  = "berth_webhook_failures_total"
	webhookLag       = "berth_webhook_lag_seconds"
)

// table is all that is told, by name: the docs, the alerts and the board name nothing else.
func table() []metric {
	return []metric{
		{buildInfo, gauge, "Always 1. The labels are the version of Berth and of Go.", []string{"version", "goversion"}},
		{dhcpLeases, gauge, "Addresses that a LAN's DHCP server leased to containers of a network, by the state of the lease.",
			[]string{"network", "state"}},
		{dnsNames, gauge, "Names in the DNS zone, without reverse names (PTR).", nil},
		{dnsQueries, counter, "Answered DNS queries, by the code of the answer.", []string{"rcode"}},
		{elasticAddresses, gauge, "Elastic addresses of a range, by state. Free addresses belong to no account.",
			[]string{"range", "state"}},
		{elasticUnapplied, gauge, "Associations with a guest on this host that the host's edge has not mapped.",
			[]string{"host"}},
		{events, counter, "Events that this daemon wrote, by verb.", []string{"verb"}},
		{findings, gauge, "Findings of the last check, by kind.",
			[]string{"kind"}},
		{headroom, gauge, "Addresses that this host has claimed in advance, for outages of the shared store.",
			[]string{"network", "subnet"}},
		{hookFailures, counter, "Hooks that failed or timed out.", nil},
		{poolAddresses, gauge, "Addresses of a pool, each in the first state that applies: leased, quarantined, reserved " +
			"(and not leased), excluded, free. The states add up to the pool. An empty pool label: addresses in no pool.",
			[]string{"network", "subnet", "pool", "family", "state"}},
		{putBack, counter, "Containers that Berth moved back to their own addresses, or failed to move back.",
			[]string{"result"}},
		{questions, counter, "Questions to the engine about which container requests an address, by the number of candidates.",
			[]string{"answer"}},
		{requestDuration, histogram, "Time from a request of the engine to its answer, in seconds.", []string{"op"}},
		{requests, counter, "Requests of the engine, by operation and result.", []string{"op", "result"}},
		{reservations, gauge, "Reservations of a network: held if somebody holds the address, otherwise idle.",
			[]string{"network", "state"}},
		{storeBytes, gauge, "Size of the store's file, in bytes.", nil},
		{storeCommit, histogram, "Time for one commit of the store, which has one or several changes, in seconds.", nil},
		{storeUp, gauge, "1 if the store is writable, otherwise 0; for this host's own store and the cluster's.",
			[]string{"store"}},
		{webhookAside, counter, "Events that a webhook receiver refused for good. Berth does not send them again.", nil},
		{webhookFailures, counter, "Failed attempts to send an event to a webhook receiver.", nil},
		{webhookLag, gauge, "Age of the oldest event that a webhook receiver has not accepted yet, in seconds; 0 if there is none.",
			nil},
		{witnessSuccess, gauge, "Time when Berth last read the engine's state, in Unix seconds; 0 if it never did.",
			nil},
	}
}
