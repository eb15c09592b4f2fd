package admin

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"reflect"
	"strings"

	"berth/internal/admin/api"
	"berth/internal/ipam"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	jsonv1 "github.com/go-json-experiment/json/v1"
)

// encoding/json/v2 decodes bodies. It refuses an unknown field, a repeated one or one in another case, and each refusal
// names the field.

// readBody returns the JSON text that is the body of a request.
func readBody(r *http.Request) ([]byte, error) {
	body, err := readAll(r)
	switch {
	case err != nil:
		return nil, notArrived(err)
	case len(bytes.TrimSpace(body)) == 0:
		return nil, emptyBody(r)
	}
	if err := checkType(r); err != nil {
		return nil, err
	}
	return body, (&count{most: fewThings}).add(body)
}

// notArrived explains why a body could not be read.
func notArrived(err error) *api.Problem {
	var tooLarge *http.MaxBytesError
	if errors.As(err, &tooLarge) {
		return bodyTooLarge(tooLarge.Limit)
	}
	var p *api.Problem
	if errors.As(err, &p) {
		return p
	}
	return invalid("the body did not arrive: %v", err)
}

func bodyTooLarge(most int64) *api.Problem {
	return problem(http.StatusRequestEntityTooLarge, api.CodeTooLarge,
		"the body is larger than %d bytes; send it in parts", most)
}

func emptyBody(r *http.Request) *api.Problem {
	return invalid("the body is empty; %s %s needs a JSON body", r.Method, r.URL.Path)
}

// checkType refuses a body whose content type is not JSON.
func checkType(r *http.Request) error {
	given := r.Header.Get("Content-Type")
	if given == api.JSONType {
		return nil
	}
	if kind, _, err := mime.ParseMediaType(given); err == nil && kind == api.JSONType {
		return nil
	}
	return problem(http.StatusUnsupportedMediaType, api.CodeMediaType,
		"the content type of the body is %q; it must be %s", given, api.JSONType)
}

// readAll reads the body. If the client has declared the size and has sent more than a little, it allocates all memory
// at once.
func readAll(r *http.Request) ([]byte, error) {
	size := int(r.ContentLength)
	if r.ContentLength < 0 || r.ContentLength > api.MaxBody {
		return io.ReadAll(r.Body)
	}
	body := make([]byte, min(size, smallBody+1))
	n, err := io.ReadFull(r.Body, body)
	if err != nil || n == size {
		return body, err
	}
	body = append(make([]byte, 0, size), body...)[:size]
	_, err = io.ReadFull(r.Body, body[n:])
	return body, err
}

// items splits a body into objects. The body is one object or a list of objects, each of which is a change.
func items(body []byte) ([]jsontext.Value, error) {
	text := jsontext.Value(bytes.TrimSpace(body))
	if text[0] != '[' {
		return []jsontext.Value{text}, nil
	}
	var all []jsontext.Value
	if err := decode(text, &all); err != nil {
		return nil, err
	}
	return all, checkNumber(len(all))
}

func checkNumber(edits int) error {
	switch {
	case edits == 0:
		return invalid("the list is empty; there is nothing to change")
	case edits > ipam.MaxEdits:
		return invalid("%d changes are too many for one request; send at most %d at a time", edits, ipam.MaxEdits)
	}
	return nil
}

// decode reads one JSON value into v. text must be an object if v is a struct. A duration is a number of nanoseconds,
// as encoding/json writes it.
func decode(text []byte, v any) error {
	if kind := jsontext.Value(text).Kind(); kind == 'n' {
		return nullBody()
	}
	return wrongBody(json.Unmarshal(text, v, strictly()))
}

func nullBody() error { return invalid("the body is null; it must be an object") }

func strictly() json.Options {
	return json.JoinOptions(json.RejectUnknownMembers(true), jsonv1.FormatDurationAsNano(true))
}

// wrongBody explains why a body could not be decoded; nil: no error.
func wrongBody(err error) error {
	var wrong *json.SemanticError
	var broken *jsontext.SyntacticError
	var p *api.Problem
	switch {
	case err == nil:
		return nil
	case errors.As(err, &p):
		return p
	case errors.As(err, &wrong):
		return invalid("%s", wrongField(wrong))
	case errors.As(err, &broken):
		return invalid("the body is not valid JSON%s: %v", place(broken.JSONPointer), broken.Err)
	}
	return invalid("the body cannot be read: %v", err)
}

// wrongField explains which field of a body is wrong and what it should be.
func wrongField(e *json.SemanticError) string {
	switch {
	case errors.Is(e.Err, json.ErrUnknownName):
		return fmt.Sprintf("there is no field %q here; openapi.yaml lists the fields",
			fieldName(e.JSONPointer))
	case e.Err != nil && e.JSONKind == '"':
		return fmt.Sprintf("the field %q is wrong: %s", fieldName(e.JSONPointer),
			strings.TrimPrefix(e.Err.Error(), ipam.ErrInvalid.Error()+": "))
	case e.Err != nil && e.JSONValue != nil:
		return fmt.Sprintf("the field %q cannot be %s: %v", fieldName(e.JSONPointer), e.JSONValue, e.Err)
	case e.JSONPointer == "":
		return fmt.Sprintf("the body is %s; it must be %s", kindWord(e.JSONKind), typeWord(e.GoType))
	}
	return fmt.Sprintf("the field %q is %s; it must be %s", fieldName(e.JSONPointer), kindWord(e.JSONKind),
		typeWord(e.GoType))
}

// fieldName returns the path of a field as people write it: subnets.0.gateway.
func fieldName(p jsontext.Pointer) string {
	var parts []string
	for token := range p.Tokens() {
		parts = append(parts, token)
	}
	return strings.Join(parts, ".")
}

func place(p jsontext.Pointer) string {
	if p == "" {
		return ""
	}
	return fmt.Sprintf(" at %q", fieldName(p))
}

func kindWord(k jsontext.Kind) string {
	switch k {
	case 'n':
		return "null"
	case 't', 'f':
		return "true or false"
	case '"':
		return "a string"
	case '0':
		return "a number"
	case '[':
		return "a list"
	}
	return "an object"
}

func typeWord(t reflect.Type) string {
	switch {
	case t == nil:
		return "something else"
	case t.Kind() == reflect.Pointer:
		return typeWord(t.Elem())
	case reflect.PointerTo(t).Implements(textReader), t.Kind() == reflect.String:
		return "a string"
	case t.Kind() == reflect.Bool:
		return "true or false"
	case t.Kind() == reflect.Slice:
		return "a list"
	case t.Kind() == reflect.Struct, t.Kind() == reflect.Map:
		return "an object"
	}
	return "a whole number"
}

var textReader = reflect.TypeFor[interface{ UnmarshalText([]byte) error }]()
