// Package api defines the admin API for both of its ends: requests, answers, problems, and the files that hold secrets.
// The codes of problems never change.
//
// Each operation is an Endpoint (endpoint.go) in one table (endpoints.go), with the types of its request (requests.go)
// and its headers (header.go). Answers describe the daemon (daemon.go), lists (lists.go) and tokens (tokens.go);
// package ipam defines the rest. A refusal is a Problem (problem.go). Tokens, passwords and certificate authorities are
// read from files (secret.go).
package api

import "time"

// AdminGroup is the group whose members may use the admin socket.
const AdminGroup = "berth"

// JSONType is the content type of bodies and answers.
const JSONType = "application/json"

// MaxBody is the maximum size of a request's body in bytes, unless the operation has another limit, and of a refusal.
const MaxBody = 1 << 20

// AnswerTimeout bounds the server's time for each answer except streams.
const AnswerTimeout = time.Minute

// QuestionTime bounds the time in which the sender of an engine's news answers a question.
const QuestionTime = 300 * time.Millisecond

// MoveTime bounds one step of moving a container.
const MoveTime = 5 * time.Minute

// The limits of `last`, the number of events in one answer.
const (
	DefaultEvents = 100
	MaxEvents     = 10_000
)
