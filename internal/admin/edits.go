package admin

import (
	"crypto/sha256"
	"fmt"
	"net/http"
	"strings"

	"berth/internal/admin/api"
	"berth/internal/ipam"

	"github.com/go-json-experiment/json/jsontext"
)

// keyHeader makes a change happen only once, even if it is sent repeatedly. replayedHeader marks an answer that was
// already given before.
const (
	replayedHeader = "Idempotency-Replayed"
	maxKey         = 255
)

// edits makes all edits of a body or none.
func (s *Server) edits(w http.ResponseWriter, r *http.Request, _ api.EditsRequest) error {
	body, err := readBody(r)
	if err != nil {
		return err
	}
	var asked struct {
		Edits  []jsontext.Value `json:"edits"`
		DryRun bool             `json:"dry_run"`

		Refused bool `json:"all_refused"`
	}
	if err := decode(body, &asked); err != nil {
		return err
	}
	opt := ipam.EditOptions{DryRun: asked.DryRun, Refused: asked.Refused}
	if err := opt.Fits(len(asked.Edits)); err != nil {
		return err
	}
	edits, err := readEdits(asked.Edits, readOp)
	if err != nil {
		return err
	}
	return s.edit(w, r, opt, body, edits)
}

// readOp reads an edit with its operation: {"op": "pool.add", ...}.
func readOp(text jsontext.Value) (ipam.Edit, error) {
	var asked struct {
		Op   string         `json:"op"`
		Rest jsontext.Value `json:",embed"`
	}
	if err := decode(text, &asked); err != nil {
		return nil, err
	}
	e, known := ipam.NewEdit(asked.Op)
	if !known {
		return nil, invalid("there is no operation %q; write one such as network.create, pool.add or address.take",
			asked.Op)
	}
	if asked.Rest == nil {
		asked.Rest = jsontext.Value("{}")
	}
	return e, decodeEdit(asked.Rest, e)
}

// readEdits reads all edits. If there are several, the error names the wrong one.
func readEdits(texts []jsontext.Value, read func(jsontext.Value) (ipam.Edit, error)) ([]ipam.Edit, error) {
	edits := make([]ipam.Edit, len(texts))
	for i, text := range texts {
		e, err := read(text)
		if err != nil && len(texts) > 1 {
			err = &ipam.EditError{Index: i, Err: err}
		}
		if err != nil {
			return nil, err
		}
		edits[i] = e
	}
	return edits, nil
}

// decodeEdit reads the fields of an edit. A missing new name differs from an empty one, which removes the name.
func decodeEdit(text []byte, e ipam.Edit) error {
	if err := decode(text, e); err != nil {
		return err
	}
	if _, renames := e.(*ipam.ModifyPool); renames && !has(text, "name") {
		return invalid(`the field "name" is missing: give the pool's new name, or "" to remove its name`)
	}
	return nil
}

// has reports whether an object has a field.
func has(object []byte, field string) bool {
	var fields map[string]jsontext.Value
	return decode(object, &fields) == nil && fields[field] != nil
}

// edit makes edits with opt and the request's headers. body is the request, for the check of its idempotency key.
func (s *Server) edit(w http.ResponseWriter, r *http.Request, opt ipam.EditOptions, body []byte,
	edits []ipam.Edit) error {
	var err error
	if opt.IfMatch, err = ifMatch(r); err != nil {
		return err
	}
	if opt.Key, err = idempotencyKey(r); err != nil {
		return err
	}
	if text := r.Header.Get(api.DeployHeader); text != "" {
		if err := opt.Deploy.UnmarshalText([]byte(text)); err != nil {
			return invalid("the header %s is %q, which is not the id of a deploy", api.DeployHeader, text)
		}
	}
	switch {
	case opt.DryRun:
		opt.Key = "" // a dry run changes nothing, however often it is sent
	case opt.Key != "":
		opt.Request = digest(r, body)
	}
	out, err := s.cfg.Service.Edit(r.Context(), opt, edits...)
	if err != nil {
		return err
	}
	if out.Replayed {
		w.Header().Set(replayedHeader, "true")
	}
	if out.Revision > 0 {
		w.Header().Set("ETag", api.ETag(out.Revision))
	}
	if out.Changes == nil {
		out.Changes = []ipam.Event{} // a list in JSON, not null
	}
	return reply(w, out)
}

func idempotencyKey(r *http.Request) (string, error) {
	values := r.Header.Values(api.KeyHeader)
	if len(values) == 0 {
		return "", nil
	}
	key := values[0]
	unprintable := strings.ContainsFunc(key, func(c rune) bool { return c < ' ' || c > '~' })
	if len(values) > 1 || key == "" || len(key) > maxKey || unprintable {
		return "", invalid("the header %s is %.80q; give it once, with 1 to %d printable ASCII characters",
			api.KeyHeader, strings.Join(values, ", "), maxKey)
	}
	return key, nil
}

// digest identifies a request and its caller. A key is valid for one request of one caller.
func digest(r *http.Request, body []byte) (sum [sha256.Size]byte) {
	h := sha256.New()
	fmt.Fprintf(h, "%q %s %s?%s\n", callerIn(r.Context()).actor, r.Method, r.URL.EscapedPath(), r.URL.RawQuery)
	h.Write(body)
	h.Sum(sum[:0])
	return sum
}
