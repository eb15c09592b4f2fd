// Package api is what both ends of the admin API know: what can be asked, what answers and refusals look like, and how
// the files are read in which either end has its secrets. It promises that the codes of problems do not change.
//
// Each thing that can be asked is a row (endpoint.go) of one table (endpoints.go), with the type of its request
// (requests.go) and headers (header.go). Its answer is what the daemon says of itself (daemon.go), a list (lists.go),
// what there is about tokens (tokens.go), or what the room ipam has words for; a refusal is a Problem (problem.go). A
// token, a password or an authority comes out of a file (secret.go).
package api

import "time"

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
