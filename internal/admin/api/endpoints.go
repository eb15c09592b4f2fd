package api

import (
	"net/http"

	"berth/internal/ipam"
)

// The daemon itself.
var (
	GetHealth = Endpoint[None, string]{Name: "health", Path: "/healthz", Role: RoleAnybody, Type: textType,
		Summary: "Whether the daemon runs",
		Answer:  "The daemon runs. Use /readyz to find out whether it can answer requests.",
	}

	GetReady = Endpoint[None, string]{Name: "ready", Path: "/readyz", Role: RoleAnybody, Type: textType,
		Summary: "Whether the daemon can answer requests",
		Text: "The daemon is not ready while its own store refuses writes, for example on a full disk. It is not " +
			"ready while the shared store is unreachable; the space local still works. It is not ready while it " +
			"rebuilds a state that it keeps only in memory.",
		Answer:  "The daemon is ready.",
		Unready: "Some requests fail. The body is one line with the reason. GET /v1/status has details.",
	}

	GetMetrics = Endpoint[None, string]{Name: "metrics", Path: "/metrics", Role: RoleReadOnly, Type: textType,
		Summary: "Metrics for Prometheus",
		Text:    "Prometheus text format, or OpenMetrics if you request it. docs/metrics-list.md lists the names.",
		Answer:  "The metrics.",
	}

	GetDescription = Endpoint[None, string]{Name: "description", Path: "/openapi.yaml", Role: RoleReadOnly,
		Type:    "application/yaml",
		Summary: "This description as OpenAPI",
		Text:    "The answer has its own ETag.",
	}

	GetDocs = Endpoint[None, string]{Name: "docs", Path: "/docs", Role: RoleReadOnly, Type: "text/html",
		Summary: "This description as a web page",
		Text:    "The page needs no scripts and loads nothing from other sites. It has an ETag.",
	}

	GetVersion = Endpoint[None, Version]{Name: "version", Path: "/v1/version", Role: RoleReadOnly,
		Summary: "Version of the daemon",
		Answer:  "Version, host and state path of the daemon.",
	}

	GetStatus = Endpoint[None, Status]{Name: "status", Path: "/v1/status", Role: RoleReadOnly,
		Summary: "State of the daemon, its stores and its engine, and the unfinished import",
		Answer:  "The status. The answer is 200 even if the daemon cannot write.",
	}
)

// Networks and their contents. Edits make all changes.
var (
	PostEdits = Endpoint[EditsRequest, ipam.Outcome]{Name: "edits", Method: http.MethodPost, Path: "/v1/edits",
		Account: true, Response: "Outcome",
		Summary: "Change the plan with one or more edits in one transaction",
		Text: "Use edits to change networks, subnets, pools, exclusions, reservations, addresses and hosts. Berth " +
			"makes all edits of a request or none. Write names as they are, without URL escapes.",
	}

	GetSpaces = Endpoint[None, SpaceList]{Name: "spaces", Path: "/v1/spaces", Role: RoleReadOnly,
		Summary: "List all spaces, sorted by name",
	}

	GetNetworks = Endpoint[NetworksRequest, NetworkList]{Name: "networks", Path: "/v1/networks", Role: RoleReadOnly,
		Summary: "List networks, sorted by name",
	}

	GetNetwork = Endpoint[OfNetwork, ipam.NetworkInfo]{Name: "network", Path: "/v1/networks/{network}",
		Role: RoleReadOnly, Tagged: true,
		Summary: "Get one network with the maps of its pools",
		Text: "Give its name or id, or the name of its Docker network on this host. If that name " +
			"belongs to several networks, the error lists them.",
	}

	GetNetworkSubnets = Endpoint[PartsRequest, SubnetPlanList]{Name: "networkSubnets",
		Path: "/v1/networks/{network}/subnets", Role: RoleReadOnly, Tagged: true,
		Summary: "List the subnets of a network, sorted by address",
	}

	GetPools = Endpoint[PartsRequest, PoolList]{Name: "pools", Path: "/v1/networks/{network}/pools",
		Role: RoleReadOnly, Tagged: true,
		Summary: "List the pools of a network, sorted by address, with their maps",
	}

	GetExclusions = Endpoint[PartsRequest, ExclusionList]{Name: "exclusions",
		Path: "/v1/networks/{network}/exclusions", Role: RoleReadOnly, Tagged: true,
		Summary: "List the exclusions of a network, sorted by address",
	}

	GetReservations = Endpoint[OwnedRequest, ReservationList]{Name: "reservations", Path: "/v1/reservations",
		Role:    RoleReadOnly,
		Summary: "List the reserved addresses of all networks, sorted by space and address",
	}

	GetNetworkReservations = Endpoint[OwnedRequest, ReservationList]{Name: "networkReservations",
		Path: "/v1/networks/{network}/reservations", Role: RoleReadOnly, Tagged: true,
		Summary: "List the reserved addresses of a network, sorted by address",
	}

	GetAddresses = Endpoint[OwnedRequest, AddressList]{Name: "addresses", Path: "/v1/addresses", Role: RoleReadOnly,
		Summary: "List the device addresses of all networks, sorted by space and address",
		Text:    "A device is anything that is not a container, such as a router, a VM or a printer.",
	}

	GetNetworkAddresses = Endpoint[OwnedRequest, AddressList]{Name: "networkAddresses",
		Path: "/v1/networks/{network}/addresses", Role: RoleReadOnly, Tagged: true,
		Summary: "List the device addresses of a network, sorted by address",
	}

	GetEnvironment = Endpoint[EnvironmentRequest, VariableList]{Name: "environment",
		Path: "/v1/networks/{network}/env/{owner}", Role: RoleReadOnly,
		Summary: "List an owner's addresses as variables for Ganeti's hooks",
	}

	GetFree = Endpoint[FreeRequest, FreeList]{Name: "free", Path: "/v1/networks/{network}/free", Role: RoleReadOnly,
		Summary: "List the free addresses of a network as ranges",
		Text: "An address is free if it is in a pool, has no holder and no owner, is not in quarantine, and no " +
			"container's configuration asks for it. You can also use the name of a Docker network. " +
			"Berth refuses the request for networks of type vip or dynamic, where it chooses no addresses.",
	}

	GetNextFree = Endpoint[NextFreeRequest, NextFreeList]{Name: "nextFree", Path: "/v1/networks/{network}/free/next",
		Role:    RoleReadOnly,
		Summary: "Get the next free address of each family for a new container",
		Text: "Berth searches the subnets in order. If this host has Docker networks on some of them, it searches " +
			"only these, in their ranges. The request takes nothing, so two callers can get the same address.",
		Answer: "At most one address of each family; none if nothing is free.",
	}

	PostScan = Endpoint[ScanRequest, LANScan]{Name: "scan", Method: http.MethodPost,
		Path: "/v1/networks/{network}/scan", Pace: streams,
		Summary: "Scan the LAN of a network for addresses in use",
		Text: "The edge of this host probes all addresses of the network with ARP and neighbour discovery. It " +
			"probes 256 addresses at a time, three times each, in about two seconds. The answer includes the " +
			"host's own addresses. Nothing changes.",
	}

	GetSubnets = Endpoint[SubnetsRequest, SubnetList]{Name: "subnets", Path: "/v1/subnets", Role: RoleReadOnly,
		Summary: "List subnets, sorted by space and address",
	}

	GetSubnet = Endpoint[OfSubnet, ipam.SubnetInfo]{Name: "subnet", Path: "/v1/subnets/{id}", Role: RoleReadOnly,
		Tagged:  true,
		Summary: "Get one subnet",
	}

	GetAvailable = Endpoint[AvailableRequest, AvailableList]{Name: "available",
		Path: "/v1/subnets/{id}/available-ips", Role: RoleReadOnly,
		Summary: "List the lowest addresses that Berth can lease automatically",
		Answer:  "The addresses. Another caller may take them first.",
	}

	PostAvailable = Endpoint[TakeRequest, ipam.Outcome]{Name: "takeNext", Method: http.MethodPost,
		Path: "/v1/subnets/{id}/available-ips", Response: "Outcome",
		Summary: "Take the next free addresses",
		Text: "Takes the lowest free addresses for a device that is not a container. They become a new interface " +
			"of the owner, with one slot for each address. The edit address.release releases them.",
	}
)

// Current state and history.
var (
	GetLeases = Endpoint[LeasesRequest, LeaseList]{Name: "leases", Path: "/v1/leases", Role: RoleReadOnly,
		Summary: "List leases, sorted by space, subnet and address",
	}

	GetWho = Endpoint[ipam.WhoFilter, TenureList]{Name: "who", Path: "/v1/who", Role: RoleReadOnly, Pace: streams,
		Summary: "Get the history of an address, a MAC or a name, oldest first",
		Text: "Give exactly one of address, mac and name. The answer comes from the stored events. Tenures that " +
			"have not ended come from the records, so they can be older.",
	}

	GetFind = Endpoint[FindRequest, FoundList]{Name: "find", Path: "/v1/find", Role: RoleReadOnly,
		Summary: "Search for a word in all records",
		Text: "The word is an address, a prefix, a range, a MAC or an id, or a part of one. It can also be a part " +
			"of a name, an owner, a tag or a note. You can write names as Docker and Compose do (shop-web-1, " +
			"shop_web_1) or as owners (shop/web/1). Case does not matter. An address also finds its subnet, pools " +
			"and exclusions. A container id of this host, with at least 12 digits, finds the addresses of that " +
			"container. This needs a witness. Results have a fixed order: spaces, networks, subnets, pools, " +
			"exclusions, records of addresses, free addresses, elastic addresses, accounts, elastic ranges, " +
			"hosts.",
	}

	GetEvents = Endpoint[EventsRequest, EventList]{Name: "events", Path: "/v1/events", Role: RoleReadOnly,
		Response: "Events",
		Summary:  "List the last events, oldest first",
		Text: "With after, the list begins after that mark. If you continue from mark to mark, you get each " +
			"event exactly once, even if hosts write them in another order. Separate several networks or verbs " +
			"with commas. A noun such as lease or lease.* matches all of its verbs. With follow, the answer is a " +
			"stream that ends when the client or the daemon ends. Its lines contain marks. A stream that starts " +
			"at a mark has no limit.",
	}

	GetNames = Endpoint[None, Names]{Name: "names", Path: "/v1/names", Role: RoleReadOnly,
		Summary: "List addresses and owners for DNS",
		Text: "All addresses that have a holder or an owner, and their ranges. `berth dns` and the daemon's DNS " +
			"server create names from them (docs/dns.md). A host of a cluster answers 503 until it has reached " +
			"the shared store once, because the list must be complete.",
	}

	GetHosts = Endpoint[None, HostList]{Name: "hosts", Path: "/v1/hosts", Role: RoleReadOnly,
		Summary: "List the hosts that share the store, sorted by name, with removed hosts last",
	}

	GetHost = Endpoint[HostRequest, ipam.HostInfo]{Name: "host", Path: "/v1/hosts/{name}", Role: RoleReadOnly,
		Summary: "Get one host and what its removal would release",
	}
)

// Whole plans.
var (
	GetExport = Endpoint[ExportRequest, ipam.Plan]{Name: "export", Path: "/v1/export", Role: RoleReadOnly,
		Pace:    streams,
		Summary: "Export the plan for POST /v1/import",
		Text: "All planned networks by name. Each network is consistent in itself. The export omits what Docker " +
			"has in use.",
	}

	PostImport = Endpoint[ImportRequest, ImportLine]{Name: "import", Method: http.MethodPost, Path: "/v1/import",
		Pace: Lasts, Type: LinesType, MaxBody: 64 << 20,
		Summary: "Add the missing parts of a plan",
		Text: "Berth checks the whole plan before it writes anything. Errors are in the field problems of the " +
			"answer. An existing network gets what it lacks; Berth changes nothing else in it. Berth writes in " +
			"transactions of limited size and never splits a network. If an import stops, what it added stays. Run " +
			"the same import again to add the rest. Only one import runs at a time.",
		Answer: "JSON lines with the progress. The last line has the report or the error.",
	}
)

// maxView is the maximum size in bytes of a body with an engine's view.
const maxView = 32 << 20

// The engine.
var (
	GetCheck = Endpoint[None, ipam.CheckReport]{Name: "check", Path: "/v1/check", Role: RoleReadOnly, Pace: Lasts,
		Summary: "Compare the records with the engine without changes",
		Text: "The check queries the Docker Engine and takes as long as the engine needs. A daemon without a " +
			"witness answers no_witness. If the engine does not answer, the report contains the reason.",
		Answer: "The findings; the list may be empty.",
	}

	PostCheck = Endpoint[Body[ipam.CheckRequest], ipam.CheckReport]{Name: "checkWith", Method: http.MethodPost,
		Path: "/v1/check", Pace: Lasts, MaxBody: maxView,
		Summary: "Compare the records with the engine and repair certain cases",
		Text: "Berth repairs only what the report marks as repairable. It repairs nothing that may only look wrong " +
			"because of a partition or a stopped engine. Berth reads one body above 1 MiB at a time and refuses " +
			"others with busy.",
		Answer: "The findings; the list may be empty.",
	}

	PostRelease = Endpoint[Body[ipam.LeaseRelease], ipam.LeaseInfo]{Name: "releaseLease", Method: http.MethodPost,
		Path: "/v1/leases/release", MaxBody: maxView,
		Summary: "Release an address whose endpoint no longer exists",
		Text: "Berth refuses if an endpoint has the address, if its container may be starting, or if the engine " +
			"cannot be read. Use force to release it anyway. Force does not help if another host holds the " +
			"address, or if its holder is not an endpoint.",
		Answer: "The lease before its release.",
	}

	PutWitness = Endpoint[Body[ipam.EngineView], Done]{Name: "showEngine", Method: http.MethodPut,
		Path: "/v1/witness", MaxBody: maxView,
		Summary: "Report what an engine runs, for a daemon that cannot read the engine",
	}

	PostNews = Endpoint[NewsRequest, Done]{Name: "hearEngine", Method: http.MethodPost, Path: "/v1/witness/news",
		Pace: streams, MaxBody: Endless,
		Summary: "Stream the engine's events to a daemon that cannot read the engine",
		Text: "The body lasts as long as the sender follows the engine's events. Each line is one event. An empty " +
			"line means no news; send one at least every 30 seconds. A new stream replaces the previous one. " +
			"During the stream, from the next view (PUT /v1/witness) on, the daemon guesses which container sent a " +
			"request. If the daemon has a question about the engine, it sends a JSON line in the answer " +
			"(EngineQuestion). Answer it with a line of the body. Answer the question locked within 300 ms.",
		Answer: "The body ended.",
	}
)

// Deploys of projects.
var (
	GetDeploys = Endpoint[None, DeployList]{Name: "deploys", Path: "/v1/deploys", Role: RoleReadOnly,
		Summary: "List the projects with a deploy lock, sorted by name",
	}

	GetDeployRuns = Endpoint[DeployRunsRequest, DeployRunList]{Name: "deployRuns", Path: "/v1/deploys/{project}",
		Role:    RoleReadOnly,
		Summary: "List a project's deploys from the stored events, latest first",
		Answer:  "The deploys. The list is empty if the project was never deployed.",
	}

	GetOrphans = Endpoint[None, OrphanList]{Name: "orphans", Path: "/v1/orphans", Role: RoleReadOnly,
		Summary: "List the volumes of this host that no service uses any more",
		Text: "The records come from deploys. Only the engine knows whether a volume still exists and whether a " +
			"container uses it again.",
	}

	GetWorkers = Endpoint[None, WorkerList]{Name: "workers", Path: "/v1/workers", Role: RoleReadOnly,
		Summary: "List the images and hashes of this host's last worker runs, sorted by project and service",
	}
)

// Elastic addresses, and the edge of the daemon's host. Edits make all changes.
var (
	GetAccounts = Endpoint[None, AccountList]{Name: "accounts", Path: "/v1/accounts", Role: RoleReadOnly,
		Account: true,
		Summary: "List the accounts, sorted by name",
	}

	GetElastics = Endpoint[ElasticsRequest, ElasticList]{Name: "elastics", Path: "/v1/elastic", Role: RoleReadOnly,
		Account: true,
		Summary: "List the elastic addresses that are not free, sorted by address",
	}

	GetElastic = Endpoint[ElasticRequest, ipam.ElasticInfo]{Name: "elastic", Path: "/v1/elastic/{address}",
		Role: RoleReadOnly, Account: true, Tagged: true,
		Summary: "Get one elastic address, also a free one",
		Answer:  "The address. Send its ETag as If-Match when you change it.",
	}

	GetRanges = Endpoint[None, ElasticRangeList]{Name: "elasticRanges", Path: "/v1/elastic/ranges",
		Role:    RoleReadOnly,
		Summary: "List the ranges of elastic addresses, sorted by address",
	}

	GetElasticCheck = Endpoint[None, ipam.CheckReport]{Name: "checkElastic", Path: "/v1/elastic/check",
		Role: RoleReadOnly, Pace: streams,
		Summary: "List problems of this host's elastic addresses",
		Text:    "The findings of GET /v1/check that concern elastic addresses.",
	}

	GetUsage = Endpoint[ipam.UsageFilter, ipam.UsageReport]{Name: "elasticUsage", Path: "/v1/elastic/usage",
		Role: RoleReadOnly, Account: true, Pace: streams,
		Summary: "Report how long accounts had elastic addresses",
	}

	GetEdge = Endpoint[EdgeNewsRequest, ipam.EdgeNews]{Name: "edgeNews", Path: "/v1/edge", Pace: streams,
		Type:    LinesType,
		Summary: "Stream the mappings that this host's edge must make",
		Answer:  "One line with all mappings, then one line for each change, until the client or the daemon ends.",
	}

	PostEdge = Endpoint[Body[ipam.EdgeReport], Done]{Name: "edgeReport", Method: http.MethodPost, Path: "/v1/edge",
		Summary: "Report the mappings that this host's edge has made",
	}

	// Account: a caller that associates an address waits for the edge.
	GetEdgeStatus = Endpoint[None, ipam.EdgeStatus]{Name: "edgeStatus", Path: "/v1/edge/status", Role: RoleReadOnly,
		Account: true,
		Summary: "Whether an edge is connected",
	}

	GetLAN = Endpoint[None, ipam.LANAsk]{Name: "lanAsks", Path: "/v1/edge/lan", Pace: streams, Type: LinesType,
		Summary: "Stream the LAN requests for this host's edge",
		Answer: "One line for each request, until the client or the daemon ends. If several edges are connected, " +
			"the latest one gets the requests.",
	}

	PostLAN = Endpoint[Body[ipam.LANAnswer], Done]{Name: "lanAnswer", Method: http.MethodPost, Path: "/v1/edge/lan",
		Summary: "Report the result of a LAN request",
		Answer:  "The daemon used the result, or dropped it because nobody waits for it any more.",
	}
)

// The state, and tokens.
var (
	PostBackup = Endpoint[BackupRequest, []byte]{Name: "backup", Method: http.MethodPost, Path: "/v1/backup",
		Pace: Lasts, Type: "application/octet-stream", Response: "Backup",
		Summary: "Back up the state",
		Text: "The answer is a consistent copy. `berth state restore` accepts this file. One backup runs at a " +
			"time; others get the code busy.",
	}

	PostFsck = Endpoint[None, FsckReport]{Name: "fsck", Method: http.MethodPost, Path: "/v1/fsck", Pace: Lasts,
		Summary: "Check the state file and its records",
		Answer:  "The problems; the list may be empty. A damaged state also gets status 200.",
	}

	PostSave = Endpoint[None, SavedState]{Name: "saveState", Method: http.MethodPost, Path: "/v1/store/save",
		Pace:    Lasts,
		Summary: "Write the daemon's whole state to its file again",
		Text: "Use this if somebody removed, moved or replaced the file and the daemon refuses writes " +
			"(state_astray). Berth keeps the file at that path under another name. It also writes the tokens of " +
			"the API again, if their file was removed. Berth refuses if the file of the state is in its place.",
		Answer: "Berth wrote the file. If restart is set, restart the daemon.",
	}

	PostMend = Endpoint[Body[ipam.MendOptions], ipam.MendReport]{Name: "mendStore", Method: http.MethodPost,
		Path: "/v1/store/mend", Pace: Lasts,
		Summary: "Restore this host's part of a shared store that went back to an earlier state",
	}

	GetTokens = Endpoint[None, TokenList]{Name: "tokens", Path: "/v1/tokens",
		Summary: "List the API tokens, sorted by name",
		Text:    "Only for admins.",
		Answer:  "The tokens without their secrets. Berth stores only hashes.",
	}

	PostTokens = Endpoint[Body[TokenRequest], NewToken]{Name: "createToken", Method: http.MethodPost,
		Path:    "/v1/tokens",
		Summary: "Create a token",
		Text:    "Only for admins. Only this answer contains the secret; Berth stores its hash.",
	}

	DeleteToken = Endpoint[NamedToken, TokenInfo]{Name: "removeToken", Method: http.MethodDelete,
		Path:    "/v1/tokens/{token}",
		Summary: "Remove a token",
		Text:    "Only for admins. Berth refuses later requests with the token and cuts off running ones.",
		Answer:  "The token before its removal.",
	}
)
