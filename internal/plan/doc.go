// Package plan is the document of a plan: one YAML document of all networks, or one CSV table per noun, as `berth
// export` writes them and `berth plan import` reads them. It promises that what it writes it reads back as the same
// ipam.Plan, that it writes the same plan as the same bytes, and that of a document which cannot be read it names every
// line that is wrong, and why.
//
// A document comes in as bytes, is parsed by a library that knows the lines (yaml.go, csv.go), has each of its values
// read by the parsers of alloc and ipam (values.go), and goes out as an ipam.Plan with the line of each thing. Whether
// the plan makes sense, and fits what is there, is asked by service.Service.Import. The other way, networks come one by
// one and are written one by one (yamlwriter.go, csvwriter.go), so that a plan need not be in memory as a whole.
package plan

import "berth/internal/ipam"

// MaxSize is the size in bytes of the largest document that is read.
const MaxSize = 64 << 20

// Writer writes a document network by network.
type Writer interface {
	Write(*ipam.PlannedNetwork) error
	// Close ends the document; it does not close what is written to.
	Close() error
}
