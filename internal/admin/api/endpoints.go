package api

import (
	"net/http"

	"berth/internal/ipam"
)

// About the daemon, and not about what it keeps.
var (
	GetHealth = Endpoint[None, string]{Method: http.MethodGet, Path: "/healthz", Role: RoleAnybody, Type: TextType}

	GetReady = Endpoint[None, string]{Method: http.MethodGet, Path: "/readyz", Role: RoleAnybody, Type: TextType}

	GetMetrics = Endpoint[None, string]{Method: http.MethodGet, Path: "/metrics", Role: RoleReadOnly, Type: TextType}

	GetDescription = Endpoint[None, string]{Method: http.MethodGet, Path: "/openapi.yaml", Role: RoleReadOnly,
		Type: "application/yaml"}

	GetDocs = Endpoint[None, string]{Method: http.MethodGet, Path: "/docs", Role: RoleReadOnly, Type: "text/html"}

	GetVersion = Endpoint[None, Version]{Method: http.MethodGet, Path: "/v1/version", Role: RoleReadOnly}

	GetStatus = Endpoint[None, Status]{Method: http.MethodGet, Path: "/v1/status", Role: RoleReadOnly}
)

// Networks, and what is in them. All that changes them is an edit.
var (
	PostEdits = Endpoint[EditsRequest, ipam.Outcome]{Method: http.MethodPost, Path: "/v1/edits", Account: true}

	GetSpaces = Endpoint[None, SpaceList]{Method: http.MethodGet, Path: "/v1/spaces", Role: RoleReadOnly}

	GetNetworks = Endpoint[NetworksRequest, NetworkList]{Method: http.MethodGet, Path: "/v1/networks",
		Role: RoleReadOnly}

	GetNetwork = Endpoint[OfNetwork, ipam.NetworkInfo]{Method: http.MethodGet, Path: "/v1/networks/{network}",
		Role: RoleReadOnly, Tagged: true}

	GetNetworkSubnets = Endpoint[PartsRequest, SubnetPlanList]{Method: http.MethodGet,
		Path: "/v1/networks/{network}/subnets", Role: RoleReadOnly, Tagged: true}

	GetPools = Endpoint[PartsRequest, PoolList]{Method: http.MethodGet, Path: "/v1/networks/{network}/pools",
		Role: RoleReadOnly, Tagged: true}

	GetExclusions = Endpoint[PartsRequest, ExclusionList]{Method: http.MethodGet,
		Path: "/v1/networks/{network}/exclusions", Role: RoleReadOnly, Tagged: true}

	GetReservations = Endpoint[OwnedRequest, ReservationList]{Method: http.MethodGet, Path: "/v1/reservations",
		Role: RoleReadOnly}

	GetNetworkReservations = Endpoint[OwnedRequest, ReservationList]{Method: http.MethodGet,
		Path: "/v1/networks/{network}/reservations", Role: RoleReadOnly, Tagged: true}

	GetAddresses = Endpoint[OwnedRequest, AddressList]{Method: http.MethodGet, Path: "/v1/addresses",
		Role: RoleReadOnly}

	GetNetworkAddresses = Endpoint[OwnedRequest, AddressList]{Method: http.MethodGet,
		Path: "/v1/networks/{network}/addresses", Role: RoleReadOnly, Tagged: true}

	GetEnvironment = Endpoint[EnvironmentRequest, VariableList]{Method: http.MethodGet,
		Path: "/v1/networks/{network}/env/{owner}", Role: RoleReadOnly}

	GetFree = Endpoint[FreeRequest, FreeList]{Method: http.MethodGet, Path: "/v1/networks/{network}/free",
		Role: RoleReadOnly}

	GetNextFree = Endpoint[NextFreeRequest, NextFreeList]{Method: http.MethodGet,
		Path: "/v1/networks/{network}/free/next", Role: RoleReadOnly}

	PostScan = Endpoint[ScanRequest, LANScan]{Method: http.MethodPost, Path: "/v1/networks/{network}/scan",
		Pace: Streams}

	GetSubnets = Endpoint[SubnetsRequest, SubnetList]{Method: http.MethodGet, Path: "/v1/subnets",
		Role: RoleReadOnly}

	GetSubnet = Endpoint[OfSubnet, ipam.SubnetInfo]{Method: http.MethodGet, Path: "/v1/subnets/{id}",
		Role: RoleReadOnly, Tagged: true}

	GetAvailable = Endpoint[AvailableRequest, AvailableList]{Method: http.MethodGet,
		Path: "/v1/subnets/{id}/available-ips", Role: RoleReadOnly}

	PostAvailable = Endpoint[TakeRequest, ipam.Outcome]{Method: http.MethodPost,
		Path: "/v1/subnets/{id}/available-ips"}
)

// What is there, and what was.
var (
	GetLeases = Endpoint[LeasesRequest, LeaseList]{Method: http.MethodGet, Path: "/v1/leases", Role: RoleReadOnly}

	GetWho = Endpoint[ipam.WhoFilter, TenureList]{Method: http.MethodGet, Path: "/v1/who", Role: RoleReadOnly,
		Pace: Streams}

	GetFind = Endpoint[FindRequest, FoundList]{Method: http.MethodGet, Path: "/v1/find", Role: RoleReadOnly}

	GetEvents = Endpoint[EventsRequest, EventList]{Method: http.MethodGet, Path: "/v1/events", Role: RoleReadOnly}

	GetNames = Endpoint[None, Names]{Method: http.MethodGet, Path: "/v1/names", Role: RoleReadOnly}

	GetHosts = Endpoint[None, HostList]{Method: http.MethodGet, Path: "/v1/hosts", Role: RoleReadOnly}

	GetHost = Endpoint[HostRequest, ipam.HostInfo]{Method: http.MethodGet, Path: "/v1/hosts/{name}",
		Role: RoleReadOnly}
)

// Plans as a whole.
var (
	GetExport = Endpoint[ExportRequest, ipam.Plan]{Method: http.MethodGet, Path: "/v1/export", Role: RoleReadOnly,
		Pace: Streams}

	PostImport = Endpoint[ImportRequest, ImportLine]{Method: http.MethodPost, Path: "/v1/import", Pace: Lasts,
		Type: LinesType, MaxBody: 64 << 20}
)

// maxView is the largest body in which is all that an engine runs.
const maxView = 32 << 20

// What runs.
var (
	GetCheck = Endpoint[None, ipam.CheckReport]{Method: http.MethodGet, Path: "/v1/check", Role: RoleReadOnly,
		Pace: Lasts}

	PostCheck = Endpoint[Body[ipam.CheckRequest], ipam.CheckReport]{Method: http.MethodPost, Path: "/v1/check",
		Pace: Lasts, MaxBody: maxView}

	PostRelease = Endpoint[Body[ipam.LeaseRelease], ipam.LeaseInfo]{Method: http.MethodPost,
		Path: "/v1/leases/release", MaxBody: maxView}

	PutWitness = Endpoint[Body[ipam.EngineView], Done]{Method: http.MethodPut, Path: "/v1/witness", MaxBody: maxView}

	PostNews = Endpoint[NewsRequest, Done]{Method: http.MethodPost, Path: "/v1/witness/news", Pace: Streams,
		MaxBody: Endless}
)

// Deploys of projects.
var (
	GetDeploys = Endpoint[None, DeployList]{Method: http.MethodGet, Path: "/v1/deploys", Role: RoleReadOnly}

	GetDeployRuns = Endpoint[DeployRunsRequest, DeployRunList]{Method: http.MethodGet, Path: "/v1/deploys/{project}",
		Role: RoleReadOnly}

	GetOrphans = Endpoint[None, OrphanList]{Method: http.MethodGet, Path: "/v1/orphans", Role: RoleReadOnly}

	GetWorkers = Endpoint[None, WorkerList]{Method: http.MethodGet, Path: "/v1/workers", Role: RoleReadOnly}
)

// Elastic addresses, and the edge of the daemon's host. All that changes them is an edit.
var (
	GetAccounts = Endpoint[None, AccountList]{Method: http.MethodGet, Path: "/v1/accounts", Role: RoleReadOnly,
		Account: true}

	GetElastics = Endpoint[ElasticsRequest, ElasticList]{Method: http.MethodGet, Path: "/v1/elastic",
		Role: RoleReadOnly, Account: true}

	GetElastic = Endpoint[ElasticRequest, ipam.ElasticInfo]{Method: http.MethodGet, Path: "/v1/elastic/{address}",
		Role: RoleReadOnly, Account: true, Tagged: true}

	GetRanges = Endpoint[None, ElasticRangeList]{Method: http.MethodGet, Path: "/v1/elastic/ranges",
		Role: RoleReadOnly}

	GetElasticCheck = Endpoint[None, ipam.CheckReport]{Method: http.MethodGet, Path: "/v1/elastic/check",
		Role: RoleReadOnly, Pace: Streams}

	GetUsage = Endpoint[ipam.UsageFilter, ipam.UsageReport]{Method: http.MethodGet, Path: "/v1/elastic/usage",
		Role: RoleReadOnly, Account: true, Pace: Streams}

	GetEdge = Endpoint[EdgeNewsRequest, ipam.EdgeNews]{Method: http.MethodGet, Path: "/v1/edge", Pace: Streams,
		Type: LinesType}

	PostEdge = Endpoint[Body[ipam.EdgeReport], Done]{Method: http.MethodPost, Path: "/v1/edge"}

	// Account: who associates waits for the edge.
	GetEdgeStatus = Endpoint[None, ipam.EdgeStatus]{Method: http.MethodGet, Path: "/v1/edge/status",
		Role: RoleReadOnly, Account: true}

	GetLAN = Endpoint[None, ipam.LANAsk]{Method: http.MethodGet, Path: "/v1/edge/lan", Pace: Streams, Type: LinesType}

	PostLAN = Endpoint[Body[ipam.LANAnswer], Done]{Method: http.MethodPost, Path: "/v1/edge/lan"}
)

// The state, and who may ask.
var (
	PostBackup = Endpoint[BackupRequest, []byte]{Method: http.MethodPost, Path: "/v1/backup", Pace: Lasts,
		Type: "application/octet-stream"}

	PostFsck = Endpoint[None, FsckReport]{Method: http.MethodPost, Path: "/v1/fsck", Pace: Lasts}

	PostSave = Endpoint[None, SavedState]{Method: http.MethodPost, Path: "/v1/store/save", Pace: Lasts}

	PostMend = Endpoint[Body[ipam.MendOptions], ipam.MendReport]{Method: http.MethodPost, Path: "/v1/store/mend",
		Pace: Lasts}

	GetTokens = Endpoint[None, TokenList]{Method: http.MethodGet, Path: "/v1/tokens"}

	PostTokens = Endpoint[Body[TokenRequest], NewToken]{Method: http.MethodPost, Path: "/v1/tokens"}

	DeleteToken = Endpoint[NamedToken, TokenInfo]{Method: http.MethodDelete, Path: "/v1/tokens/{token}"}
)
