package api

import (
	"net/http"

	"berth/internal/ipam"
)

// About the daemon, and not about what it keeps.
var (
	GetHealth = Endpoint[None, string]{Name: "health", Path: "/healthz", Role: RoleAnybody, Type: textType,
		Summary: "Whether the daemon serves",
		Answer:  "It does; whether it can do what it is asked, readyz tells.",
	}

	GetReady = Endpoint[None, string]{Name: "ready", Path: "/readyz", Role: RoleAnybody, Type: textType,
		Summary: "Whether requests can be answered",
		Text: "They cannot while the host's own store refuses writes: a full disk, a file that is gone, a failed write. " +
			"They cannot while a shared store is out of reach; the space local goes on. They cannot while a state that " +
			"is in memory alone is rebuilt.",
		Answer:  "They can.",
		Unready: "Some of them cannot, in a line that says which. Status says why.",
	}

	GetMetrics = Endpoint[None, string]{Name: "metrics", Path: "/metrics", Role: RoleReadOnly, Type: textType,
		Summary: "Metrics for Prometheus",
		Text:    "In its text format, or as OpenMetrics where that is asked for. docs/metrics-list.md lists the names.",
		Answer:  "What is counted, and what there is at this moment.",
	}

	GetDescription = Endpoint[None, string]{Name: "description", Path: "/openapi.yaml", Role: RoleReadOnly,
		Type:    "application/yaml",
		Summary: "This description",
		Text:    "With an ETag of its own, by which who has it already gets a 304.",
	}

	GetDocs = Endpoint[None, string]{Name: "docs", Path: "/docs", Role: RoleReadOnly, Type: "text/html",
		Summary: "This description as a page for people",
		Text:    "It needs no scripts and nothing from elsewhere. It has an ETag as the description has.",
	}

	GetVersion = Endpoint[None, Version]{Name: "version", Path: "/v1/version", Role: RoleReadOnly,
		Summary: "Which Berth this is",
		Answer:  "Version and place of the daemon.",
	}

	GetStatus = Endpoint[None, Status]{Name: "status", Path: "/v1/status", Role: RoleReadOnly,
		Summary: "How the daemon is, what it keeps, and which import is open",
		Answer:  "What there is to say; a daemon that takes no writes is an answer too.",
	}
)

// Networks, and what is in them. All that changes them is an edit.
var (
	PostEdits = Endpoint[EditsRequest, ipam.Outcome]{Name: "edits", Method: http.MethodPost, Path: "/v1/edits",
		Account: true, Response: "Outcome",
		Summary: "Change the plan, by one edit or by several of any kind, all or none, in one transaction",
		Text: "This is the one way in which networks, subnets, pools, exclusions, reservations, addresses and hosts " +
			"are changed. Networks, subnets and pools are named as they are called, without escapes.",
	}

	GetSpaces = Endpoint[None, SpaceList]{Name: "spaces", Path: "/v1/spaces", Role: RoleReadOnly,
		Summary: "All spaces, by name",
	}

	GetNetworks = Endpoint[NetworksRequest, NetworkList]{Name: "networks", Path: "/v1/networks", Role: RoleReadOnly,
		Summary: "Networks, by name",
	}

	GetNetwork = Endpoint[OfNetwork, ipam.NetworkInfo]{Name: "network", Path: "/v1/networks/{network}",
		Role: RoleReadOnly, Tagged: true,
		Summary: "One network, with the maps of its pools",
		Text: "By its name or id or, where there is no network of that name, by the name of the Docker network that " +
			"is on it, as this host's engine calls it. Where Docker networks of one name are on several, the " +
			"refusal names these.",
	}

	GetNetworkSubnets = Endpoint[PartsRequest, SubnetPlanList]{Name: "networkSubnets",
		Path: "/v1/networks/{network}/subnets", Role: RoleReadOnly, Tagged: true,
		Summary: "The subnets of a network, by address",
	}

	GetPools = Endpoint[PartsRequest, PoolList]{Name: "pools", Path: "/v1/networks/{network}/pools",
		Role: RoleReadOnly, Tagged: true,
		Summary: "The pools of a network, by address, with their maps",
	}

	GetExclusions = Endpoint[PartsRequest, ExclusionList]{Name: "exclusions",
		Path: "/v1/networks/{network}/exclusions", Role: RoleReadOnly, Tagged: true,
		Summary: "The exclusions of a network, by address",
	}

	GetReservations = Endpoint[OwnedRequest, ReservationList]{Name: "reservations", Path: "/v1/reservations",
		Role:    RoleReadOnly,
		Summary: "Reserved addresses of all networks, by space and address",
	}

	GetNetworkReservations = Endpoint[OwnedRequest, ReservationList]{Name: "networkReservations",
		Path: "/v1/networks/{network}/reservations", Role: RoleReadOnly, Tagged: true,
		Summary: "Reserved addresses of a network, by address",
	}

	GetAddresses = Endpoint[OwnedRequest, AddressList]{Name: "addresses", Path: "/v1/addresses", Role: RoleReadOnly,
		Summary: "Addresses of devices that are not containers, in all networks, by space and address",
	}

	GetNetworkAddresses = Endpoint[OwnedRequest, AddressList]{Name: "networkAddresses",
		Path: "/v1/networks/{network}/addresses", Role: RoleReadOnly, Tagged: true,
		Summary: "Addresses of devices that are not containers, in one network, by address",
	}

	GetEnvironment = Endpoint[EnvironmentRequest, VariableList]{Name: "environment",
		Path: "/v1/networks/{network}/env/{owner}", Role: RoleReadOnly,
		Summary: "The variables that describe the addresses of an owner, in the form of Ganeti's hooks",
	}

	GetFree = Endpoint[FreeRequest, FreeList]{Name: "free", Path: "/v1/networks/{network}/free", Role: RoleReadOnly,
		Summary: "Addresses of a network that could be given to anybody now, as ranges by address",
		Text: "Of its pools, what nobody has, had within a quarantine, owns, or asks for by the configuration of a " +
			"container. The network may be one that Docker calls so, where no network of Berth's has the name. Of " +
			"a network of the type vip or dynamic nothing is chosen automatically, and the question is refused.",
	}

	GetNextFree = Endpoint[NextFreeRequest, NextFreeList]{Name: "nextFree", Path: "/v1/networks/{network}/free/next",
		Role:    RoleReadOnly,
		Summary: "Which address a container that nobody knows would be given now, of each family",
		Text: "By the first subnet that gives one, of those on which this host has a Docker network where there are " +
			"any, and in the range that this has. Nothing is taken: two who ask are told the same.",
		Answer: "At most one address of each family; none where nothing is free.",
	}

	PostScan = Endpoint[ScanRequest, LANScan]{Name: "scan", Method: http.MethodPost,
		Path: "/v1/networks/{network}/scan", Pace: streams,
		Summary: "Ask on a network's LAN who has its addresses",
		Text: "The edge of the daemon's host asks for all addresses of the network's subnets by ARP and neighbour " +
			"discovery, three times, 256 at a time, which takes some two seconds each. Of the host itself its own " +
			"addresses are told. Nothing is changed.",
	}

	GetSubnets = Endpoint[SubnetsRequest, SubnetList]{Name: "subnets", Path: "/v1/subnets", Role: RoleReadOnly,
		Summary: "Subnets, by space and address",
	}

	GetSubnet = Endpoint[OfSubnet, ipam.SubnetInfo]{Name: "subnet", Path: "/v1/subnets/{id}", Role: RoleReadOnly,
		Tagged:  true,
		Summary: "One subnet",
	}

	GetAvailable = Endpoint[AvailableRequest, AvailableList]{Name: "available",
		Path: "/v1/subnets/{id}/available-ips", Role: RoleReadOnly,
		Summary: "The lowest addresses that an automatic request could be given",
		Answer:  "The addresses; somebody else may take them before you do.",
	}

	PostAvailable = Endpoint[TakeRequest, ipam.Outcome]{Name: "takeNext", Method: http.MethodPost,
		Path: "/v1/subnets/{id}/available-ips", Response: "Outcome",
		Summary: "Take the next addresses",
		Text: "Takes the lowest addresses that an automatic request could be given, one or many, for a device that " +
			"is not a container. They become another interface of the owner, with one slot for each; " +
			"address.release gives them back.",
	}
)

// What is there, and what was.
var (
	GetLeases = Endpoint[LeasesRequest, LeaseList]{Name: "leases", Path: "/v1/leases", Role: RoleReadOnly,
		Summary: "Leases, by space, subnet and address",
	}

	GetWho = Endpoint[ipam.WhoFilter, TenureList]{Name: "who", Path: "/v1/who", Role: RoleReadOnly, Pace: streams,
		Summary: "Who has an address and who had it, or what a MAC or a name has and had, the earliest first",
		Text: "Exactly one of address, mac and name is given. The answer comes out of the events that are kept, and " +
			"for what lasts longer out of the records.",
	}

	GetFind = Endpoint[FindRequest, FoundList]{Name: "find", Path: "/v1/find", Role: RoleReadOnly,
		Summary: "At what a word is found, in whatever way it can be meant",
		Text: "The word is an address, a prefix, a range, a MAC, an id, or a part of one of these or of a name, an " +
			"owner, a tag or a note. Names are found as Docker and Compose write them (shop-web-1, shop_web_1) and " +
			"as owners (shop/web/1); case does not count. An address is also found at the subnet, the pools and " +
			"the exclusions that it is in. The id of a container of this host, or its first 12 digits and more, " +
			"finds what that container has, where it is known what runs. What is found comes in one order: spaces, " +
			"networks, subnets, pools, exclusions, what there is of each address, addresses that are free, elastic " +
			"ones, accounts, ranges of elastic addresses, hosts.",
	}

	GetEvents = Endpoint[EventsRequest, EventList]{Name: "events", Path: "/v1/events", Role: RoleReadOnly,
		Response: "Events",
		Summary:  "The last events, the oldest of them first",
		Text: "With after, the earliest behind the mark; whoever goes on from mark to mark is told each event once " +
			"and misses none, in whichever order hosts write them. Several networks, or verbs, have commas between " +
			"them; a noun, as in lease or lease.*, stands for all of its verbs. A stream has marks in its lines, and " +
			"no bound where it goes on from one; it lasts until the client goes away or the daemon ends.",
	}

	GetNames = Endpoint[None, Names]{Name: "names", Path: "/v1/names", Role: RoleReadOnly,
		Summary: "Whose which address is, of which names in DNS are made",
		Text: "All addresses that are somebody's, in use or not, and the ranges that they are in. Of these `berth " +
			"dns` and the daemon's own server make the names, by the rules of docs/dns.md. It is refused (503) on " +
			"a host of a cluster whose store was not reached since the daemon began: it is the whole, or nothing.",
	}

	GetHosts = Endpoint[None, HostList]{Name: "hosts", Path: "/v1/hosts", Role: RoleReadOnly,
		Summary: "The hosts that share the store, by name, those that were removed last",
	}

	GetHost = Endpoint[HostRequest, ipam.HostInfo]{Name: "host", Path: "/v1/hosts/{name}", Role: RoleReadOnly,
		Summary: "One host, with what its removal would free",
	}
)

// Plans as a whole.
var (
	GetExport = Endpoint[ExportRequest, ipam.Plan]{Name: "export", Path: "/v1/export", Role: RoleReadOnly,
		Pace:    streams,
		Summary: "The plan, as POST /v1/import takes it",
		Text: "All networks that are planned, by name, each as it is at one moment, sent network by network. What " +
			"Docker has in use is no part of it.",
	}

	PostImport = Endpoint[ImportRequest, ImportLine]{Name: "import", Method: http.MethodPost, Path: "/v1/import",
		Pace: Lasts, Type: LinesType, MaxBody: 64 << 20,
		Summary: "Add what a plan has and the records lack",
		Text: "The plan is checked as a whole, against itself and what is there, before anything is written; what is " +
			"wrong with it is in the problems of the refusal. A network that is there gets what it lacks, and " +
			"nothing of it is changed. It is written in bounded transactions, each network as a whole or not at " +
			"all. Where an import stops, because of an error, because the connection ends or the daemon, what it " +
			"has added stays, and the same import again adds the rest. One runs at a time.",
		Answer: "Lines of JSON, of how far it is, and at the end of what it came to or why it stopped.",
	}
)

// maxView is the largest body in which is all that an engine runs.
const maxView = 32 << 20

// What runs.
var (
	GetCheck = Endpoint[None, ipam.CheckReport]{Name: "check", Path: "/v1/check", Role: RoleReadOnly, Pace: Lasts,
		Summary: "Compare the records with what runs, and change nothing",
		Text: "It asks the Docker Engine, and takes as long as that does. A daemon that has no witness refuses it " +
			"with the code no_witness; one whose engine does not answer says so in the report.",
		Answer: "What was found; nothing is an answer too.",
	}

	PostCheck = Endpoint[Body[ipam.CheckRequest], ipam.CheckReport]{Name: "checkWith", Method: http.MethodPost,
		Path: "/v1/check", Pace: Lasts, MaxBody: maxView,
		Summary: "Compare the records with what runs, and repair what is certain",
		Text: "It repairs what the report calls repairable, and nothing that a partition or a stopped engine may " +
			"hide. One body of more than 1 MiB is read at a time; others are refused with the code busy meanwhile.",
		Answer: "What was found; nothing is an answer too.",
	}

	PostRelease = Endpoint[Body[ipam.LeaseRelease], ipam.LeaseInfo]{Name: "releaseLease", Method: http.MethodPost,
		Path: "/v1/leases/release", MaxBody: maxView,
		Summary: "Free an address whose endpoint is gone",
		Text: "It is refused where an endpoint has the address, where its container may be starting, and where " +
			"nobody can tell because the engine cannot be read, unless it is forced; and where it is held on " +
			"another host or by no endpoint.",
		Answer: "The lease as it was.",
	}

	PutWitness = Endpoint[Body[ipam.EngineView], Done]{Name: "showEngine", Method: http.MethodPut,
		Path: "/v1/witness", MaxBody: maxView,
		Summary: "Tell the daemon what an engine runs, where it may not ask that itself",
	}

	PostNews = Endpoint[NewsRequest, Done]{Name: "hearEngine", Method: http.MethodPost, Path: "/v1/witness/news",
		Pace: streams, MaxBody: Endless,
		Summary: "Tell the daemon what happens in an engine, as it happens, where it may not hear that itself",
		Text: "The body goes on for as long as somebody follows the engine's events. Each line is one thing that was " +
			"heard; an empty line says that there is nothing new, and comes at least every 30 seconds. The last " +
			"one who begins counts. Containers are guessed while it lasts, from the next view (PUT /v1/witness) " +
			"on. Where the daemon has a question about the engine, the answer begins, with a line of JSON for each " +
			"question (EngineQuestion); lines of the body answer them: who is locked within 300 ms.",
		Answer: "The body has ended.",
	}
)

// Deploys of projects.
var (
	GetDeploys = Endpoint[None, DeployList]{Name: "deploys", Path: "/v1/deploys", Role: RoleReadOnly,
		Summary: "The projects that are locked for a deploy, by name",
	}

	GetDeployRuns = Endpoint[DeployRunsRequest, DeployRunList]{Name: "deployRuns", Path: "/v1/deploys/{project}",
		Role:    RoleReadOnly,
		Summary: "The deploys of a project of which there are events, the latest first",
		Answer:  "They; of a project that was never deployed there are none.",
	}

	GetOrphans = Endpoint[None, OrphanList]{Name: "orphans", Path: "/v1/orphans", Role: RoleReadOnly,
		Summary: "The volumes of this host's projects that no service uses any more, by name",
		Text: "What deploys have recorded. Whether the engine has a volume still, and whether a container uses it " +
			"again, is for the engine to say.",
	}

	GetWorkers = Endpoint[None, WorkerList]{Name: "workers", Path: "/v1/workers", Role: RoleReadOnly,
		Summary: "Of what the workers of this host's projects were made when they ran last, by project and service",
	}
)

// Elastic addresses, and the edge of the daemon's host. All that changes them is an edit.
var (
	GetAccounts = Endpoint[None, AccountList]{Name: "accounts", Path: "/v1/accounts", Role: RoleReadOnly,
		Account: true,
		Summary: "The accounts, by name",
	}

	GetElastics = Endpoint[ElasticsRequest, ElasticList]{Name: "elastics", Path: "/v1/elastic", Role: RoleReadOnly,
		Account: true,
		Summary: "The elastic addresses that are not free, by address",
	}

	GetElastic = Endpoint[ElasticRequest, ipam.ElasticInfo]{Name: "elastic", Path: "/v1/elastic/{address}",
		Role: RoleReadOnly, Account: true, Tagged: true,
		Summary: "One elastic address, also a free one",
		Answer:  "The address. Its ETag is what If-Match of a change of it takes.",
	}

	GetRanges = Endpoint[None, ElasticRangeList]{Name: "elasticRanges", Path: "/v1/elastic/ranges",
		Role:    RoleReadOnly,
		Summary: "The ranges of elastic addresses, by address",
	}

	GetElasticCheck = Endpoint[None, ipam.CheckReport]{Name: "checkElastic", Path: "/v1/elastic/check",
		Role: RoleReadOnly, Pace: streams,
		Summary: "What keeps elastic addresses of the daemon's host from working",
		Text:    "Those of the findings of GET /v1/check that are about them.",
	}

	GetUsage = Endpoint[ipam.UsageFilter, ipam.UsageReport]{Name: "elasticUsage", Path: "/v1/elastic/usage",
		Role: RoleReadOnly, Account: true, Pace: streams,
		Summary: "How long accounts had elastic addresses",
	}

	GetEdge = Endpoint[EdgeNewsRequest, ipam.EdgeNews]{Name: "edgeNews", Path: "/v1/edge", Pace: streams,
		Type:    LinesType,
		Summary: "What the edge of the daemon's host is to map, as a stream",
		Answer:  "A line for the whole, and then one for each change, until the client goes or the daemon ends.",
	}

	PostEdge = Endpoint[Body[ipam.EdgeReport], Done]{Name: "edgeReport", Method: http.MethodPost, Path: "/v1/edge",
		Summary: "What the edge of the daemon's host has mapped",
	}

	// Account: who associates waits for the edge.
	GetEdgeStatus = Endpoint[None, ipam.EdgeStatus]{Name: "edgeStatus", Path: "/v1/edge/status", Role: RoleReadOnly,
		Account: true,
		Summary: "Whether an edge is told what to map",
	}

	GetLAN = Endpoint[None, ipam.LANAsk]{Name: "lanAsks", Path: "/v1/edge/lan", Pace: streams, Type: LinesType,
		Summary: "What the edge of the daemon's host is to do on a LAN, as a stream",
		Answer: "A line for each question, until the client goes or the daemon ends. Of several edges the one that " +
			"came last is asked.",
	}

	PostLAN = Endpoint[Body[ipam.LANAnswer], Done]{Name: "lanAnswer", Method: http.MethodPost, Path: "/v1/edge/lan",
		Summary: "What came of a question to a LAN",
		Answer:  "It is handed on, or passed over because nobody waits for it any more.",
	}
)

// The state, and who may ask.
var (
	PostBackup = Endpoint[BackupRequest, []byte]{Name: "backup", Method: http.MethodPost, Path: "/v1/backup",
		Pace: Lasts, Type: "application/octet-stream", Response: "Backup",
		Summary: "The state as it is at one moment",
		Text: "The file that the answer is can be put in the place of a state with berth state restore. One copy of the " +
			"state is made at a time; another one meanwhile is refused with the code busy.",
	}

	PostFsck = Endpoint[None, FsckReport]{Name: "fsck", Method: http.MethodPost, Path: "/v1/fsck", Pace: Lasts,
		Summary: "Check the state's file and its records",
		Answer:  "What was found; a state that is damaged is an answer too.",
	}

	PostSave = Endpoint[None, SavedState]{Name: "saveState", Method: http.MethodPost, Path: "/v1/store/save",
		Pace:    Lasts,
		Summary: "Write all that the daemon holds to the place of its state's file",
		Text: "For a file that was removed, moved or exchanged while the daemon had it open, so that it takes no " +
			"writes any more (state_astray). What lies in the place is kept under another name. Refused where the " +
			"file is in its place.",
		Answer: "It is written, and the daemon goes on, unless restart says that it has to be started again.",
	}

	PostMend = Endpoint[Body[ipam.MendOptions], ipam.MendReport]{Name: "mendStore", Method: http.MethodPost,
		Path: "/v1/store/mend", Pace: Lasts,
		Summary: "Do this host's part in mending a shared store that was put back to an earlier state",
	}

	GetTokens = Endpoint[None, TokenList]{Name: "tokens", Path: "/v1/tokens",
		Summary: "The tokens with which one may ask over TLS, by name",
		Text:    "For admins.",
		Answer:  "The tokens, without their texts, which nobody knows any more.",
	}

	PostTokens = Endpoint[Body[TokenRequest], NewToken]{Name: "createToken", Method: http.MethodPost,
		Path:    "/v1/tokens",
		Summary: "Create a token",
		Text:    "For admins. The answer is the only one that has the token's text; it is kept as a hash.",
	}

	DeleteToken = Endpoint[NamedToken, TokenInfo]{Name: "removeToken", Method: http.MethodDelete,
		Path:    "/v1/tokens/{token}",
		Summary: "Remove a token",
		Text:    "For admins. Requests with it are refused from then on, and one that is under way is cut off.",
		Answer:  "The token as it was.",
	}
)
