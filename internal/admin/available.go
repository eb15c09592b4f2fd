package admin

import (
	"net/http"

	"berth/internal/ipam"

	"github.com/go-json-experiment/json/jsontext"
)

// The bounds of what is listed of the free addresses of a subnet, and of how many one request takes.
const (
	defaultAvailable = 50
	maxTake          = 64 // the slots of an interface
)

func (s *Server) subnet(w http.ResponseWriter, r *http.Request) error {
	if _, err := query(r); err != nil {
		return err
	}
	id, err := ipam.ParseID(r.PathValue("id"))
	if err != nil {
		return err
	}
	sub, revision, err := s.cfg.Service.Subnet(r.Context(), id)
	if err != nil {
		return err
	}
	return replyShown(w, r, revision, sub)
}

// available lists what an automatic request in a subnet could be given.
func (s *Server) available(w http.ResponseWriter, r *http.Request) error {
	q, err := query(r, "limit")
	if err != nil {
		return err
	}
	id, err := ipam.ParseID(r.PathValue("id"))
	if err != nil {
		return err
	}
	p, err := pageOf(r, q, 0)
	if err != nil {
		return err
	}
	if !p.given {
		p.limit = defaultAvailable
	}
	all, err := s.cfg.Service.Available(r.Context(), id, p.limit)
	if err != nil {
		return err
	}
	return replyList(w, "addresses", all)
}

// taking is what is wanted of a subnet: the next address, or the next few.
type taking struct {
	Owner string `json:"owner"`
	Count *int   `json:"count"` // nil: 1
	Pool  string `json:"pool"`  // out of the pools of this name; "": any
}

// takeNext takes the next addresses of a subnet, for another interface of the owner each time.
func (s *Server) takeNext(w http.ResponseWriter, r *http.Request) error {
	id, err := ipam.ParseID(r.PathValue("id"))
	if err != nil {
		return err
	}
	network, err := s.cfg.Service.NetworkOf(id)
	if err != nil {
		return err
	}
	dry, err := dryRun(r)
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
	edits, err := readEdits(texts, func(text jsontext.Value) (ipam.Edit, error) {
		var t taking
		if err := decode(text, &t); err != nil {
			return nil, err
		}
		return t.edit(network, id)
	})
	if err != nil {
		return err
	}
	return s.edit(w, r, dry, body, edits)
}

func (t *taking) edit(network, subnet ipam.ID) (ipam.Edit, error) {
	count := 1
	if t.Count != nil {
		count = *t.Count
	}
	if count < 1 || count > maxTake {
		return nil, invalid(`the field "count" is %d; one request takes 1 to %d addresses, the slots of an interface`,
			count, maxTake)
	}
	wishes := make([]ipam.Wish, count)
	for i := range wishes {
		wishes[i] = ipam.Wish{Slot: i, Pool: t.Pool}
	}
	return &ipam.TakeAddress{Network: network.String(), Subnet: subnet.String(), Owner: t.Owner,
		Interface: ipam.Interface{Number: -1, Action: ipam.AddInterface, Wishes: wishes}}, nil
}
