// Package api is what both ends of the admin API know: paths and headers, what answers and refusals look like, and how
// the files are read in which either end has its secrets. It promises that the codes of problems do not change, and
// that what it describes is what openapi.yaml describes: tests of the room admin compare them.
//
// A request goes to a path (this file) with headers of its own (header.go). Its answer is what the daemon says of
// itself (daemon.go), a list (lists.go), what there is about tokens (tokens.go), or what the room ipam has words for; a
// refusal is a Problem (problem.go). A token, a password or an authority comes out of a file (secret.go).
package api

import "time"

// The paths that both ends name.
const (
	// About the daemon, and not about what it keeps.
	StatusPath  = "/v1/status"
	VersionPath = "/v1/version"
	MetricsPath = "/metrics" // as Prometheus expects it
	SavePath    = "/v1/store/save"
	OpenAPIPath = "/openapi.yaml"  // the description of all of it
	DocsPath    = "/docs"          // the same as a page for people
	MendPath    = "/v1/store/mend" // where a shared store is mended that was put back to an earlier state

	EditsPath  = "/v1/edits" // where the plan is changed, and nowhere else but for available-ips
	ImportPath = "/v1/import"

	FindPath  = "/v1/find"
	HostsPath = "/v1/hosts"
	HostPath  = HostsPath + "/{name}"

	NamesPath = "/v1/names" // whose which address is, of which names in DNS are made

	AccountsPath = "/v1/accounts"
	ElasticPath  = "/v1/elastic"
	RangesPath   = ElasticPath + "/ranges"
	UsagePath    = ElasticPath + "/usage"
	ElasticCheck = ElasticPath + "/check"
	EdgePath     = "/v1/edge" // what a host's edge is to map, and what it has mapped
	EdgeState    = EdgePath + "/status"
	EdgeLAN      = EdgePath + "/lan" // what a host's edge is asked to do on a LAN, and its answers

	DeploysPath    = "/v1/deploys" // projects that are being deployed
	OrphansPath    = "/v1/orphans" // volumes of the host that no service uses any more
	DeployRunsPath = DeploysPath + "/{project}"
	WorkersPath    = "/v1/workers" // which workers of this host's projects have run

	CheckPath   = "/v1/check"
	ReleasePath = "/v1/leases/release"
	WitnessPath = "/v1/witness"
	NewsPath    = "/v1/witness/news"
)

// AdminGroup is the group whose members may use the admin socket.
const AdminGroup = "berth"

// JSONType is the content type of bodies and answers.
const JSONType = "application/json"

// MaxBody is the largest body of a request, and of a refusal, but where an operation says another.
const MaxBody = 1 << 20

// AnswerTimeout is how long the server gives itself for each answer but the streams.
const AnswerTimeout = time.Minute

// QuestionTime is how long whoever tells the news of an engine may take to answer a question about it.
const QuestionTime = 300 * time.Millisecond

// MoveTime is how long it may take for a step of moving a container.
const MoveTime = 5 * time.Minute

// The bounds of `last`, the number of events in one answer.
const (
	DefaultEvents = 100
	MaxEvents     = 10_000
)
