// Package plan reads and writes the document of a plan: one YAML file, or one CSV table per noun. `berth plan export`
// writes it and `berth plan import` reads it. A plan that is written and read back is the same ipam.Plan, and equal
// plans give equal bytes. A refusal lists every wrong line and its reason.
//
// A document is parsed with line numbers (yaml.go, csv.go), and the parsers of alloc and ipam read its values
// (values.go). The result is an ipam.Plan with the line of each thing. service.Service.Import decides whether the plan
// is valid. Writing handles one network at a time, so the plan need not fit in memory (yamlwriter.go, csvwriter.go).
package plan

import "berth/internal/ipam"

// MaxSize is the size in bytes of the largest document that can be read.
const MaxSize = 64 << 20

// Writer writes a document network by network.
type Writer interface {
	Write(*ipam.PlannedNetwork) error
	// Close ends the document. It does not close the writer below.
	Close() error
}
