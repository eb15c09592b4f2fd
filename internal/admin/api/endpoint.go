package api

import (
	"cmp"
	"math"
	"net/http"
	"reflect"
	"strconv"
	"strings"
)

// Endpoint is one row of the table of operations (endpoints.go). Req has the parameters and the body of a request. Each
// field has its place as a tag: path, query, header or body. Resp is the answer. The server, the client and the API
// description all use the row.
type Endpoint[Req, Resp any] Row

// Row is a row without its types.
type Row struct {
	Name    string // in the API description
	Method  string // empty: GET
	Path    string
	Role    Role // the callers that may use it; empty: only admins
	Account bool // tokens of one account may use it, too
	Pace    Pace
	Type    string // of the answer; empty: JSON
	Tagged  bool   // the answer has an ETag, and If-None-Match applies
	MaxBody int64  // the maximum size in bytes; 0: MaxBody; Endless: no limit

	// The API description: a summary line, the full text, the answer if it needs explanation, a 503 that is not a
	// problem, and the name in openapi.yaml of an answer that has more than a body.
	Summary, Text, Answer, Unready, Response string
}

// Endless is the MaxBody of a body without a limit, which ends when the client ends it.
const Endless = math.MaxInt64

// The types of bodies and answers that are not JSON.
const (
	textType  = "text/plain"
	LinesType = "application/x-ndjson" // one JSON object per line
)

// Pace says how long an answer may take.
type Pace int

// The paces.
const (
	Brief   Pace = iota // complete within AnswerTimeout
	streams             // begins within AnswerTimeout and may continue
	Lasts               // begins when the work is done
)

// Spec is a row with its types, for code that handles all rows.
type Spec struct {
	Row
	Req, Resp reflect.Type
}

// Spec returns the row with its types.
func (e Endpoint[Req, Resp]) Spec() Spec {
	e.Method = cmp.Or(e.Method, http.MethodGet)
	return Spec{Row(e), reflect.TypeFor[Req](), reflect.TypeFor[Resp]()}
}

// Reads reports whether the operation changes nothing and shows no secrets, so that read-only callers may use it.
func (r *Row) Reads() bool { return r.Role == RoleReadOnly || r.Role == RoleAnybody }

// Limit returns the maximum size of a request's body in bytes.
func (r *Row) Limit() int64 {
	if r.MaxBody == 0 {
		return MaxBody
	}
	return r.MaxBody
}

// Field is a field of a request type that is sent.
type Field struct {
	Name, In string // the place is path, query, header or body
	Default  string
	Bounded  bool // the number has limits
	Min, Max int

	reflect.StructField // its own Name is Go's
}

// FieldsOf lists the sent fields of a request type, including those of embedded structs.
func FieldsOf(req reflect.Type) (all []Field) {
	for _, f := range reflect.VisibleFields(req) {
		for _, in := range []string{"path", "query", "header", "body"} {
			name, ok := f.Tag.Lookup(in)
			if !ok {
				continue
			}
			one := Field{Name: name, In: in, Default: f.Tag.Get("default"), StructField: f}
			if text := f.Tag.Get("max"); text != "" {
				one.Bounded = true
				one.Min, _ = strconv.Atoi(f.Tag.Get("min"))
				one.Max, _ = strconv.Atoi(text)
			}
			all = append(all, one)
		}
	}
	return all
}

// None is a request without parameters and body.
type None struct{}

// Body is a request that has only a body.
type Body[T any] struct {
	Body T `body:""`
}

// ListName returns the JSON name of the list in an answer that is one list.
func ListName(resp reflect.Type) string {
	name, _, _ := strings.Cut(resp.Field(0).Tag.Get("json"), ",")
	return name
}

// Omitted reports whether a field of an answer is omitted in JSON if it is zero.
func Omitted(f reflect.StructField) bool {
	_, options, _ := strings.Cut(f.Tag.Get("json"), ",")
	return strings.Contains(options, "omitempty") || strings.Contains(options, "omitzero")
}
