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
		{buildInfo, gauge, "1, with what this Berth is.", []string{"version", "goversion"}},
		{dhcpLeases, gauge, "Addresses that the DHCP server of a network's LAN gave, by how it stands with them.",
			[]string{"network", "state"}},
		{dnsNames, gauge, "Names in the zone that are answered for; reverse names (PTR) are not counted.", nil},
		{dnsQueries, counter, "Questions for names that were answered, by the code of the answer.", []string{"rcode"}},
		{elasticAddresses, gauge, "Elastic addresses of a range, by state; free are those that no account has.",
			[]string{"range", "state"}},
		{elasticUnapplied, gauge, "Associations whose guest is on a host, and which its edge does not say to have in force.",
			[]string{"host"}},
		{events, counter, "Events that this daemon has written, by verb.", []string{"verb"}},
		{findings, gauge, "What the last check has found wrong between the records and what runs, by kind.",
			[]string{"kind"}},
		{headroom, gauge, "Addresses that this host has ahead of need, to give while the shared store is away.",
			[]string{"network", "subnet"}},
		{hookFailures, counter, "Hooks that have failed, or ran out of time.", nil},
		{poolAddresses, gauge, "Addresses of a pool, each in the first state that fits of leased, quarantined, reserved, " +
			"excluded, free; the sum over the states is the pool. With an empty pool: those of the subnet in no pool.",
			[]string{"network", "subnet", "pool", "family", "state"}},
		{putBack, counter, "Containers that were put back to their own addresses, or could not be.", []string{"result"}},
		{questions, counter, "Questions to the engine which container asks for an address, by how many it could be.",
			[]string{"answer"}},
		{requestDuration, histogram, "Time from a request of the engine to its answer.", []string{"op"}},
		{requests, counter, "Requests of the engine, by what came of them.", []string{"op", "result"}},
		{storeBytes, gauge, "Size of the store's file.", nil},
		{storeCommit, histogram, "Time that the store took for one commit, of one or several changes.", nil},
		{storeUp, gauge, "1 where the store takes changes, of this host and of the cluster.", []string{"store"}},
		{webhookAside, counter, "Events that a receiver has refused for good, and that are not sent to it any more.", nil},
		{webhookFailures, counter, "Attempts to send an event that a receiver has not taken.", nil},
		{webhookLag, gauge, "How long ago the oldest event was written that a receiver has not taken yet; 0: they have all.",
			nil},
		{witnessSuccess, gauge, "When the engine was last looked at with success; 0: not yet.", nil},
	}
}
