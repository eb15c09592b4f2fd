package admin

import (
	"crypto/sha256"
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"strings"

	"berth/internal/ipam"

	"github.com/go-json-experiment/json/jsontext"
)

// keyHeader makes a change happen once, however often it is sent; replayedHeader says of an answer that it was given before.
const (
	keyHeader      = "Idempotency-Key"
	replayedHeader = "Idempotency-Replayed"
	maxKey         = 255
)

type handler = func(http.ResponseWriter, *http.Request) error

// planned is an edit of which T are the fields.
type planned[T any] interface {
	*T
	ipam.Edit
}

// post makes the change that the body is, or those of the list that it is. inPath gives each what the path says.
func post[T any, E planned[T]](s *Server, inPath func(*http.Request, E) error) handler {
	return func(w http.ResponseWriter, r *http.Request) error {
		return s.changeAll(w, r, func(text jsontext.Value) (ipam.Edit, error) { return fromBody(r, text, inPath) })
	}
}

// patch makes the one change that the body is.
func patch[T any, E planned[T]](s *Server, inPath func(*http.Request, E) error) handler {
	return func(w http.ResponseWriter, r *http.Request) error {
		q, err := query(r, "dry_run")
		if err != nil {
			return err
		}
		body, err := readBody(r)
		if err != nil {
			return err
		}
		e, err := fromBody(r, body, inPath)
		if err != nil {
			return err
		}
		return s.change(w, r, q, body, e)
	}
}

// bare makes the change that the path and the query are, without a body; params are the parameters besides dry_run.
func bare(s *Server, read func(*http.Request, url.Values) (ipam.Edit, error), params ...string) handler {
	return func(w http.ResponseWriter, r *http.Request) error {
		q, err := query(r, append([]string{"dry_run"}, params...)...)
		if err != nil {
			return err
		}
		e, err := read(r, q)
		if err != nil {
			return err
		}
		return s.change(w, r, q, nil, e)
	}
}

// changeAll reads the changes of a body and makes all of them or none.
func (s *Server) changeAll(w http.ResponseWriter, r *http.Request, read func(jsontext.Value) (ipam.Edit, error)) error {
	q, err := query(r, "dry_run")
	if err != nil {
		return err
	}
	body, err := readBody(r)
	if err != nil {
		return err
	}
	texts, err := items(body)
	if err != nil {
		return err
	}
	edits, err := readEdits(texts, read)
	if err != nil {
		return err
	}
	return s.change(w, r, q, body, edits...)
}

// readEdits reads each of the texts; where there are several, its error says which one is wrong.
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

func fromBody[T any, E planned[T]](r *http.Request, text []byte, inPath func(*http.Request, E) error) (ipam.Edit, error) {
	e := E(new(T))
	if err := decodeEdit(text, e); err != nil {
		return nil, err
	}
	return e, inPath(r, e)
}

// decodeEdit reads the fields of an edit. A new name that is left out is not the empty one, which takes the name away.
func decodeEdit(text []byte, e ipam.Edit) error {
	if err := decode(text, e); err != nil {
		return err
	}
	if _, renames := e.(*ipam.ModifyPool); renames && !has(text, "name") {
		return invalid(`the field "name" is missing: give the pool's new name, or "" to take its name away`)
	}
	return nil
}

// has tells whether an object has a field.
func has(object []byte, field string) bool {
	var fields map[string]jsontext.Value
	return decode(object, &fields) == nil && fields[field] != nil
}

// inPath gives a field what the path says; the body must not say it too.
func inPath(r *http.Request, name string, field *string) error {
	if *field != "" {
		return invalid("the %s is named by the path; leave the field %q out", name, name)
	}
	*field = r.PathValue(name)
	return nil
}

// change makes edits as the query and the headers want it.
func (s *Server) change(w http.ResponseWriter, r *http.Request, q url.Values, body []byte, edits ...ipam.Edit) error {
	dry, err := boolOf(q, "dry_run")
	if err != nil {
		return err
	}
	return s.edit(w, r, dry, body, edits)
}

func (s *Server) edit(w http.ResponseWriter, r *http.Request, dry bool, body []byte, edits []ipam.Edit) error {
	opt := ipam.EditOptions{DryRun: dry}
	var err error
	if opt.IfMatch, err = ifMatch(r); err != nil {
		return err
	}
	if opt.Key, err = idempotencyKey(r); err != nil {
		return err
	}
	switch {
	case dry:
		opt.Key = "" // it changes nothing, however often
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
		w.Header().Set("ETag", etag(out.Revision))
	}
	if out.Changes == nil {
		out.Changes = []ipam.Event{} // in JSON a list, not null
	}
	return reply(w, out)
}

func idempotencyKey(r *http.Request) (string, error) {
	values := r.Header.Values(keyHeader)
	if len(values) == 0 {
		return "", nil
	}
	key := values[0]
	unprintable := strings.ContainsFunc(key, func(c rune) bool { return c < ' ' || c > '~' })
	if len(values) > 1 || key == "" || len(key) > maxKey || unprintable {
		return "", invalid("the header %s is %.80q; it is given once, and has 1 to %d printable ASCII characters", keyHeader, strings.Join(values, ", "), maxKey)
	}
	return key, nil
}

// digest is of who asks for what: a key is good for one request of one asker.
func digest(r *http.Request, body []byte) (sum [sha256.Size]byte) {
	h := sha256.New()
	fmt.Fprintf(h, "%q %s %s?%s\n", callerIn(r.Context()).actor, r.Method, r.URL.EscapedPath(), r.URL.RawQuery)
	h.Write(body)
	h.Sum(sum[:0])
	return sum
}

// edits is POST /v1/edits.
func (s *Server) edits(w http.ResponseWriter, r *http.Request) error {
	if _, err := query(r); err != nil {
		return err
	}
	body, err := readBody(r)
	if err != nil {
		return err
	}
	var asked struct {
		Edits  []jsontext.Value `json:"edits"`
		DryRun bool             `json:"dry_run"`
	}
	if err := decode(body, &asked); err != nil {
		return err
	}
	if err := checkNumber(len(asked.Edits)); err != nil {
		return err
	}
	edits, err := readEdits(asked.Edits, readOp)
	if err != nil {
		return err
	}
	return s.edit(w, r, asked.DryRun, body, edits)
}

// readOp reads an edit that says what it is: {"op": "pool.add", ...}.
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
		return nil, invalid("there is no operation %q; they are called as in network.create, pool.add or address.take", asked.Op)
	}
	if asked.Rest == nil {
		asked.Rest = jsontext.Value("{}")
	}
	return e, decodeEdit(asked.Rest, e)
}

// addressOf reads the parameter address; the zero Addr where it is not given.
func addressOf(q url.Values) (netip.Addr, error) {
	text := q.Get("address")
	if text == "" {
		return netip.Addr{}, nil
	}
	addr, err := netip.ParseAddr(text)
	if err != nil || addr.Zone() != "" || addr.Is4In6() {
		return netip.Addr{}, invalid("the parameter address is %q; it is one address such as 192.0.2.7 or 2001:db8::7", text)
	}
	return addr, nil
}
