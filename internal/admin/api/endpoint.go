package api

import (
	"cmp"
	"math"
	"net/http"
	"reflect"
	"strconv"
	"strings"
)

// Endpoint is one row of the table of what can be asked (endpoints.go). Req has the parameters and the body of a
// request, each field with its place as a tag: path, query, header or body; Resp is the answer. The server answers a
// row, the client asks it, and the description is made of it.
type Endpoint[Req, Resp any] Row

// Row is what a row says besides its types.
type Row struct {
	Name    string // in the description
	Method  string // empty: GET
	Path    string
	Role    Role // whose callers may ask; empty: only admins
	Account bool // tokens of one account may, too
	Pace    Pace
	Type    string // of the answer; empty: JSON
	Tagged  bool   // the answer has an ETag, and If-None-Match is heard
	MaxBody int64  // of a body that may be larger than others; Endless: it goes on

	// What the description says: what it does in a line and in more, what the answer is where that is not plain, what a
	// 503 says that is no problem, and what openapi.yaml calls an answer that has more than a body.
	Summary, Text, Answer, Unready, Response string
}

// Endless is the MaxBody of a body that goes on for as long as the client does.
const Endless = math.MaxInt64

// The types of answers and bodies that are no JSON.
const (
	textType  = "text/plain"
	LinesType = "application/x-ndjson" // a JSON object a line
)

// Pace says how long an answer may take.
type Pace int

// The paces.
const (
	Brief   Pace = iota // AnswerTimeout for all of it
	streams             // it begins within that time, and may go on
	Lasts               // it begins when all is done that there is to do
)

// Spec is a row with its types, as who knows no single row looks at it.
type Spec struct {
	Row
	Req, Resp reflect.Type
}

// Spec returns the row as one of many.
func (e Endpoint[Req, Resp]) Spec() Spec {
	e.Method = cmp.Or(e.Method, http.MethodGet)
	return Spec{Row(e), reflect.TypeFor[Req](), reflect.TypeFor[Resp]()}
}

// Reads tells whether the operation changes nothing and shows no secrets, so that it is for those who may only look.
func (r *Row) Reads() bool { return r.Role == RoleReadOnly || r.Role == RoleAnybody }

// Limit is the largest body of a request.
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
	Bounded  bool // of a number
	Min, Max int

	reflect.StructField // its own Name is Go's
}

// FieldsOf lists the fields of a request type, those of embedded structs among them.
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

// None is a request that says nothing but its path.
type None struct{}

// Body is a request that is its body alone.
type Body[T any] struct {
	Body T `body:""`
}

// ListName is what an answer that is one list calls that.
func ListName(resp reflect.Type) string {
	name, _, _ := strings.Cut(resp.Field(0).Tag.Get("json"), ",")
	return name
}

// Omitted tells whether a field of an answer is left out where it is zero.
func Omitted(f reflect.StructField) bool {
	_, options, _ := strings.Cut(f.Tag.Get("json"), ",")
	return strings.Contains(options, "omitempty") || strings.Contains(options, "omitzero")
}
